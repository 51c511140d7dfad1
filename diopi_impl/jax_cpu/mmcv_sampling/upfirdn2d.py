"""An FIR filter between upsampling and downsampling.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.sizes import check_positive, check_rank


@vendor.implements("diopiUpfirdn2dOpMmcv")
def upfirdn2d(input, kernel, up_x, up_y, down_x, down_y, pad_x0, pad_x1, pad_y0, pad_y1):
    """Insert zeros, pad or crop, convolve with `kernel`, and keep every down-th element (as in StyleGAN2)."""
    check_rank(4, input=input)
    check_rank(2, kernel=kernel)
    check_positive(up_x=up_x, up_y=up_y, down_x=down_x, down_y=down_y)
    (major, h, w, minor), (kh, kw) = input.shape, kernel.shape
    size = (h * up_y + pad_y0 + pad_y1 - kh) // down_y + 1, (w * up_x + pad_x0 + pad_x1 - kw) // down_x + 1
    if min(*size, kh, kw) < 1:
        raise ValueError(f"input has shape {input.shape}, kernel {kernel.shape}, which leaves a result of size {size}")
    if not major * minor:
        return jnp.zeros((major, *size, minor), input.dtype)
    filtered = lax.conv_general_dilated(
        jnp.moveaxis(input, 3, 1).reshape(major * minor, 1, h, w),
        kernel[jnp.newaxis, jnp.newaxis, ::-1, ::-1].astype(input.dtype),
        (down_y, down_x),
        ((pad_y0, pad_y1 + up_y - 1), (pad_x0, pad_x1 + up_x - 1)),
        lhs_dilation=(up_y, up_x),
        precision="highest",
    )
    return jnp.moveaxis(filtered.reshape(major, minor, *size), 1, 3)
