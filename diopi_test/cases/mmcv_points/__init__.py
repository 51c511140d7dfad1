"""Cases of MMCV's operators on point sets: neighbors, sampling, gathering and grouping, interpolation, PAConv scores.

Importing the package registers the cases of all its modules. `diopi_proto/functions/mmcv_points.py` defines the
functions.
"""

from diopi_test.cases.mmcv_points import assign_score, grouping, neighbors, sampling

__all__ = ["assign_score", "grouping", "neighbors", "sampling"]
