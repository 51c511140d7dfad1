"""Masked convolution: windows at selected positions (im2col), and results written to these positions (col2im).

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.sizes import check_positive, check_rank, check_shapes


def _check_positions(mask_h_idx: Array, mask_w_idx: Array) -> None:
    """Raise ValueError unless the row and column indices are vectors of the same length."""
    check_rank(1, mask_h_idx=mask_h_idx)
    check_shapes(mask_h_idx.shape, mask_w_idx=mask_w_idx)


@vendor.implements("diopiMaskedIm2colMmcv")
def masked_im2col(im, mask_h_idx, mask_w_idx, kernel_h, kernel_w, pad_h, pad_w):
    """Return the window around each selected position as a column; 0 outside the image."""
    check_rank(4, im=im)
    _check_positions(mask_h_idx, mask_w_idx)
    check_positive(kernel_h=kernel_h, kernel_w=kernel_w)
    n, c, h, w = im.shape
    if n != 1:
        raise ValueError(f"im has shape {im.shape}, expected one image")
    y = jnp.arange(kernel_h).reshape(-1, 1, 1) + mask_h_idx - pad_h
    x = jnp.arange(kernel_w).reshape(-1, 1) + mask_w_idx - pad_w
    y, x = jnp.where(y < 0, h, y), jnp.where(x < 0, w, x)
    patches = im[0].at[:, y, x].get(mode="fill", fill_value=0)
    return patches.reshape(c * kernel_h * kernel_w, len(mask_h_idx))


@vendor.implements("diopiMaskedCol2imMmcv")
def masked_col2im(im, col, mask_h_idx, mask_w_idx, height, width, channels):
    """Return `im` with each column written to its selected position."""
    _check_positions(mask_h_idx, mask_w_idx)
    check_shapes((1, channels, height, width), im=im)
    check_shapes((channels, len(mask_h_idx)), col=col)
    return im.at[0, :, mask_h_idx, mask_w_idx].set(col.T)
