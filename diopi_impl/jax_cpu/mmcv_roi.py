"""MMCV's pooling of axis-aligned regions of interest (RoIs) on feature maps, forward and backward.

Regions have different numbers of samples a bin. So there is a loop over the samples, and each step makes one of every
bin of every region.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from diopi_impl.functional import ResultSpec
from diopi_impl.jax_cpu import detection, vendor
from diopi_impl.jax_cpu.sampling import Cells, adjoint, bordered, planes_of, rows_of, sampled

Pair = tuple[int, int]
"""Along H and along W."""

Shape = tuple[int, int, int, int]
"""Of feature maps: (N, C, H, W)."""

MAXIMUM, MEAN = 0, 1
"""The values of pool_mode."""

NO_SAMPLE = -float(np.finfo(np.float32).max)
"""What the largest of no samples is."""


def shape_of(maps: Array) -> Shape:
    """The shape of feature maps; ValueError if they have other axes than N, C, H, W."""
    if maps.ndim != 4:
        raise ValueError(f"feature maps have shape {maps.shape}, expected (N, C, H, W)")
    n, c, h, w = maps.shape
    return n, c, h, w


@final
class Samples:
    """The samples of regions on maps of a shape.

    Args:
        batch: the map each region is on: (R,).
        counts: samples a bin along H and W: (R,) each.
        places: from the number of a sample along each axis, (R,), to its position (R, bins along H, along W), y and x.
    """

    def __init__(
        self,
        shape: Shape,
        batch: Array,
        counts: tuple[Array, Array],
        places: Callable[[Array, Array], tuple[Array, Array]],
    ) -> None:
        self._shape, self._places = shape, places
        self._first = (batch.astype(int) * shape[2] * shape[3])[:, jnp.newaxis, jnp.newaxis]
        self._counts = [jnp.maximum(count, 0) for count in counts]
        self.count = self._counts[0] * self._counts[1]

    def each(self, add: Callable[[Any, Array, Array, Array], Any], start: Any) -> Any:
        """What `add` makes of `start` with y, x of each sample of all bins, and which regions have as many."""

        def step(number: Array, state: Any) -> Any:
            across = jnp.maximum(self._counts[1], 1)
            y, x = self._places(number // across, number % across)
            return add(state, y, x, (number < self.count)[:, jnp.newaxis, jnp.newaxis])

        return lax.fori_loop(0, jnp.max(self.count, initial=0), step, start)

    def on(self, rows: Array, y: Array, x: Array) -> Array:
        """One sample of every bin: (R, bins along H, along W, C)."""
        _, _, h, w = self._shape
        return self._sampled(rows, bordered(y, h), bordered(x, w))

    def _sampled(self, rows: Array, y: Cells, x: Cells) -> Array:
        return sampled(rows, lambda row, column: self._first + row * self._shape[3] + column, y, x)

    @property
    def _share(self) -> Array:
        """What each sample counts in the mean of its bin."""
        return (1 / jnp.maximum(self.count, 1))[:, jnp.newaxis, jnp.newaxis, jnp.newaxis]

    def mean(self, maps: Array, bins: Pair) -> Array:
        """Of each bin: (R, C, bins along H, along W)."""
        rows = rows_of(maps)

        def add(total: Array, y: Array, x: Array, has: Array) -> Array:
            return total + jnp.where(has[..., jnp.newaxis], self.on(rows, y, x), 0)

        total = self.each(add, jnp.zeros((len(self.count), *bins, maps.shape[1]), maps.dtype))
        return jnp.moveaxis(total * self._share.astype(maps.dtype), -1, 1)

    def adjoint_of_mean(self, grad: Array) -> Array:
        """What the maps get of grad (R, C, bins along H, along W)."""
        rows = jnp.zeros((self._shape[0] * self._shape[2] * self._shape[3], self._shape[1]), grad.dtype)
        given = jnp.moveaxis(grad, 1, -1) * self._share.astype(grad.dtype)

        def add(total: Array, y: Array, x: Array, has: Array) -> Array:
            of_bins = jnp.where(has[..., jnp.newaxis], given, 0)
            return total + adjoint(lambda rows: self.on(rows, y, x), rows, of_bins)

        return planes_of(self.each(add, rows), self._shape)


def counts_of(extents: tuple[Array, Array], bins: Pair, ratio: int) -> tuple[Array, Array]:
    """How many samples a bin has along each axis."""
    one, other = (
        jnp.full(extent.shape, ratio) if ratio > 0 else jnp.ceil(extent / n).astype(int)
        for extent, n in zip(extents, bins, strict=True)
    )
    return one, other


def step_of(extent: Array, bins: int, count: Array, number: Array) -> Array:
    """How far from the start of their regions samples of a number lie in each bin: (R, bins)."""
    extent, count, number = (one[:, jnp.newaxis] for one in (extent, count, number))
    return (jnp.arange(bins) + (number + 0.5) / jnp.maximum(count, 1)) * (extent / bins)


def _extents(rois: Array, scale: float, aligned: bool) -> tuple[list[Array], list[Array]]:
    """Where regions start, and how large they are, along H and W: (R,) each."""
    low = [rois[:, 2] * scale, rois[:, 1] * scale]
    sizes = [rois[:, 4] * scale - low[0], rois[:, 3] * scale - low[1]]
    if aligned:
        return [start - 0.5 for start in low], sizes
    return low, [jnp.maximum(size, 1) for size in sizes]


def _samples(
    shape: Shape, rois: Array, scale: float, bins: Pair, ratio: int, aligned: bool, shifts: Array | None = None
) -> Samples:
    """The samples of regions; those of each bin are moved by `shifts` (2, R, bins along H, along W)."""
    starts, extents = _extents(rois, scale, aligned)
    counts = counts_of((extents[0], extents[1]), bins, ratio)

    def places(row: Array, column: Array) -> tuple[Array, Array]:
        y = starts[0][:, jnp.newaxis] + step_of(extents[0], bins[0], counts[0], row)
        x = starts[1][:, jnp.newaxis] + step_of(extents[1], bins[1], counts[1], column)
        both = jnp.broadcast_arrays(y[:, :, jnp.newaxis], x[:, jnp.newaxis])
        return (both[0], both[1]) if shifts is None else (both[0] + shifts[0], both[1] + shifts[1])

    return Samples(shape, rois[:, 0], counts, places)


# RoiAlign


@vendor.implements("diopiRoiAlignMmcv")
def roi_align(
    input: Array,
    rois: Array,
    aligned_height: int,
    aligned_width: int,
    sampling_ratio: int,
    pool_mode: int,
    spatial_scale: float,
    aligned: bool,
    *,
    out: tuple[ResultSpec, ...],
) -> tuple[Array, ...]:
    if pool_mode == MEAN:
        attributes = spatial_scale, aligned_height, aligned_width, sampling_ratio, aligned
        return detection.roi_align(input, rois, *attributes), jnp.zeros(out[1].shape), jnp.zeros(out[2].shape)
    if pool_mode != MAXIMUM:
        raise ValueError(f"pool_mode is {pool_mode}, expected {MAXIMUM} for the maximum or {MEAN} for the mean")
    bins = (aligned_height, aligned_width)
    its, rows = _samples(shape_of(input), rois, spatial_scale, bins, sampling_ratio, aligned), rows_of(input)

    def larger(best: tuple[Array, ...], y: Array, x: Array, has: Array) -> tuple[Array, ...]:
        values = its.on(rows, y, x)
        is_larger = has[..., jnp.newaxis] & ((values > best[0]) | (best[1] == -1))
        given = values, y[..., jnp.newaxis], x[..., jnp.newaxis]
        return tuple(jnp.where(is_larger, new, old) for new, old in zip(given, best, strict=True))

    shape = (len(rois), *bins, input.shape[1])
    start = [jnp.full(shape, value, input.dtype) for value in (NO_SAMPLE, -1, -1)]
    return tuple(jnp.moveaxis(one, -1, 1) for one in its.each(larger, tuple(start)))


@vendor.implements("diopiRoiAlignBackwardMmcv")
def roi_align_backward(
    grad_input: Array,
    grad_output: Array,
    rois: Array,
    argmax_y: Array | None,
    argmax_x: Array | None,
    aligned_height: int,
    aligned_width: int,
    sampling_ratio: int,
    pool_mode: int,
    spatial_scale: float,
    aligned: bool,
) -> Array:
    if pool_mode == MEAN or argmax_y is None or argmax_x is None:
        bins, shape = (aligned_height, aligned_width), shape_of(grad_input)
        return detection.roi_align_backward(grad_output, rois, spatial_scale, *bins, *shape, sampling_ratio, aligned)
    given = jnp.where(argmax_y == -1, 0, grad_output)
    return _put_at(given, _planes(rois, grad_output.shape), argmax_y, argmax_x, shape_of(grad_input))


def _planes(rois: Array, shape: tuple[int, ...]) -> Array:
    """The number of the plane that each channel of each region is on: (R, C, 1, 1)."""
    channels = shape[1]
    first = rois[:, 0].astype(int) * channels
    return (first[:, jnp.newaxis] + jnp.arange(channels))[..., jnp.newaxis, jnp.newaxis]


def _put_at(grad: Array, planes: Array, y: Array, x: Array, shape: Shape) -> Array:
    """What maps get of numbers at positions, each on the plane with its number."""
    n, c, h, w = shape
    cells = bordered(y, h), bordered(x, w)

    def read(flat: Array) -> Array:
        return sampled(flat, lambda row, column: (planes * h + row) * w + column, *cells)[..., 0]

    return adjoint(read, jnp.zeros((n * c * h * w, 1), grad.dtype), grad).reshape(shape)


# RoiPool


def _cells(start: Array, extent: Array, bins: int, length: int) -> tuple[Array, Array]:
    """The first cell of each bin along an axis, and the one after the last: (R, bins)."""
    start, width, number = start[:, jnp.newaxis], (extent / bins)[:, jnp.newaxis], jnp.arange(bins)
    first = jnp.floor(number * width + start)
    after = jnp.ceil((number + 1) * width + start)
    return jnp.clip(first, 0, length).astype(int), jnp.clip(after, 0, length).astype(int)


@vendor.implements("diopiRoiPoolMmcv")
def roi_pool(
    output: Array,
    argmax: Array,
    input: Array,
    rois: Array,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
) -> tuple[Array, Array]:
    _, c, h, w = input.shape
    low = [rois[:, 2] * spatial_scale, rois[:, 1] * spatial_scale]
    sizes = [(rois[:, 4] + 1) * spatial_scale - low[0], (rois[:, 3] + 1) * spatial_scale - low[1]]
    (top, bottom), (left, right) = (
        _cells(start, size, bins, length)
        for start, size, bins, length in zip(low, sizes, (pooled_height, pooled_width), (h, w), strict=True)
    )
    height, width = (bottom - top)[:, :, jnp.newaxis], (right - left)[:, jnp.newaxis]
    count = jnp.maximum(height, 0) * jnp.maximum(width, 0)
    rows, first = rows_of(input), (rois[:, 0].astype(int) * h * w)[:, jnp.newaxis, jnp.newaxis]

    def larger(number: Array, best: tuple[Array, Array]) -> tuple[Array, Array]:
        y = top[:, :, jnp.newaxis] + number // jnp.maximum(width, 1)
        x = left[:, jnp.newaxis] + number % jnp.maximum(width, 1)
        place = jnp.clip(y, 0, h - 1) * w + jnp.clip(x, 0, w - 1)
        values = rows[first + place]
        is_larger = (number < count)[..., jnp.newaxis] & ((values > best[0]) | (best[1] < 0))
        return jnp.where(is_larger, values, best[0]), jnp.where(is_larger, place[..., jnp.newaxis], best[1])

    shape = (len(rois), pooled_height, pooled_width, c)
    start = jnp.zeros(shape, input.dtype), jnp.full(shape, -1)
    largest, places = lax.fori_loop(0, jnp.max(count, initial=0), larger, start)
    has_area = ((sizes[0] > 0) & (sizes[1] > 0))[:, jnp.newaxis, jnp.newaxis, jnp.newaxis]
    both = jnp.where(has_area, largest, 0), jnp.where(has_area, places, 0)
    return jnp.moveaxis(both[0], -1, 1), jnp.moveaxis(both[1], -1, 1)


@vendor.implements("diopiRoiPoolBackwardMmcv")
def roi_pool_backward(
    grad_input: Array,
    grad_output: Array,
    rois: Array,
    argmax: Array,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
) -> Array:
    n, c, h, w = grad_input.shape
    places = jnp.where(argmax < 0, n * c * h * w, _planes(rois, grad_output.shape) * h * w + argmax)
    return jnp.zeros(n * c * h * w, grad_output.dtype).at[places].add(grad_output, mode="drop").reshape(n, c, h, w)


# DeformRoiPool


def _shifts(rois: Array, offset: Array | None, scale: float, gamma: float) -> Array | None:
    """How far the samples of each bin move along H and W: (2, R, bins along H, along W)."""
    if offset is None or not offset.size:
        return None
    sizes = jnp.stack([(rois[:, 4] - rois[:, 2]) * scale, (rois[:, 3] - rois[:, 1]) * scale])
    return gamma * sizes[..., jnp.newaxis, jnp.newaxis] * jnp.moveaxis(offset, 1, 0)[::-1]


def _check_offset(offset: Array | None, rois: Array, bins: Pair) -> None:
    if offset is not None and offset.size and offset.shape != (len(rois), 2, *bins):
        raise ValueError(f"offset has shape {offset.shape}, expected {(len(rois), 2, *bins)}, or no elements")


@vendor.implements("diopiDeformRoiPoolMmcv")
def deform_roi_pool(
    input: Array,
    rois: Array,
    offset: Array | None,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    spatial_scale: float,
    gamma: float,
) -> Array:
    bins = (pooled_height, pooled_width)
    _check_offset(offset, rois, bins)
    shifts = _shifts(rois, offset, spatial_scale, gamma)
    return _samples(shape_of(input), rois, spatial_scale, bins, sampling_ratio, True, shifts).mean(input, bins)


@vendor.implements("diopiDeformRoiPoolBackwardMmcv")
def deform_roi_pool_backward(
    grad_input: Array,
    grad_offset: Array | None,
    grad_output: Array,
    input: Array,
    rois: Array,
    offset: Array | None,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    spatial_scale: float,
    gamma: float,
) -> tuple[Array, Array | None]:
    bins = (pooled_height, pooled_width)
    _check_offset(offset, rois, bins)
    shifts = _shifts(rois, offset, spatial_scale, gamma)
    its = _samples(shape_of(input), rois, spatial_scale, bins, sampling_ratio, True, shifts)
    to_input = its.adjoint_of_mean(grad_output)
    if grad_offset is None or offset is None or not offset.size:
        return to_input, grad_offset
    rows, given = rows_of(input), jnp.moveaxis(grad_output, 1, -1)

    def add(total: Array, y: Array, x: Array, has: Array) -> Array:
        slopes = jax.vjp(lambda y, x: its.on(rows, y, x), y, x)[1](given)
        return total + jnp.where(has, jnp.stack(slopes), 0)

    total = its.each(add, jnp.zeros((2, len(rois), *bins), input.dtype))
    means = total / jnp.maximum(its.count, 1)[:, jnp.newaxis, jnp.newaxis].astype(input.dtype)
    (to_offset,) = jax.vjp(lambda offset: _shifts(rois, offset, spatial_scale, gamma), offset)[1](means)
    return to_input, to_offset


# Precise RoI pooling


def _hat_integral(x: Array) -> Array:
    """∫ of the hat from −1 to x."""
    x = jnp.clip(x, -1, 1)
    return x + 0.5 - jnp.sign(x) * x**2 / 2


def _edges(rois: Array, scale: float, bins: Pair) -> tuple[list[Array], list[Array]]:
    """Edges of the bins along H and W, (R, bins + 1), and how wide they are, (R,)."""
    starts = [rois[:, 2] * scale, rois[:, 1] * scale]
    sizes = [jnp.maximum(rois[:, 4] - rois[:, 2], 0) * scale, jnp.maximum(rois[:, 3] - rois[:, 1], 0) * scale]
    widths = [size / n for size, n in zip(sizes, bins, strict=True)]
    edges = [
        start[:, jnp.newaxis] + width[:, jnp.newaxis] * jnp.arange(n + 1)
        for start, width, n in zip(starts, widths, bins, strict=True)
    ]
    return edges, widths


def _means(edges: Array, widths: Array, length: int) -> Array:
    """The weights of an axis's elements in the mean over each bin: (R, bins, length)."""
    integrals = _hat_integral(edges[..., jnp.newaxis] - jnp.arange(length))
    widths = widths[:, jnp.newaxis, jnp.newaxis]
    return jnp.where(widths > 0, jnp.diff(integrals, axis=1) / jnp.where(widths > 0, widths, 1), 0)


def _precise(input: Array, rois: Array, scale: float, bins: Pair) -> Array:
    edges, widths = _edges(rois, scale, bins)
    rows, columns = (_means(*axis) for axis in zip(edges, widths, input.shape[2:], strict=True))
    maps = input[rois[:, 0].astype(int)]
    return jnp.einsum("kph,kqw,kchw->kcpq", rows, columns, maps, precision="highest")


@vendor.implements("diopiPrroiPoolMmcv")
def prroi_pool(input: Array, rois: Array, pooled_height: int, pooled_width: int, spatial_scale: float) -> Array:
    return _precise(input, rois, spatial_scale, (pooled_height, pooled_width))


@vendor.implements("diopiPrroiPoolbackwardMmcv")
def prroi_pool_backward(
    grad_input: Array,
    grad_output: Array,
    rois: Array,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
) -> Array:
    zeros = jnp.zeros(grad_input.shape, grad_output.dtype)
    return adjoint(lambda maps: _precise(maps, rois, spatial_scale, (pooled_height, pooled_width)), zeros, grad_output)


@vendor.implements("diopiPrroiPoolCoorBackwardMmcv")
def prroi_pool_coor_backward(
    grad_rois: Array,
    output: Array,
    grad_output: Array,
    input: Array,
    rois: Array,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
) -> Array:
    edges, widths = _edges(rois, spatial_scale, (pooled_height, pooled_width))
    has_area = (widths[0] > 0) & (widths[1] > 0)
    maps, columns = input[rois[:, 0].astype(int)], [jnp.zeros(len(rois), input.dtype)] * 5
    for axis, names in ((0, "kph,kqw,kchw->kcqp"), (1, "kqw,kph,kchw->kcpq")):
        means = _means(edges[1 - axis], widths[1 - axis], input.shape[3 - axis])
        hats = jnp.maximum(1 - jnp.abs(edges[axis][..., jnp.newaxis] - jnp.arange(input.shape[2 + axis])), 0)
        lines = jnp.einsum(names, hats, means, maps, precision="highest")
        p, given = (jnp.swapaxes(one, 2, 3) if axis == 0 else one for one in (output, grad_output))
        low, high = given * (p - lines[..., :-1]), given * (lines[..., 1:] - p)
        part = jnp.arange(given.shape[-1] + 1, dtype=input.dtype) / given.shape[-1]
        width = jnp.where(has_area, widths[axis], 1)
        for column, share in ((2 - axis, 1 - part), (4 - axis, part)):
            total = (low * share[:-1] + high * share[1:]).sum((1, 2, 3))
            columns[column] = jnp.where(has_area, spatial_scale * total / width, 0)
    return jnp.stack(columns, 1)


# BorderAlign


def _border_points(boxes: Array, pool_size: int, number: Array) -> tuple[Array, Array]:
    """Where the points of a number (…, K, borders) are on the borders of boxes (…, K, 4): y and x."""
    if pool_size < 1:
        raise ValueError(f"pool_size is {pool_size}, expected 1 or more")
    x1, y1, x2, y2 = (boxes[..., k] for k in range(4))
    down, across = jnp.array([0, 1, 0, -1]), jnp.array([1, 0, -1, 0])
    y = jnp.stack([y1, y1, y2, y2], -1) + down * (number * (y2 - y1)[..., jnp.newaxis] / pool_size)
    x = jnp.stack([x1, x1, x2, x2], -1) + across * (number * (x2 - x1)[..., jnp.newaxis] / pool_size)
    return y, x


@vendor.implements("diopiBorderAlignMmcv")
def border_align(input: Array, boxes: Array, pool_size: int) -> tuple[Array, Array]:
    n, c, h, w = input.shape
    rows = rows_of(input.reshape(n * 4, c // 4, h, w))
    first = (jnp.arange(n * 4) * h * w).reshape(n, 1, 4)

    def larger(number: Array, best: tuple[Array, Array]) -> tuple[Array, Array]:
        y, x = _border_points(boxes, pool_size, number)
        values = sampled(rows, lambda row, column: first + row * w + column, bordered(y, h), bordered(x, w))
        is_larger = (values > best[0]) | (number == 0)
        return jnp.where(is_larger, values, best[0]), jnp.where(is_larger, number, best[1])

    shape = (n, boxes.shape[1], 4, c // 4)
    start = jnp.zeros(shape, input.dtype), jnp.zeros(shape, int)
    largest, places = lax.fori_loop(0, pool_size + 1, larger, start)
    return jnp.moveaxis(largest, -1, 1), jnp.moveaxis(places, -1, 1)


@vendor.implements("diopiBorderAlignBackwardMmcv")
def border_align_backward(
    grad_input: Array, grad_output: Array, boxes: Array, argmax_idx: Array, pool_size: int
) -> Array:
    n, c, h, w = grad_input.shape
    planes = jnp.moveaxis(jnp.arange(n * c).reshape(n, 4, c // 4, 1), 1, -1)
    y, x = _border_points(boxes[:, jnp.newaxis], pool_size, argmax_idx)
    return _put_at(grad_output, planes, y, x, (n, c, h, w))
