"""Cases of MMCV's operators on boxes, quadrilaterals and polygons in the plane.

Importing the package registers the cases of all its modules. `diopi_proto/functions/mmcv_box.py` defines the functions.
"""

from diopi_test.cases.mmcv_box import overlaps, polygons, suppression, vertices

__all__ = ["overlaps", "polygons", "suppression", "vertices"]
