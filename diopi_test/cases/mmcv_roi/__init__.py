"""Cases of MMCV's pooling of axis-aligned regions of interest (RoIs) on feature maps, forward and backward.

Importing the package registers the cases of all its modules. `diopi_proto/functions/mmcv_roi.py` defines the functions.
"""

from diopi_test.cases.mmcv_roi import border_align, deform_roi_pool, prroi_pool, roi_align, roi_pool

__all__ = ["border_align", "deform_roi_pool", "prroi_pool", "roi_align", "roi_pool"]
