"""MMCV's resampling and rearranging of feature maps: CARAFE, correlation, FIR, PSA masks, im2col, TIN shift."""

from diopi_impl.jax_cpu.mmcv_sampling import carafe, correlation, masked_conv, psa_mask, tin_shift, upfirdn2d

__all__ = ["carafe", "correlation", "masked_conv", "psa_mask", "tin_shift", "upfirdn2d"]
