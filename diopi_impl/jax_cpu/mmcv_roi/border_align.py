"""BorderAlign: the largest sample on each border of a box.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.mmcv_roi.grid import scatter_to_maps
from diopi_impl.jax_cpu.sampling import border_cells, planes_to_rows, sample_bilinear


def _border_points(boxes: Array, pool_size: int, number: Array) -> tuple[Array, Array]:
    """Return y and x of the points `number` (…, K, borders) on the borders of boxes (…, K, 4)."""
    if pool_size < 1:
        raise ValueError(f"pool_size is {pool_size}, expected 1 or more")
    x1, y1, x2, y2 = (boxes[..., k] for k in range(4))
    y_steps, x_steps = jnp.array([0, 1, 0, -1]), jnp.array([1, 0, -1, 0])
    y = jnp.stack([y1, y1, y2, y2], -1) + y_steps * (number * (y2 - y1)[..., jnp.newaxis] / pool_size)
    x = jnp.stack([x1, x1, x2, x2], -1) + x_steps * (number * (x2 - x1)[..., jnp.newaxis] / pool_size)
    return y, x


@vendor.implements("diopiBorderAlignMmcv")
def border_align(input, boxes, pool_size):
    """Return the largest sample on each border of each box, and the number of its point (Qiu et al., 2020)."""
    n, c, h, w = input.shape
    rows = planes_to_rows(input.reshape(n * 4, c // 4, h, w))
    first = (jnp.arange(n * 4) * h * w).reshape(n, 1, 4)

    def choose_larger(number: Array, best: tuple[Array, Array]) -> tuple[Array, Array]:
        """Replace the best samples where the samples of the next point are larger."""
        y, x = _border_points(boxes, pool_size, number)
        values = sample_bilinear(
            rows, lambda row, column: first + row * w + column, border_cells(y, h), border_cells(x, w)
        )
        is_larger = (values > best[0]) | (number == 0)
        return jnp.where(is_larger, values, best[0]), jnp.where(is_larger, number, best[1])

    shape = (n, boxes.shape[1], 4, c // 4)
    start = jnp.zeros(shape, input.dtype), jnp.zeros(shape, int)
    largest, places = lax.fori_loop(0, pool_size + 1, choose_larger, start)
    return jnp.moveaxis(largest, -1, 1), jnp.moveaxis(places, -1, 1)


@vendor.implements("diopiBorderAlignBackwardMmcv")
def border_align_backward(grad_input, grad_output, boxes, argmax_idx, pool_size):
    """Return the gradient of the input."""
    n, c, h, w = grad_input.shape
    planes = jnp.moveaxis(jnp.arange(n * c).reshape(n, 4, c // 4, 1), 1, -1)
    y, x = _border_points(boxes[:, jnp.newaxis], pool_size, argmax_idx)
    return scatter_to_maps(grad_output, planes, y, x, (n, c, h, w))
