"""MMCV's operators on boxes in space."""

from diopi_test.cases.mmcv_box3d import containment, overlaps, pooling

__all__ = ["containment", "overlaps", "pooling"]
