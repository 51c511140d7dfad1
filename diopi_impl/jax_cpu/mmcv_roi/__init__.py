"""MMCV's pooling of axis-aligned regions of interest (RoIs) on feature maps, forward and backward."""

from diopi_impl.jax_cpu.mmcv_roi import border_align, deform_roi_pool, prroi_pool, roi_align, roi_pool

__all__ = ["border_align", "deform_roi_pool", "prroi_pool", "roi_align", "roi_pool"]
