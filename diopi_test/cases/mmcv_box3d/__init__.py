"""Cases of MMCV's operators on boxes in space.

Importing the package registers the cases of all its modules. `diopi_proto/functions/mmcv_box3d.py` defines the
functions.
"""

from diopi_test.cases.mmcv_box3d import containment, overlaps, pooling

__all__ = ["containment", "overlaps", "pooling"]
