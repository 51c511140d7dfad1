"""Precise RoI pooling.

Each result is the exact integral of the interpolated map over a bin, divided by its area; it is differentiable with
respect to the region's coordinates.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.mmcv_roi.grid import Pair
from diopi_impl.jax_cpu.sampling import adjoint


def _hat_integral(x: Array) -> Array:
    """Return the integral of the hat function from −1 to x."""
    x = jnp.clip(x, -1, 1)
    return x + 0.5 - jnp.sign(x) * x**2 / 2


def _edges(rois: Array, scale: float, bins: Pair) -> tuple[list[Array], list[Array]]:
    """Return the edges of the bins, (R, bins + 1), and the width of a bin, (R,), for each of the axes H and W."""
    starts = [rois[:, 2] * scale, rois[:, 1] * scale]
    sizes = [jnp.maximum(rois[:, 4] - rois[:, 2], 0) * scale, jnp.maximum(rois[:, 3] - rois[:, 1], 0) * scale]
    widths = [size / n for size, n in zip(sizes, bins, strict=True)]
    edges = [
        start[:, jnp.newaxis] + width[:, jnp.newaxis] * jnp.arange(n + 1)
        for start, width, n in zip(starts, widths, bins, strict=True)
    ]
    return edges, widths


def _mean_weights(edges: Array, widths: Array, length: int) -> Array:
    """Return the weights of an axis's elements in the mean of each bin: (R, bins, length)."""
    integrals = _hat_integral(edges[..., jnp.newaxis] - jnp.arange(length))
    widths = widths[:, jnp.newaxis, jnp.newaxis]
    return jnp.where(widths > 0, jnp.diff(integrals, axis=1) / jnp.where(widths > 0, widths, 1), 0)


def _pool_regions(input: Array, rois: Array, scale: float, bins: Pair) -> Array:
    """Return, for each bin of each region, the mean of the bilinearly interpolated map."""
    edges, widths = _edges(rois, scale, bins)
    rows, columns = (_mean_weights(*axis) for axis in zip(edges, widths, input.shape[2:], strict=True))
    maps = input[rois[:, 0].astype(int)]
    return jnp.einsum("kph,kqw,kchw->kcpq", rows, columns, maps, precision="highest")


@vendor.implements("diopiPrroiPoolMmcv")
def prroi_pool(input, rois, pooled_height, pooled_width, spatial_scale):
    """Return the mean of the bilinear interpolation over each bin (Jiang et al., 2018)."""
    return _pool_regions(input, rois, spatial_scale, (pooled_height, pooled_width))


@vendor.implements("diopiPrroiPoolbackwardMmcv")
def prroi_pool_backward(grad_input, grad_output, rois, pooled_height, pooled_width, spatial_scale):
    """Return the gradient of the input."""
    zeros = jnp.zeros(grad_input.shape, grad_output.dtype)
    return adjoint(
        lambda maps: _pool_regions(maps, rois, spatial_scale, (pooled_height, pooled_width)), zeros, grad_output
    )


@vendor.implements("diopiPrroiPoolCoorBackwardMmcv")
def prroi_pool_coor_backward(output, grad_output, input, rois, pooled_height, pooled_width, spatial_scale):
    """Return the gradient of the regions, (R, 5): the formula of the paper, from the forward result `output`.

    The column of the sample index is 0, and so are all columns of a region without area.
    """
    edges, widths = _edges(rois, spatial_scale, (pooled_height, pooled_width))
    has_area = (widths[0] > 0) & (widths[1] > 0)
    maps, columns = input[rois[:, 0].astype(int)], [jnp.zeros(len(rois), input.dtype)] * 5
    for axis, names in ((0, "kph,kqw,kchw->kcqp"), (1, "kqw,kph,kchw->kcpq")):
        means = _mean_weights(edges[1 - axis], widths[1 - axis], input.shape[3 - axis])
        # the weights of the elements in the interpolated map at each edge
        hats = jnp.maximum(1 - jnp.abs(edges[axis][..., jnp.newaxis] - jnp.arange(input.shape[2 + axis])), 0)
        # the mean of the interpolated map along each edge
        lines = jnp.einsum(names, hats, means, maps, precision="highest")
        p, grad = (jnp.swapaxes(values, 2, 3) if axis == 0 else values for values in (output, grad_output))
        low, high = grad * (p - lines[..., :-1]), grad * (lines[..., 1:] - p)
        part = jnp.arange(grad.shape[-1] + 1, dtype=input.dtype) / grad.shape[-1]
        width = jnp.where(has_area, widths[axis], 1)
        # how much each edge moves with the region's first or last coordinate
        for column, share in ((2 - axis, 1 - part), (4 - axis, part)):
            total = (low * share[:-1] + high * share[1:]).sum((1, 2, 3))
            columns[column] = jnp.where(has_area, spatial_scale * total / width, 0)
    return jnp.stack(columns, 1)
