"""DeformRoiPool: offsets move the samples of each bin.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.mmcv_roi.grid import Pair, feature_map_shape, roi_sample_grid
from diopi_impl.jax_cpu.sampling import planes_to_rows


def _shifts(rois: Array, offset: Array | None, scale: float, gamma: float) -> Array | None:
    """Return the shifts of each bin's samples: gamma · size of the region · offset.

    Args:
        rois: the regions, (R, 5): the index of the map, x1, y1, x2 and y2.
        offset: the offsets in the order x, y, (R, 2, bins along H, bins along W).
        scale: the factor from the coordinates of regions to those of maps.
        gamma: the factor of all shifts.

    Returns:
        The shifts along H and W, (2, R, bins along H, bins along W), or None if there are no offsets.
    """
    if offset is None or not offset.size:
        return None
    sizes = jnp.stack([(rois[:, 4] - rois[:, 2]) * scale, (rois[:, 3] - rois[:, 1]) * scale])
    return gamma * sizes[..., jnp.newaxis, jnp.newaxis] * jnp.moveaxis(offset, 1, 0)[::-1]


def _check_offset(offset: Array | None, rois: Array, bins: Pair) -> None:
    """Raise ValueError unless the offset is (R, 2, bins along H, bins along W), empty or None."""
    if offset is not None and offset.size and offset.shape != (len(rois), 2, *bins):
        raise ValueError(f"offset has shape {offset.shape}, expected {(len(rois), 2, *bins)}, or no elements")


@vendor.implements("diopiDeformRoiPoolMmcv")
def deform_roi_pool(input, rois, offset, pooled_height, pooled_width, sampling_ratio, spatial_scale, gamma):
    """Return the means of the shifted samples of each bin (Dai et al., 2017)."""
    bins = (pooled_height, pooled_width)
    _check_offset(offset, rois, bins)
    shifts = _shifts(rois, offset, spatial_scale, gamma)
    return roi_sample_grid(feature_map_shape(input), rois, spatial_scale, bins, sampling_ratio, True, shifts).mean(
        input, bins
    )


@vendor.implements("diopiDeformRoiPoolBackwardMmcv")
def deform_roi_pool_backward(
    grad_offset, grad_output, input, rois, offset, pooled_height, pooled_width, sampling_ratio, spatial_scale, gamma
):
    """Return the gradients of the input and of the offsets.

    `grad_offset` is the caller's tensor for the second gradient. It is returned unchanged if it is None, or if there
    are no offsets.
    """
    bins = (pooled_height, pooled_width)
    _check_offset(offset, rois, bins)
    shifts = _shifts(rois, offset, spatial_scale, gamma)
    grid = roi_sample_grid(feature_map_shape(input), rois, spatial_scale, bins, sampling_ratio, True, shifts)
    grad_maps = grid.mean_gradient(grad_output)
    if grad_offset is None or offset is None or not offset.size:
        return grad_maps, grad_offset
    rows, grad_rows = planes_to_rows(input), jnp.moveaxis(grad_output, 1, -1)

    def add(total: Array, y: Array, x: Array, has: Array) -> Array:
        """Add the gradients with respect to y and x of a sample; `has` is true for the regions with this sample."""
        slopes = jax.vjp(lambda y, x: grid.sample(rows, y, x), y, x)[1](grad_rows)
        return total + jnp.where(has, jnp.stack(slopes), 0)

    total = grid.accumulate(add, jnp.zeros((2, len(rois), *bins), input.dtype))
    means = total / jnp.maximum(grid.count, 1)[:, jnp.newaxis, jnp.newaxis].astype(input.dtype)
    (grad_shifts,) = jax.vjp(lambda offset: _shifts(rois, offset, spatial_scale, gamma), offset)[1](means)
    return grad_maps, grad_shifts
