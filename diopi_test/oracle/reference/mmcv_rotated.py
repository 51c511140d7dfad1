"""MMCV's pooling and filters with orientation: rotated and rotation-invariant RoIs, feature alignment, filters.

A rotated region is the index of its feature map, then its center x, y, its width and height, and its angle in radians.
*Oriented* features have a group of channels whose members are the responses in equally spaced orientations.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.

Sources: MMCV's operators; J. Han et al., "ReDet", 2021 (rotation-invariant RoIAlign); X. Yang et al., "R3Det", 2019
(feature alignment); Y. Zhou et al., "Oriented Response Networks", 2017 (active rotated filters).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import WithTerms, reference
from diopi_test.oracle.reference.mmcv_roi.grid import (
    SampleGrid,
    bin_means,
    bin_means_adjoint,
    cross_axes,
    pool_regions,
    sample_offsets,
    sum_region_gradients,
)
from diopi_test.oracle.reference.products import sum_products
from diopi_test.oracle.reference.sampling import (
    BilinearSamples,
    Coordinate,
    bilinear_samples,
    clamped_cells,
    make_gather,
    make_scatter,
    stack_results,
    sum_rounded_products,
    with_zero_terms,
)
from diopi_test.oracle.reference.weights import sum_with_nonfinite

Array = NDArray[Any]
Pair = tuple[int, int]
"""Two values: one for H and one for W."""


# Rotated RoIs


def _rotated_grid(
    roi: Array, bins: Pair, ratio: int, scale: float, shift: float, min_side: float, clockwise: bool
) -> SampleGrid:
    """Return the samples of a rotated region.

    Args:
        roi: The region.
        bins: The number of bins along the height and width of the region.
        ratio: The number of points per bin along an axis; 0 or less for a number that depends on the extent.
        scale: The factor from coordinates of regions to cells of the feature map.
        shift: The number of cells by which the center is shifted back.
        min_side: The least width and height, in cells.
        clockwise: Whether the angle is clockwise.
    """
    center_x, center_y = roi[[1, 2]] * scale - shift
    w, h = np.maximum(roi[[3, 4]] * scale, min_side)
    theta = -roi[5] if clockwise else roi[5]
    v = (sample_offsets(float(h), bins[0], ratio) - h / 2)[:, np.newaxis]
    u = (sample_offsets(float(w), bins[1], ratio) - w / 2)[np.newaxis]
    v, u = np.broadcast_to(v, (*bins, v.shape[-1])), np.broadcast_to(u, (*bins, u.shape[-1]))
    local_grid = cross_axes(Coordinate(v, np.abs(v)), Coordinate(u, np.abs(u)))
    cos, sin = np.cos(theta), np.sin(theta)
    y = local_grid.y.value * cos - local_grid.x.value * sin + center_y
    x = local_grid.y.value * sin + local_grid.x.value * cos + center_x
    terms = h + w + abs(center_y) + abs(center_x) + 1  # offsets cancel against half the side
    return SampleGrid(Coordinate(y, np.full(y.shape, terms)), Coordinate(x, np.full(x.shape, terms)))


@reference("diopiRoiAlignRotatedMmcv")
def roi_align_rotated(input, rois, aligned_height, aligned_width, sampling_ratio, spatial_scale, aligned, clockwise):
    """Return the mean of bilinear samples in each bin of each rotated region."""
    bins, options = (aligned_height, aligned_width), _grid_options(spatial_scale, aligned, clockwise)

    def pool_roi(number: int, roi: Array) -> WithTerms:
        """Return the bin means of a region."""
        return bin_means(_rotated_grid(roi, bins, sampling_ratio, *options), input[round(float(roi[0]))])

    return pool_regions(rois, (len(rois), input.shape[1], *bins), pool_roi)


def _grid_options(scale: float, aligned: bool, clockwise: bool) -> tuple[float, float, float, bool]:
    """Return the last four arguments of `_rotated_grid`: scale, shift, smallest side and direction of rotation."""
    return scale, 0.5 if aligned else 0.0, -np.inf if aligned else 1.0, clockwise


@reference("diopiRoiAlignRotatedBackwardMmcv")
def roi_align_rotated_backward(
    bottom_grad, top_grad, rois, aligned_height, aligned_width, sampling_ratio, spatial_scale, aligned, clockwise
):
    """Return the gradient of the feature maps."""
    bins, options = (aligned_height, aligned_width), _grid_options(spatial_scale, aligned, clockwise)
    size = (bottom_grad.shape[2], bottom_grad.shape[3])

    def roi_gradient(number: int, roi: Array) -> WithTerms:
        """Return the gradient of the feature maps from a region."""
        return bin_means_adjoint(_rotated_grid(roi, bins, sampling_ratio, *options), top_grad[number], size)

    return sum_region_gradients(rois, bottom_grad.shape, roi_gradient)


def _orientation_blend(theta: float, orientations: int) -> tuple[Array, float, float]:
    """Return how rotated features blend neighboring orientations.

    Args:
        theta: The angle of the region.
        orientations: The number of orientations.

    Returns:
        The first of the two input orientations that each result orientation blends; the share of the next one; and the
        terms of the share.
    """
    turn = theta * orientations / (2 * np.pi)
    steps = np.floor(turn)
    return (np.arange(orientations) - int(steps)) % orientations, turn - steps, abs(turn)


def _blend_matrix(orientations: int, theta: float) -> WithTerms:
    """Return the matrix that blends the orientations of a feature: (result orientations, input orientations)."""
    start, fraction, terms = _orientation_blend(theta, orientations)
    start_matrix = np.eye(orientations)[start]
    next_matrix = np.eye(orientations)[(start + 1) % orientations]
    return WithTerms((1 - fraction) * start_matrix + fraction * next_matrix, terms * (start_matrix + next_matrix))


def _mix_orientations(channels: WithTerms, matrix: WithTerms, subscripts: str) -> WithTerms:
    """Return features whose orientations are multiplied by a matrix.

    Args:
        channels: The features, (C'·O, …) for O orientations.
        matrix: The matrix, (O, O).
        subscripts: The subscripts of the product in np.einsum, for the matrix and the features (C', O, …).
    """
    o = len(matrix.value)
    shape = channels.value.shape

    def mix(channels: Array, matrix: Array) -> Array:
        """Return the channels with their orientations multiplied by the matrix."""
        return np.einsum(subscripts, matrix, channels.reshape(shape[0] // o, o, *shape[1:])).reshape(shape)

    return sum_rounded_products(lambda matrix, channels: sum_with_nonfinite(mix, channels, matrix), matrix, channels)


@reference("diopiRiroiAlignRotatedMmcv")
def riroi_align_rotated(
    features, rois, pooled_height, pooled_width, num_samples, num_orientations, spatial_scale, clockwise
):
    """Return rotated RoIAlign of oriented features, whose orientations shift with the angle of the region."""
    bins = (pooled_height, pooled_width)

    def pool_roi(number: int, roi: Array) -> WithTerms:
        """Return the bin means of a region, with shifted orientations."""
        grid = _rotated_grid(roi, bins, num_samples, spatial_scale, 0.0, 1.0, clockwise)
        mean = bin_means(grid, features[round(float(roi[0]))])
        return _mix_orientations(mean, _blend_matrix(num_orientations, float(roi[5])), "op,cphw->cohw")

    return pool_regions(rois, (len(rois), features.shape[1], *bins), pool_roi)


@reference("diopiRiroiAlignRotatedBackwardMmcv")
def riroi_align_rotated_backward(
    bottom_grad, top_grad, rois, pooled_height, pooled_width, num_samples, num_orientations, spatial_scale, clockwise
):
    """Return the gradient of the oriented features."""
    bins, size = (pooled_height, pooled_width), (bottom_grad.shape[2], bottom_grad.shape[3])

    def roi_gradient(number: int, roi: Array) -> WithTerms:
        """Return the gradient of the oriented features from a region."""
        grid = _rotated_grid(roi, bins, num_samples, spatial_scale, 0.0, 1.0, clockwise)
        maps = bin_means_adjoint(grid, top_grad[number], size)
        return _mix_orientations(maps, _blend_matrix(num_orientations, float(roi[5])), "op,cohw->cphw")

    return sum_region_gradients(rois, bottom_grad.shape, roi_gradient)


# Feature alignment


def _alignment_samples(boxes: Array, scale: float, points: int, size: Pair) -> BilinearSamples:
    """Return the samples at the center and the corners of the best box of each cell: (4, H, W, points).

    Args:
        boxes: The boxes of an image, y, x, width, height and angle, (H, W, 5).
        scale: The factor from coordinates of boxes to cells.
        points: The number of points per box: 1 for the center only, 5 with the corners.
        size: The size of the feature maps along H and W.
    """
    y, x, w, h = (boxes[..., k] * scale for k in range(4))
    cos, sin = np.cos(boxes[..., 4]) / 2, np.sin(boxes[..., 4]) / 2
    signs = [(0, 0), (1, 1), (-1, 1), (-1, -1), (1, -1)][:points]
    rows = np.stack([y + u * w * sin + v * h * cos for u, v in signs], -1)
    columns = np.stack([x + u * w * cos - v * h * sin for u, v in signs], -1)
    terms = np.broadcast_to((np.abs(y) + np.abs(x) + np.abs(w) + np.abs(h))[..., np.newaxis], rows.shape)
    return bilinear_samples(
        clamped_cells(Coordinate(rows, terms), size[0]), clamped_cells(Coordinate(columns, terms), size[1]), size[1]
    )


@reference("diopiRotatedFeatureAlignMmcv")
def rotated_feature_align(features, best_bboxes, spatial_scale, points):
    """Return the features plus samples at the center, or center and corners, of the best box of each cell."""
    n, c, h, w = features.shape
    parts = []
    for maps, boxes in zip(features, best_bboxes, strict=True):
        samples = _alignment_samples(boxes, spatial_scale, points, (h, w))
        parts.append(
            sum_rounded_products(_sum_points(samples.index), samples.weight, with_zero_terms(maps.reshape(c, h * w)))
        )
    sampled = stack_results(parts, (n, c, h, w))
    return WithTerms(features + sampled.value, np.abs(features) + sampled.terms)


def _sum_points(index: Array) -> Any:
    """Return a bilinear function of weights and planes that computes the sum of the samples at each position."""
    return lambda weights, planes: make_gather(index)(weights, planes).sum(-1)


@reference("diopiRotatedFeatureAlignBackwardMmcv")
def rotated_feature_align_backward(bottom_grad, top_grad, best_bboxes, spatial_scale, points):
    """Return the gradient of the features."""
    n, c, h, w = bottom_grad.shape
    parts = []
    for grad, boxes in zip(top_grad, best_bboxes, strict=True):
        samples = _alignment_samples(boxes, spatial_scale, points, (h, w))
        point_grads = np.broadcast_to(grad[..., np.newaxis], (*grad.shape, samples.index.shape[-1]))
        parts.append(
            sum_rounded_products(make_scatter(samples.index, h * w), samples.weight, with_zero_terms(point_grads))
        )
    scattered = stack_results(parts, (n, c, h, w))
    return WithTerms(top_grad + scattered.value, np.abs(top_grad) + scattered.terms)


# Active rotated filters


def _filter_positions(indices: Array) -> Array:
    """Return the position of each filter element after each rotation, counted from 0: (rotations, elements)."""
    return indices.reshape(-1, indices.shape[-1]).T - 1


@reference("diopiActiveRotatedFilterMmcv")
def active_rotated_filter(input, indices):
    """Return each filter in all rotations, (filters · rotations, channels · orientations, H, W), as `indices` lists."""
    p, q, o, *kernel = input.shape
    filter_positions = _filter_positions(indices)
    result = np.zeros((p, len(filter_positions), q, filter_positions.shape[1]))
    for rotation, positions in enumerate(filter_positions):
        result[:, rotation][..., positions] = input.reshape(p, q, filter_positions.shape[1])
    return result.reshape(p * len(filter_positions), q * o, *kernel)


@reference("diopiActiveRotatedFilterBackwardMmcv")
def active_rotated_filter_backward(grad_out, indices):
    """Return the gradient of the filters."""
    o, *kernel, rotations = indices.shape
    filter_positions = _filter_positions(indices)
    p, q = grad_out.shape[0] // rotations, grad_out.shape[1] // o
    if grad_out.shape != (p * rotations, q * o, *kernel):
        raise ValueError(f"grad_out has shape {grad_out.shape}, expected {rotations} rotations of {(o, *kernel)}")

    def sums(grad: Array, unit: Array) -> Array:
        """Return the sums of the gradients of all rotations."""
        rotated = (grad * unit).reshape(p, rotations, q, filter_positions.shape[1])
        return np.asanyarray(
            sum(rotated[:, r][..., positions] for r, positions in enumerate(filter_positions))
        ).reshape(p, q, o, *kernel)

    return sum_products(sums, grad_out, np.ones(1))
