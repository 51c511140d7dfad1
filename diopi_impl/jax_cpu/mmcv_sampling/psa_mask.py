"""The masks of point-wise spatial attention.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.sizes import check_positive

Pair = tuple[int, int]
"""Values along H and along W."""


def _check_psa(psa_type: int, masks: Array, maps: Array, sizes: tuple[int, int, int], mask: Pair) -> None:
    """Raise ValueError unless both tensors have the shapes that follow from the attributes."""
    n, h, w = sizes
    if psa_type not in (0, 1):
        raise ValueError(f"psa_type is {psa_type}, expected 0 or 1")
    check_positive(h_mask=mask[0], w_mask=mask[1])
    for name, tensor, channels in (("masks of positions", masks, mask[0] * mask[1]), ("masks of the map", maps, h * w)):
        if tensor.shape != (n, channels, h, w):
            raise ValueError(f"{name} have shape {tensor.shape}, expected {(n, channels, h, w)}")


def _offsets(size: int, entries: int, half: int) -> tuple[Array, Array]:
    """Return the mask entry for each source and target position along an axis, and whether it exists.

    Args:
        size: The number of positions on the axis.
        entries: The number of entries of the mask along the axis.
        half: The entry for a target at the position of the source.
    """
    source, target = jnp.arange(size)[:, jnp.newaxis], jnp.arange(size)
    entry = target - source + half
    inside = (entry >= 0) & (entry < entries)
    return jnp.where(inside, entry, 0), inside


@vendor.implements("diopiPsamaskMmcv")
def psamask(output, input, psa_type, num_, h_feature, w_feature, h_mask, w_mask, half_h_mask, half_w_mask):
    """Return the attention between all positions, from a mask around each position (0: collect, 1: distribute)."""
    _check_psa(psa_type, input, output, (num_, h_feature, w_feature), (h_mask, w_mask))
    if not input.size:
        return jnp.zeros(output.shape, input.dtype)
    i, has_row = _offsets(h_feature, h_mask, half_h_mask)
    j, has_column = _offsets(w_feature, w_mask, half_w_mask)
    entry = i[:, jnp.newaxis, :, jnp.newaxis] * w_mask + j[:, jnp.newaxis]  # h, w, y, x
    source = jnp.arange(h_feature * w_feature).reshape(h_feature, w_feature, 1, 1)
    copied = input.reshape(num_, h_mask * w_mask, h_feature * w_feature)[:, entry, source]
    inside = has_row[:, jnp.newaxis, :, jnp.newaxis] & has_column[:, jnp.newaxis]
    masked = jnp.where(inside, copied, 0).reshape(num_, h_feature * w_feature, h_feature * w_feature)
    return (masked.swapaxes(1, 2) if psa_type == 0 else masked).reshape(output.shape)


@vendor.implements("diopiPsamaskBackwardMmcv")
def psamask_backward(
    grad_input, grad_output, psa_type, num_, h_feature, w_feature, h_mask, w_mask, half_h_mask, half_w_mask
):
    """Return the gradient of the masks."""
    _check_psa(psa_type, grad_input, grad_output, (num_, h_feature, w_feature), (h_mask, w_mask))
    if not grad_output.size:
        return jnp.zeros(grad_input.shape, grad_output.dtype)
    h, w, cells = jnp.arange(h_feature)[:, jnp.newaxis], jnp.arange(w_feature), h_feature * w_feature
    y = jnp.arange(h_mask).reshape(-1, 1, 1, 1) + h - half_h_mask  # i, j, h, w
    x = jnp.arange(w_mask).reshape(-1, 1, 1) + w - half_w_mask
    inside = (y >= 0) & (y < h_feature) & (x >= 0) & (x < w_feature)
    source, target = h * w_feature + w, jnp.where(inside, y * w_feature + x, 0)
    places = (target, source) if psa_type == 0 else (source, target)
    copied = grad_output.reshape(num_, cells, cells)[:, *places]
    return jnp.where(inside, copied, 0).reshape(grad_input.shape)
