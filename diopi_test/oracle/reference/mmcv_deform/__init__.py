"""MMCV's deformable convolutions and multi-scale deformable attention, forward and backward."""

from diopi_test.oracle.reference.mmcv_deform import attention, convolution

__all__ = ["attention", "convolution"]
