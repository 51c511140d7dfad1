"""MMCV's operators on boxes, quadrilaterals and polygons in the plane."""

from diopi_test.cases.mmcv_box import overlaps, polygons, suppression, vertices

__all__ = ["overlaps", "polygons", "suppression", "vertices"]
