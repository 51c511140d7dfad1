"""MMCV's pooling of axis-aligned regions of interest (RoIs) on feature maps, with gradients.

A region is the index of its feature map in the batch, then x1, y1, x2, y2. It is divided into *bins*; pooling returns
one number per bin and channel. The arguments grad_input or bottom_grad of gradients are tensors of the result's shape.
"""

from diopi_test.oracle.reference.mmcv_roi import border_align, deform_roi_pool, prroi_pool, roi_align, roi_pool

__all__ = ["border_align", "deform_roi_pool", "prroi_pool", "roi_align", "roi_pool"]
