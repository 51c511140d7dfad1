"""MMCV's pooling of axis-aligned regions of interest (RoIs) on feature maps, forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from math import ceil, floor
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_test.cases.model import ResultOverride
from diopi_test.oracle.reference import PartlySpecified, WithTerms, reference
from diopi_test.oracle.reference.detection import roi_align as mean_roi_align
from diopi_test.oracle.reference.detection import roi_align_backward as mean_roi_align_backward
from diopi_test.oracle.reference.sampling import (
    Coordinate,
    Samples,
    bordered,
    combined,
    exact,
    put,
    samples,
    scaled,
    stacked,
    taken,
)
from diopi_test.oracle.reference.weights import Weights, weighted

Array = NDArray[Any]
Pair = tuple[int, int]
"""Along H and along W."""

MEAN = 1
"""The pool_mode of RoiAlign that is not the maximum."""

NO_SAMPLE = -float(np.finfo(np.float32).max)
"""What the largest of no samples is."""


def _sample(roi: Array) -> int:
    """Which feature map of the batch a region is on."""
    return round(float(roi[0]))


def _flat(maps: Array) -> Array:
    """(…, H, W) as planes (…, H·W)."""
    return maps.reshape(*maps.shape[:-2], maps.shape[-2] * maps.shape[-1])


@final
@dataclass(frozen=True)
class Grid:
    """The samples of one region, (bins along H, along W, points), and how many points a bin has along each axis."""

    y: Coordinate
    x: Coordinate

    @property
    def count(self) -> int:
        """Points a bin, at least 1, by which means are divided."""
        return max(self.y.value.shape[2], 1)

    def on(self, size: Pair) -> Samples:
        """The samples on planes of this size."""
        return samples(bordered(self.y, size[0]), bordered(self.x, size[1]), size[1])


def spread(extent: float, bins: int, ratio: int) -> Array:
    """How far from the region's start the samples are along an axis: (bins, points)."""
    count = max(ratio if ratio > 0 else ceil(extent / bins), 0)
    return (np.arange(bins * count).reshape(bins, count) + 0.5) * extent / bins / max(count, 1)


def crossed(rows: Coordinate, columns: Coordinate) -> Grid:
    """The points of both axes' samples; the coordinates are (bins along H, along W, points along their own axis)."""
    (ph, pw, gh), gw = rows.value.shape, columns.value.shape[2]

    def of(given: Array, axis: int) -> Array:
        return np.broadcast_to(np.expand_dims(given, axis), (ph, pw, gh, gw)).reshape(ph, pw, gh * gw)

    return Grid(
        Coordinate(of(rows.value, 3), of(rows.terms, 3)), Coordinate(of(columns.value, 2), of(columns.terms, 2))
    )


def _extents(roi: Array, scale: float, aligned: bool) -> tuple[Array, Array]:
    """Where a region starts, and how large it is, along H and W."""
    low, high = roi[[2, 1]] * scale, roi[[4, 3]] * scale
    return (low - 0.5, high - low) if aligned else (low, np.maximum(high - low, 1))


def _grid(roi: Array, scale: float, bins: Pair, ratio: int, aligned: bool, shifts: Array) -> Grid:
    """The samples of a region, those of each bin moved by shifts (2, bins along H, along W)."""
    starts, extents = _extents(roi, scale, aligned)
    coordinates = []
    for axis, (start, extent) in enumerate(zip(starts, extents, strict=True)):
        steps = np.expand_dims(spread(float(extent), bins[axis], ratio), 1 - axis)
        at = (start + shifts[axis])[..., np.newaxis] + steps
        terms = (1 + abs(start) + np.abs(shifts[axis]))[..., np.newaxis] + np.abs(steps)
        coordinates.append(Coordinate(at, terms))
    return crossed(*coordinates)


def mean_of(grid: Grid, maps: Array) -> WithTerms:
    """The mean of each bin's samples of maps (C, H, W): (C, bins along H, along W)."""
    its = grid.on((maps.shape[1], maps.shape[2]))

    def sums(weights: Array, planes: Array) -> Array:
        return np.asarray(taken(its.index)(weights, planes).sum(-1))

    return combined(sums, scaled(1 / grid.count, its.weight), exact(_flat(maps)))


def adjoint_of_mean(grid: Grid, grad: Array, size: Pair) -> WithTerms:
    """What maps of this size get of grad (C, bins along H, along W)."""
    its = grid.on(size)
    given = np.broadcast_to(grad[..., np.newaxis], (*grad.shape, its.index.shape[-1]))
    summed = combined(put(its.index, size[0] * size[1]), scaled(1 / grid.count, its.weight), exact(given))
    return stacked([summed], (len(grad), *size))


def pooled(rois: Array, shape: tuple[int, ...], of_roi: Callable[[int, Array], WithTerms]) -> WithTerms:
    """The results of all regions as one of this shape."""
    return stacked([of_roi(number, roi) for number, roi in enumerate(rois)], shape)


def gathered(rois: Array, shape: tuple[int, ...], of_roi: Callable[[int, Array], WithTerms]) -> WithTerms:
    """Sums of what all regions give the feature maps they are on."""
    values, terms = np.zeros((2, *shape))
    for number, roi in enumerate(rois):
        given = of_roi(number, roi)
        values[_sample(roi)] += given.value
        terms[_sample(roi)] += given.terms
    return WithTerms(values, terms)


# RoiAlign


@reference("diopiRoiAlignMmcv")
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
    out: tuple[ResultOverride, ...],
) -> tuple[Any, Any, Any]:
    if pool_mode == MEAN:
        attributes = spatial_scale, aligned_height, aligned_width, sampling_ratio, aligned
        nothing = [PartlySpecified(np.zeros(one.shape or (0,)), specified=False) for one in out[1:]]
        return mean_roi_align(input, rois, *attributes), nothing[0], nothing[1]
    bins, shape = (aligned_height, aligned_width), (len(rois), input.shape[1], aligned_height, aligned_width)
    parts = [_largest(roi, input, spatial_scale, bins, sampling_ratio, aligned) for roi in rois]
    value, y, x = (stacked([part[k] for part in parts], shape) for k in range(3))
    return value, y, x


def _largest(
    roi: Array, input: Array, scale: float, bins: Pair, ratio: int, aligned: bool
) -> tuple[WithTerms, WithTerms, WithTerms]:
    """The largest sample of each bin, and where it is."""
    grid = _grid(roi, scale, bins, ratio, aligned, np.zeros((2, *bins)))
    its, maps = grid.on((input.shape[2], input.shape[3])), input[_sample(roi)]
    values = combined(taken(its.index), its.weight, exact(_flat(maps)))
    if not its.index.size:
        nothing = np.full((len(maps), *bins), NO_SAMPLE)
        return exact(nothing), exact(-np.ones(nothing.shape)), exact(-np.ones(nothing.shape))
    best = np.argmax(values.value, -1)[..., np.newaxis]

    def chosen(given: WithTerms) -> WithTerms:
        both = (np.broadcast_to(one, values.value.shape) for one in (given.value, given.terms))
        return WithTerms(*(np.take_along_axis(one, best, -1)[..., 0] for one in both))

    y, x = (chosen(WithTerms(at.value, at.terms)) for at in (grid.y, grid.x))
    return chosen(values), y, x


@reference("diopiRoiAlignBackwardMmcv")
def roi_align_backward(
    grad_input: Array,
    grad_output: Array,
    rois: Array,
    argmax_y: Array,
    argmax_x: Array,
    aligned_height: int,
    aligned_width: int,
    sampling_ratio: int,
    pool_mode: int,
    spatial_scale: float,
    aligned: bool,
) -> WithTerms:
    shape = grad_input.shape
    if pool_mode == MEAN:
        attributes = spatial_scale, aligned_height, aligned_width, *shape, sampling_ratio, aligned
        return mean_roi_align_backward(grad_output, rois, *attributes)
    there = argmax_y != -1

    def of_roi(number: int, roi: Array) -> WithTerms:
        given = np.where(there[number], grad_output[number], 0)
        return at_places(argmax_y[number], argmax_x[number], given, (shape[2], shape[3]))

    return gathered(rois, shape, of_roi)


def at_places(y: Array, x: Array, grad: Array, size: Pair) -> WithTerms:
    """What maps of this size get of grad (C, …), each channel at places (C, …) of its own."""
    parts = []
    for row, column, given in zip(y, x, grad, strict=True):
        rows, columns = (Coordinate(at, np.abs(at)) for at in (row, column))
        its = samples(bordered(rows, size[0]), bordered(columns, size[1]), size[1])
        parts.append(combined(put(its.index, size[0] * size[1]), its.weight, exact(given[np.newaxis])))
    return stacked(parts, (len(grad), *size))


# RoiPool


def _cells(start: float, extent: float, bins: int, length: int) -> list[range]:
    """The cells of each bin along an axis."""

    def clipped(edge: int) -> int:
        return min(max(edge, 0), length)

    edges = [(start + i * extent / bins, start + (i + 1) * extent / bins) for i in range(bins)]
    return [range(clipped(floor(low)), clipped(ceil(high))) for low, high in edges]


@reference("diopiRoiPoolMmcv")
def roi_pool(
    output: Array,
    argmax: Array,
    input: Array,
    rois: Array,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
) -> tuple[Array, Array]:
    largest, places = np.zeros(output.shape), np.zeros(argmax.shape, np.int64)
    for number, roi in enumerate(rois):
        low, high = roi[[2, 1]] * spatial_scale, (roi[[4, 3]] + 1) * spatial_scale
        extents = high - low
        if (extents <= 0).any():
            continue
        bins, lengths = (pooled_height, pooled_width), input.shape[2:]
        rows, columns = (_cells(*axis) for axis in zip(low, extents, bins, lengths, strict=True))
        for i, j in product(range(pooled_height), range(pooled_width)):
            cells = input[_sample(roi)][:, rows[i].start : rows[i].stop, columns[j].start : columns[j].stop]
            if not cells.size:
                places[number, :, i, j] = -1
                continue
            best = np.argmax(cells.reshape(len(cells), -1), -1)
            y, x = np.unravel_index(best, cells.shape[1:])
            largest[number, :, i, j] = cells[np.arange(len(cells)), y, x]
            places[number, :, i, j] = (y + rows[i].start) * input.shape[3] + x + columns[j].start
    return largest, places


@reference("diopiRoiPoolBackwardMmcv")
def roi_pool_backward(
    grad_input: Array,
    grad_output: Array,
    rois: Array,
    argmax: Array,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
) -> WithTerms:
    shape = grad_input.shape

    def of_channel(given: Array, places: Array) -> WithTerms:
        there = (places >= 0)[np.newaxis] * 1.0
        return combined(
            put(np.maximum(places, 0)[np.newaxis], shape[2] * shape[3]), exact(there), exact(given[np.newaxis])
        )

    def of_roi(number: int, roi: Array) -> WithTerms:
        channels = zip(grad_output[number], argmax[number], strict=True)
        return stacked([of_channel(*channel) for channel in channels], shape[1:])

    return gathered(rois, shape, of_roi)


# DeformRoiPool


def _shifts(rois: Array, offset: Array | None, scale: float, gamma: float, bins: Pair) -> Array:
    """How far the samples of each bin move along H and W: (R, 2, bins along H, along W)."""
    if offset is None or not offset.size:
        return np.zeros((len(rois), 2, *bins))
    return gamma * offset[:, ::-1] * _sizes(rois, scale)[..., np.newaxis, np.newaxis]


def _sizes(rois: Array, scale: float) -> Array:
    """Of regions along H and W: (R, 2)."""
    return (rois[:, [4, 3]] - rois[:, [2, 1]]) * scale


@reference("diopiDeformRoiPoolMmcv")
def deform_roi_pool(
    input: Array,
    rois: Array,
    offset: Array | None,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    spatial_scale: float,
    gamma: float,
) -> WithTerms:
    bins = (pooled_height, pooled_width)
    shifts = _shifts(rois, offset, spatial_scale, gamma, bins)

    def of_roi(number: int, roi: Array) -> WithTerms:
        return mean_of(_grid(roi, spatial_scale, bins, sampling_ratio, True, shifts[number]), input[_sample(roi)])

    return pooled(rois, (len(rois), input.shape[1], *bins), of_roi)


@reference("diopiDeformRoiPoolBackwardMmcv")
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
) -> tuple[WithTerms, Any]:
    bins, size = (pooled_height, pooled_width), (input.shape[2], input.shape[3])
    shifts = _shifts(rois, offset, spatial_scale, gamma, bins)
    grids = [_grid(roi, spatial_scale, bins, sampling_ratio, True, its) for roi, its in zip(rois, shifts, strict=True)]

    def of_roi(number: int, roi: Array) -> WithTerms:
        return adjoint_of_mean(grids[number], grad_output[number], size)

    to_input = gathered(rois, input.shape, of_roi)
    if grad_offset is None or offset is None or not offset.size:
        return to_input, None if grad_offset is None else exact(np.zeros(grad_offset.shape))
    slopes = [
        _slopes(grid, input[_sample(roi)], grad) for grid, roi, grad in zip(grids, rois, grad_output, strict=True)
    ]
    factors = gamma * _sizes(rois, spatial_scale)[:, ::-1, np.newaxis, np.newaxis]
    to_offset = scaled(factors, stacked([both for both, _ in slopes], grad_offset.shape))
    inside = np.reshape([free for _, free in slopes], (len(rois), 1, *bins))
    return to_input, PartlySpecified(to_offset, np.broadcast_to(inside, grad_offset.shape))


def _slopes(grid: Grid, maps: Array, grad: Array) -> tuple[WithTerms, Array]:
    """The sum over channels of grad times the derivatives of the means by x and y: (2, bins along H, along W).

    And in which bins all samples are where the derivatives are specified.
    """
    size = (maps.shape[1], maps.shape[2])
    its = grid.on(size)

    def over_channels(slopes: Array, given: Array) -> Array:
        return np.einsum("cijs,cij->ij", slopes, given)

    along = [combined(taken(its.index), by, exact(_flat(maps))) for by in (its.by_x, its.by_y)]
    parts = [combined(over_channels, scaled(1 / grid.count, one), exact(grad)) for one in along]
    free = [
        (at.value >= 0) & (at.value <= length - 1) & at.is_between
        for at, length in zip((grid.y, grid.x), size, strict=True)
    ]
    return stacked(parts, (2, *grad.shape[1:])), np.all(free[0] & free[1], -1)


# Precise RoI pooling


def _hat(x: Array) -> Array:
    return np.maximum(1 - np.abs(x), 0)


def _hat_integral(x: Array) -> Array:
    """∫ of the hat from −1 to x."""
    x = np.clip(x, -1, 1)
    return x + 0.5 - np.sign(x) * x**2 / 2


def _edges(roi: Array, scale: float, bins: Pair) -> tuple[list[Array], Array]:
    """Edges of the bins along H and W, and how wide they are."""
    starts = roi[[2, 1]] * scale
    widths = np.maximum(roi[[4, 3]] - roi[[2, 1]], 0) * scale / bins
    return [start + width * np.arange(n + 1) for start, width, n in zip(starts, widths, bins, strict=True)], widths


def _means(edges: Array, width: float, length: int) -> Weights:
    """The weights of an axis's elements in the mean over each bin; none where bins have no width."""
    if width == 0:
        return Weights(np.zeros((len(edges) - 1, length)), np.zeros((len(edges) - 1, length)))
    integrals = _hat_integral(edges[:, np.newaxis] - np.arange(length))
    matrix = np.diff(integrals, axis=0) / width
    terms = (1 + np.abs(edges[:-1]) + np.abs(edges[1:])) / width
    return Weights(matrix, (matrix > 0) * terms[:, np.newaxis])


def _axes(roi: Array, scale: float, bins: Pair, size: Pair) -> list[Weights]:
    edges, widths = _edges(roi, scale, bins)
    axes = [_means(one, float(width), length) for one, width, length in zip(edges, widths, size, strict=True)]
    return axes if (widths > 0).all() else [Weights(one.matrix * 0, one.terms * 0) for one in axes]


@reference("diopiPrroiPoolMmcv")
def prroi_pool(input: Array, rois: Array, pooled_height: int, pooled_width: int, spatial_scale: float) -> WithTerms:
    bins, size = (pooled_height, pooled_width), (input.shape[2], input.shape[3])

    def of_roi(number: int, roi: Array) -> WithTerms:
        return weighted(_axes(roi, spatial_scale, bins, size), input[_sample(roi)])

    return pooled(rois, (len(rois), input.shape[1], *bins), of_roi)


@reference("diopiPrroiPoolbackwardMmcv")
def prroi_pool_backward(
    grad_input: Array,
    grad_output: Array,
    rois: Array,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
) -> WithTerms:
    bins, size = (pooled_height, pooled_width), (grad_input.shape[2], grad_input.shape[3])

    def of_roi(number: int, roi: Array) -> WithTerms:
        axes = [axis.transposed for axis in _axes(roi, spatial_scale, bins, size)]
        return weighted(axes, grad_output[number])

    return gathered(rois, grad_input.shape, of_roi)


@reference("diopiPrroiPoolCoorBackwardMmcv")
def prroi_pool_coor_backward(
    grad_rois: Array,
    output: Array,
    grad_output: Array,
    input: Array,
    rois: Array,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
) -> WithTerms:
    values, terms = np.zeros((2, *grad_rois.shape))
    for number, roi in enumerate(rois):
        edges, widths = _edges(roi, spatial_scale, (pooled_height, pooled_width))
        if (widths <= 0).any():
            continue
        for axis, columns in ((0, [2, 4]), (1, [1, 3])):
            parts = _edge_gradient(edges, widths, axis, input[_sample(roi)], output[number], grad_output[number])
            values[number, columns], terms[number, columns] = np.array(parts) * spatial_scale
    return WithTerms(values, terms)


def _edge_gradient(
    edges: list[Array], widths: Array, axis: int, maps: Array, output: Array, grad: Array
) -> tuple[Array, Array]:
    """The gradient by both ends of a region along an axis, in cells, and the size of its terms."""
    means = _means(edges[1 - axis], float(widths[1 - axis]), maps.shape[2 - axis])
    hats = _hat(edges[axis][:, np.newaxis] - np.arange(maps.shape[1 + axis]))
    on_edges = Weights(hats, (hats > 0) * (1 + np.abs(edges[axis]))[:, np.newaxis])
    lines = weighted([on_edges, means] if axis == 0 else [means, on_edges], maps)
    mean, size, given, p = (np.moveaxis(one, 1 + axis, -1) for one in (lines.value, lines.terms, grad, output))
    parts = np.arange(given.shape[-1] + 1) / given.shape[-1]
    shares = np.array([1 - parts, parts])  # how far each edge moves with either end

    def summed(low: Array, high: Array, given: Array) -> Array:
        return np.array([np.sum(given * (low * share[:-1] + high * share[1:])) for share in shares]) / widths[axis]

    value = summed(p - mean[..., :-1], mean[..., 1:] - p, given)
    size = np.abs(mean) + size
    return value, summed(np.abs(p) + size[..., :-1], np.abs(p) + size[..., 1:], np.abs(given))


# BorderAlign


def _border_points(boxes: Array, pool_size: int) -> tuple[Coordinate, Coordinate]:
    """The points on the borders of boxes (K, 4): (K, borders, points), y and x."""
    x1, y1, x2, y2 = boxes.T
    part = np.arange(pool_size + 1) / pool_size
    across, down = ((high - low)[:, np.newaxis] * part for low, high in ((x1, x2), (y1, y2)))
    x1, y1, x2, y2 = (one[:, np.newaxis] + 0 * part for one in (x1, y1, x2, y2))
    y = np.stack([y1, y1 + down, y2, y2 - down], 1)
    x = np.stack([x1 + across, x1, x2 - across, x2], 1)
    corners = np.abs(boxes).max(-1)[:, np.newaxis, np.newaxis]
    return Coordinate(y, 0 * y + 2 * corners), Coordinate(x, 0 * x + 2 * corners)


def _at(coordinate: Coordinate, border: int) -> Coordinate:
    return Coordinate(coordinate.value[:, border], coordinate.terms[:, border])


@reference("diopiBorderAlignMmcv")
def border_align(input: Array, boxes: Array, pool_size: int) -> tuple[WithTerms, Array]:
    n, c, h, w = input.shape
    shape = (n, 4, c // 4, boxes.shape[1])
    planes = input.reshape(n, 4, c // 4, h * w)
    values, places = [], np.zeros(shape, np.int64)
    for image, border in product(range(n), range(4)):
        y, x = (_at(one, border) for one in _border_points(boxes[image], pool_size))
        its = samples(bordered(y, h), bordered(x, w), w)
        given = combined(taken(its.index), its.weight, exact(planes[image, border]))
        best = np.argmax(given.value, -1)
        places[image, border] = best
        values.append(
            WithTerms(
                *(np.take_along_axis(one, best[..., np.newaxis], -1)[..., 0] for one in (given.value, given.terms))
            )
        )
    largest = stacked(values, shape)
    return WithTerms(np.moveaxis(largest.value, 1, 3), np.moveaxis(largest.terms, 1, 3)), np.moveaxis(places, 1, 3)


@reference("diopiBorderAlignBackwardMmcv")
def border_align_backward(
    grad_input: Array, grad_output: Array, boxes: Array, argmax_idx: Array, pool_size: int
) -> WithTerms:
    n, c, h, w = grad_input.shape
    parts = []
    for image, border in product(range(n), range(4)):
        y, x = (_at(one, border) for one in _border_points(boxes[image], pool_size))
        for grad, places in zip(grad_output[image, ..., border], argmax_idx[image, ..., border], strict=True):
            at = [
                Coordinate(*(one[np.arange(len(places)), places] for one in (axis.value, axis.terms)))
                for axis in (y, x)
            ]
            its = samples(bordered(at[0], h), bordered(at[1], w), w)
            parts.append(combined(put(its.index, h * w), its.weight, exact(grad[np.newaxis])))
    return stacked(parts, (n, c, h, w))
