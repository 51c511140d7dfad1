"""RoiPool: the maximum over the cells of each bin.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.mmcv_roi.grid import plane_numbers
from diopi_impl.jax_cpu.sampling import planes_to_rows


def _cell_ranges(start: Array, extent: Array, bins: int, length: int) -> tuple[Array, Array]:
    """Return the begin and end of each bin's cells along an axis: (R, bins) each."""
    start, width, number = start[:, jnp.newaxis], (extent / bins)[:, jnp.newaxis], jnp.arange(bins)
    first = jnp.floor(number * width + start)
    end = jnp.ceil((number + 1) * width + start)
    return jnp.clip(first, 0, length).astype(int), jnp.clip(end, 0, length).astype(int)


@vendor.implements("diopiRoiPoolMmcv")
def roi_pool(input, rois, pooled_height, pooled_width, spatial_scale):
    """Return the maximum over the cells of each bin, and its position."""
    _, c, h, w = input.shape
    low = [rois[:, 2] * spatial_scale, rois[:, 1] * spatial_scale]
    sizes = [(rois[:, 4] + 1) * spatial_scale - low[0], (rois[:, 3] + 1) * spatial_scale - low[1]]
    (row_begin, row_end), (column_begin, column_end) = (
        _cell_ranges(start, size, bins, length)
        for start, size, bins, length in zip(low, sizes, (pooled_height, pooled_width), (h, w), strict=True)
    )
    height, width = (row_end - row_begin)[:, :, jnp.newaxis], (column_end - column_begin)[:, jnp.newaxis]
    count = jnp.maximum(height, 0) * jnp.maximum(width, 0)
    rows, first = planes_to_rows(input), (rois[:, 0].astype(int) * h * w)[:, jnp.newaxis, jnp.newaxis]

    def choose_larger(number: Array, best: tuple[Array, Array]) -> tuple[Array, Array]:
        """Replace the best cells where the next cells are larger."""
        y = row_begin[:, :, jnp.newaxis] + number // jnp.maximum(width, 1)
        x = column_begin[:, jnp.newaxis] + number % jnp.maximum(width, 1)
        place = jnp.clip(y, 0, h - 1) * w + jnp.clip(x, 0, w - 1)
        values = rows[first + place]
        is_larger = (number < count)[..., jnp.newaxis] & ((values > best[0]) | (best[1] < 0))
        return jnp.where(is_larger, values, best[0]), jnp.where(is_larger, place[..., jnp.newaxis], best[1])

    shape = (len(rois), pooled_height, pooled_width, c)
    start = jnp.zeros(shape, input.dtype), jnp.full(shape, -1)
    largest, places = lax.fori_loop(0, jnp.max(count, initial=0), choose_larger, start)
    has_area = ((sizes[0] > 0) & (sizes[1] > 0))[:, jnp.newaxis, jnp.newaxis, jnp.newaxis]
    results = jnp.where(has_area, largest, 0), jnp.where(has_area, places, 0)
    return jnp.moveaxis(results[0], -1, 1), jnp.moveaxis(results[1], -1, 1)


@vendor.implements("diopiRoiPoolBackwardMmcv")
def roi_pool_backward(grad_input, grad_output, rois, argmax):
    """Return zeros with grad_output added at the positions of the maxima."""
    n, c, h, w = grad_input.shape
    places = jnp.where(argmax < 0, n * c * h * w, plane_numbers(rois, grad_output.shape) * h * w + argmax)
    return jnp.zeros(n * c * h * w, grad_output.dtype).at[places].add(grad_output, mode="drop").reshape(n, c, h, w)
