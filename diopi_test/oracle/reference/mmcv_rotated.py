"""MMCV's pooling and filters with orientation: rotated and rotation-invariant RoIs, feature alignment, filters."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import WithTerms, reference
from diopi_test.oracle.reference.mmcv_roi.grid import Grid, adjoint_of_mean, crossed, gathered, mean_of, pooled, spread
from diopi_test.oracle.reference.products import with_terms
from diopi_test.oracle.reference.sampling import (
    Coordinate,
    Samples,
    bordered,
    combined,
    exact,
    put,
    samples,
    stacked,
    taken,
)
from diopi_test.oracle.reference.weights import reached

Array = NDArray[Any]
Pair = tuple[int, int]
"""Along H and along W."""


# Rotated RoIs


def _rotated(roi: Array, bins: Pair, ratio: int, scale: float, shift: float, least: float, clockwise: bool) -> Grid:
    """The samples of a region around its centre, which moves by −shift; its sides are at least `least`."""
    across, down = roi[[1, 2]] * scale - shift
    w, h = np.maximum(roi[[3, 4]] * scale, least)
    theta = -roi[5] if clockwise else roi[5]
    v = (spread(float(h), bins[0], ratio) - h / 2)[:, np.newaxis]
    u = (spread(float(w), bins[1], ratio) - w / 2)[np.newaxis]
    v, u = np.broadcast_to(v, (*bins, v.shape[-1])), np.broadcast_to(u, (*bins, u.shape[-1]))
    own = crossed(Coordinate(v, np.abs(v)), Coordinate(u, np.abs(u)))
    cos, sin = np.cos(theta), np.sin(theta)
    y = own.y.value * cos - own.x.value * sin + down
    x = own.y.value * sin + own.x.value * cos + across
    terms = h + w + abs(down) + abs(across) + 1  # halves of the sides cancel what is added to them
    return Grid(Coordinate(y, np.full(y.shape, terms)), Coordinate(x, np.full(x.shape, terms)))


@reference("diopiRoiAlignRotatedMmcv")
def roi_align_rotated(
    input: Array,
    rois: Array,
    aligned_height: int,
    aligned_width: int,
    sampling_ratio: int,
    spatial_scale: float,
    aligned: bool,
    clockwise: bool,
) -> WithTerms:
    bins, how = (aligned_height, aligned_width), _how(spatial_scale, aligned, clockwise)

    def of_roi(number: int, roi: Array) -> WithTerms:
        return mean_of(_rotated(roi, bins, sampling_ratio, *how), input[round(float(roi[0]))])

    return pooled(rois, (len(rois), input.shape[1], *bins), of_roi)


def _how(scale: float, aligned: bool, clockwise: bool) -> tuple[float, float, float, bool]:
    """Scale, shift, least side and sense of rotation."""
    return scale, 0.5 if aligned else 0.0, -np.inf if aligned else 1.0, clockwise


@reference("diopiRoiAlignRotatedBackwardMmcv")
def roi_align_rotated_backward(
    bottom_grad: Array,
    top_grad: Array,
    rois: Array,
    aligned_height: int,
    aligned_width: int,
    sampling_ratio: int,
    spatial_scale: float,
    aligned: bool,
    clockwise: bool,
) -> WithTerms:
    bins, how = (aligned_height, aligned_width), _how(spatial_scale, aligned, clockwise)
    size = (bottom_grad.shape[2], bottom_grad.shape[3])

    def of_roi(number: int, roi: Array) -> WithTerms:
        return adjoint_of_mean(_rotated(roi, bins, sampling_ratio, *how), top_grad[number], size)

    return gathered(rois, bottom_grad.shape, of_roi)


def _blend(theta: float, orientations: int) -> tuple[Array, float, float]:
    """By orientation the one it starts from; how much of the one after that, and how large the terms of that are."""
    turn = theta * orientations / (2 * np.pi)
    whole = np.floor(turn)
    return (np.arange(orientations) - int(whole)) % orientations, turn - whole, abs(turn)


def _by_orientation(orientations: int, theta: float) -> WithTerms:
    """The matrix that blends the orientations of a feature: (result's, input's)."""
    start, part, terms = _blend(theta, orientations)
    one = np.eye(orientations)[start]
    other = np.eye(orientations)[(start + 1) % orientations]
    return WithTerms((1 - part) * one + part * other, terms * (one + other))


def _mixed(channels: WithTerms, matrix: WithTerms, of: str) -> WithTerms:
    """The orientations (C'·O, …) of each feature mixed by a matrix, or by its transpose."""
    o = len(matrix.value)
    shape = channels.value.shape

    def mixed(channels: Array, matrix: Array) -> Array:
        return np.einsum(of, matrix, channels.reshape(shape[0] // o, o, *shape[1:])).reshape(shape)

    return combined(lambda matrix, channels: reached(mixed, channels, matrix), matrix, channels)


@reference("diopiRiroiAlignRotatedMmcv")
def riroi_align_rotated(
    features: Array,
    rois: Array,
    pooled_height: int,
    pooled_width: int,
    num_samples: int,
    num_orientations: int,
    spatial_scale: float,
    clockwise: bool,
) -> WithTerms:
    bins = (pooled_height, pooled_width)

    def of_roi(number: int, roi: Array) -> WithTerms:
        grid = _rotated(roi, bins, num_samples, spatial_scale, 0.0, 1.0, clockwise)
        mean = mean_of(grid, features[round(float(roi[0]))])
        return _mixed(mean, _by_orientation(num_orientations, float(roi[5])), "op,cphw->cohw")

    return pooled(rois, (len(rois), features.shape[1], *bins), of_roi)


@reference("diopiRiroiAlignRotatedBackwardMmcv")
def riroi_align_rotated_backward(
    bottom_grad: Array,
    top_grad: Array,
    rois: Array,
    pooled_height: int,
    pooled_width: int,
    num_samples: int,
    num_orientations: int,
    spatial_scale: float,
    clockwise: bool,
) -> WithTerms:
    bins, size = (pooled_height, pooled_width), (bottom_grad.shape[2], bottom_grad.shape[3])

    def of_roi(number: int, roi: Array) -> WithTerms:
        grid = _rotated(roi, bins, num_samples, spatial_scale, 0.0, 1.0, clockwise)
        maps = adjoint_of_mean(grid, top_grad[number], size)
        return _mixed(maps, _by_orientation(num_orientations, float(roi[5])), "op,cohw->cphw")

    return gathered(rois, bottom_grad.shape, of_roi)


# Feature alignment


def _points(boxes: Array, scale: float, points: int, size: Pair) -> Samples:
    """The samples (4, H, W, points) of the boxes (H, W, 5) of one image: the centres, then the corners."""
    y, x, w, h = (boxes[..., k] * scale for k in range(4))
    cos, sin = np.cos(boxes[..., 4]) / 2, np.sin(boxes[..., 4]) / 2
    signs = [(0, 0), (1, 1), (-1, 1), (-1, -1), (1, -1)][:points]
    rows = np.stack([y + one * w * sin + other * h * cos for one, other in signs], -1)
    columns = np.stack([x + one * w * cos - other * h * sin for one, other in signs], -1)
    terms = np.broadcast_to((np.abs(y) + np.abs(x) + np.abs(w) + np.abs(h))[..., np.newaxis], rows.shape)
    return samples(bordered(Coordinate(rows, terms), size[0]), bordered(Coordinate(columns, terms), size[1]), size[1])


@reference("diopiRotatedFeatureAlignMmcv")
def rotated_feature_align(features: Array, best_bboxes: Array, spatial_scale: float, points: int) -> WithTerms:
    n, c, h, w = features.shape
    parts = []
    for maps, boxes in zip(features, best_bboxes, strict=True):
        its = _points(boxes, spatial_scale, points, (h, w))
        parts.append(combined(_summed(its.index), its.weight, exact(maps.reshape(c, h * w))))
    sampled = stacked(parts, (n, c, h, w))
    return WithTerms(features + sampled.value, np.abs(features) + sampled.terms)


def _summed(index: Array) -> Any:
    """From weights and planes to the sums of the samples of each place."""
    return lambda weights, planes: taken(index)(weights, planes).sum(-1)


@reference("diopiRotatedFeatureAlignBackwardMmcv")
def rotated_feature_align_backward(
    bottom_grad: Array, top_grad: Array, best_bboxes: Array, spatial_scale: float, points: int
) -> WithTerms:
    n, c, h, w = bottom_grad.shape
    parts = []
    for grad, boxes in zip(top_grad, best_bboxes, strict=True):
        its = _points(boxes, spatial_scale, points, (h, w))
        given = np.broadcast_to(grad[..., np.newaxis], (*grad.shape, its.index.shape[-1]))
        parts.append(combined(put(its.index, h * w), its.weight, exact(given)))
    spread_out = stacked(parts, (n, c, h, w))
    return WithTerms(top_grad + spread_out.value, np.abs(top_grad) + spread_out.terms)


# Active rotated filters


def _places(indices: Array) -> Array:
    """Where each entry of a filter goes in each rotation: (R, entries)."""
    return indices.reshape(-1, indices.shape[-1]).T - 1


@reference("diopiActiveRotatedFilterMmcv")
def active_rotated_filter(input: Array, indices: Array) -> Array:
    p, q, o, *kernel = input.shape
    places = _places(indices)
    result = np.zeros((p, len(places), q, places.shape[1]))
    for rotation, its in enumerate(places):
        result[:, rotation][..., its] = input.reshape(p, q, places.shape[1])
    return result.reshape(p * len(places), q * o, *kernel)


@reference("diopiActiveRotatedFilterBackwardMmcv")
def active_rotated_filter_backward(grad_out: Array, indices: Array) -> WithTerms:
    o, *kernel, rotations = indices.shape
    places = _places(indices)
    p, q = grad_out.shape[0] // rotations, grad_out.shape[1] // o
    if grad_out.shape != (p * rotations, q * o, *kernel):
        raise ValueError(f"grad_out has shape {grad_out.shape}, expected {rotations} rotations of {(o, *kernel)}")

    def sums(grad: Array, one: Array) -> Array:
        rotated = (grad * one).reshape(p, rotations, q, places.shape[1])
        return np.asarray(sum(rotated[:, r][..., its] for r, its in enumerate(places))).reshape(p, q, o, *kernel)

    return with_terms(sums, grad_out, np.ones(1))
