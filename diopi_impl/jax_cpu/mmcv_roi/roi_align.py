"""RoiAlign with the mean or the maximum of the samples.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results. `out` describes results that the caller allocates: their shapes and element
types.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

from diopi_impl.jax_cpu import detection, vendor
from diopi_impl.jax_cpu.mmcv_roi.grid import feature_map_shape, plane_numbers, roi_sample_grid, scatter_to_maps
from diopi_impl.jax_cpu.sampling import planes_to_rows

MAXIMUM, MEAN = 0, 1
"""The values of pool_mode."""

NO_SAMPLE = -float(np.finfo(np.float32).max)
"""The maximum of a bin without samples."""


@vendor.implements("diopiRoiAlignMmcv")
def roi_align(input, rois, aligned_height, aligned_width, sampling_ratio, pool_mode, spatial_scale, aligned, *, out):
    """Return the mean or the maximum of the samples of each bin; for maxima, also the coordinates of their samples."""
    if pool_mode == MEAN:
        attributes = spatial_scale, aligned_height, aligned_width, sampling_ratio, aligned
        return detection.roi_align(input, rois, *attributes), jnp.zeros(out[1].shape), jnp.zeros(out[2].shape)
    if pool_mode != MAXIMUM:
        raise ValueError(f"pool_mode is {pool_mode}, expected {MAXIMUM} for the maximum or {MEAN} for the mean")
    bins = (aligned_height, aligned_width)
    grid, rows = (
        roi_sample_grid(feature_map_shape(input), rois, spatial_scale, bins, sampling_ratio, aligned),
        planes_to_rows(input),
    )

    def choose_larger(best: tuple[Array, ...], y: Array, x: Array, has: Array) -> tuple[Array, ...]:
        """Replace the best samples where the next samples are larger."""
        values = grid.sample(rows, y, x)
        is_larger = has[..., jnp.newaxis] & ((values > best[0]) | (best[1] == -1))
        candidates = values, y[..., jnp.newaxis], x[..., jnp.newaxis]
        return tuple(jnp.where(is_larger, new, old) for new, old in zip(candidates, best, strict=True))

    shape = (len(rois), *bins, input.shape[1])
    start = [jnp.full(shape, value, input.dtype) for value in (NO_SAMPLE, -1, -1)]
    return tuple(jnp.moveaxis(result, -1, 1) for result in grid.accumulate(choose_larger, tuple(start)))


@vendor.implements("diopiRoiAlignBackwardMmcv")
def roi_align_backward(
    grad_input,
    grad_output,
    rois,
    argmax_y,
    argmax_x,
    aligned_height,
    aligned_width,
    sampling_ratio,
    pool_mode,
    spatial_scale,
    aligned,
):
    """Return the gradient of the input, for mean or maximum pooling."""
    if pool_mode == MEAN or argmax_y is None or argmax_x is None:
        bins, shape = (aligned_height, aligned_width), feature_map_shape(grad_input)
        return detection.roi_align_backward(grad_output, rois, spatial_scale, *bins, *shape, sampling_ratio, aligned)
    grad = jnp.where(argmax_y == -1, 0, grad_output)
    return scatter_to_maps(
        grad, plane_numbers(rois, grad_output.shape), argmax_y, argmax_x, feature_map_shape(grad_input)
    )
