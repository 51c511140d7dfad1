"""MMCV's pooling and filters with orientation: rotated and rotation-invariant RoIs, feature alignment, filters.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results.
"""

from __future__ import annotations

from math import pi

import jax.numpy as jnp
from jax import Array

from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.mmcv_roi.grid import (
    Pair,
    RoiSampleGrid,
    Shape,
    feature_map_shape,
    sample_counts,
    sample_offsets,
)
from diopi_impl.jax_cpu.sampling import adjoint, border_cells, planes_to_rows, sample_bilinear

# Rotated RoIs


def _rotated_grid(
    shape: Shape, rois: Array, bins: Pair, ratio: int, scale: float, shift: float, least: float, clockwise: bool
) -> RoiSampleGrid:
    """Return the sample grid of rotated regions.

    Args:
        shape: The shape of the feature maps.
        rois: The regions, (R, 6): the index of the map, the center's x and y, width, height and angle.
        bins: The numbers of bins along height and width.
        ratio: The number of samples per bin along each axis; 0 or less for one per element.
        scale: The factor from the coordinates of regions to those of maps.
        shift: The number that is subtracted from the scaled centers.
        least: The lower bound of the scaled sides.
        clockwise: Whether angles are clockwise.

    Returns:
        The grid.
    """
    center_x, center_y = (rois[:, k] * scale - shift for k in (1, 2))
    w, h = (jnp.maximum(rois[:, k] * scale, least) for k in (3, 4))
    theta = -rois[:, 5] if clockwise else rois[:, 5]
    cos, sin = (values[:, jnp.newaxis, jnp.newaxis] for values in (jnp.cos(theta), jnp.sin(theta)))
    counts = sample_counts((h, w), bins, ratio)

    def positions(row: Array, column: Array) -> tuple[Array, Array]:
        """Return y and x of a sample of every bin."""
        v = (sample_offsets(h, bins[0], counts[0], row) - h[:, jnp.newaxis] / 2)[:, :, jnp.newaxis]
        u = (sample_offsets(w, bins[1], counts[1], column) - w[:, jnp.newaxis] / 2)[:, jnp.newaxis]
        y = v * cos - u * sin + center_y[:, jnp.newaxis, jnp.newaxis]
        return y, v * sin + u * cos + center_x[:, jnp.newaxis, jnp.newaxis]

    return RoiSampleGrid(shape, rois[:, 0], counts, positions)


def _grid_options(scale: float, aligned: bool, clockwise: bool) -> tuple[float, float, float, bool]:
    """Return the scale, shift, least side and rotation sense for `_rotated_grid`."""
    return scale, 0.5 if aligned else 0.0, -jnp.inf if aligned else 1.0, clockwise


@vendor.implements("diopiRoiAlignRotatedMmcv")
def roi_align_rotated(input, rois, aligned_height, aligned_width, sampling_ratio, spatial_scale, aligned, clockwise):
    """Return the mean of bilinear samples in each bin of each rotated region."""
    bins, options = (aligned_height, aligned_width), _grid_options(spatial_scale, aligned, clockwise)
    return _rotated_grid(feature_map_shape(input), rois, bins, sampling_ratio, *options).mean(input, bins)


@vendor.implements("diopiRoiAlignRotatedBackwardMmcv")
def roi_align_rotated_backward(
    bottom_grad, top_grad, rois, aligned_height, aligned_width, sampling_ratio, spatial_scale, aligned, clockwise
):
    """Return the gradient of the feature maps."""
    bins, options = (aligned_height, aligned_width), _grid_options(spatial_scale, aligned, clockwise)
    return _rotated_grid(feature_map_shape(bottom_grad), rois, bins, sampling_ratio, *options).mean_gradient(top_grad)


def _blend_orientations(channels: Array, theta: Array, orientations: int) -> Array:
    """Return oriented features that are shifted cyclically by the angle of each region.

    An angle between two orientations interpolates linearly between the shifts for both.

    Args:
        channels: The features, (R, C′·O, H, W), for O orientations.
        theta: The angle of each region, (R,).
        orientations: The number O of orientations.

    Returns:
        The features in the same shape.

    Raises:
        ValueError: the number of channels is not a multiple of O
    """
    if channels.shape[1] % orientations:
        raise ValueError(f"{channels.shape[1]} channels can't be divided into {orientations} orientations")
    turn = theta * orientations / (2 * pi)
    floor = jnp.floor(turn)
    start = (jnp.arange(orientations) - floor.astype(int)[:, jnp.newaxis]) % orientations
    part = (turn - floor).reshape(-1, 1, 1, 1, 1)
    features = channels.reshape(len(channels), channels.shape[1] // orientations, orientations, *channels.shape[2:])

    def take(indices: Array) -> Array:
        """Return the features of the orientations `indices` of each region."""
        return jnp.take_along_axis(features, indices[:, jnp.newaxis, :, jnp.newaxis, jnp.newaxis], 2)

    return ((1 - part) * take(start) + part * take((start + 1) % orientations)).reshape(channels.shape)


@vendor.implements("diopiRiroiAlignRotatedMmcv")
def riroi_align_rotated(
    features, rois, pooled_height, pooled_width, num_samples, num_orientations, spatial_scale, clockwise
):
    """Return rotated RoIAlign of oriented features, whose orientations shift with the angle of the region."""
    bins = (pooled_height, pooled_width)
    grid = _rotated_grid(feature_map_shape(features), rois, bins, num_samples, spatial_scale, 0.0, 1.0, clockwise)
    return _blend_orientations(grid.mean(features, bins), rois[:, 5], num_orientations)


@vendor.implements("diopiRiroiAlignRotatedBackwardMmcv")
def riroi_align_rotated_backward(
    bottom_grad, top_grad, rois, pooled_height, pooled_width, num_samples, num_orientations, spatial_scale, clockwise
):
    """Return the gradient of the oriented features."""
    grad_means = adjoint(
        lambda means: _blend_orientations(means, rois[:, 5], num_orientations), jnp.zeros_like(top_grad), top_grad
    )
    bins = (pooled_height, pooled_width)
    grid = _rotated_grid(feature_map_shape(bottom_grad), rois, bins, num_samples, spatial_scale, 0.0, 1.0, clockwise)
    return grid.mean_gradient(grad_means)


# Feature alignment

BOX_POINTS = ((0, 0), (1, 1), (-1, 1), (-1, -1), (1, -1))
"""The points of a box in units of half its width and height: the center first, then the corners."""


def _sum_box_samples(rows: Array, shape: Shape, boxes: Array, scale: float, points: int) -> Array:
    """Return the sums of the samples at the points of each position's box: (N, H, W, C).

    Args:
        rows: The feature maps as rows of channels.
        shape: The shape of the feature maps, (N, C, H, W).
        boxes: The box of each position, (N, H, W, 5): y, x, width, height and angle.
        scale: The factor from the coordinates of boxes to those of maps.
        points: 1 for the center only, or 5 for the center and the corners.

    Raises:
        ValueError: `points` is another number
    """
    if points not in (1, 5):
        raise ValueError(f"points is {points}, expected 1 for the center or 5 for the corners too")
    n, _, h, w = shape
    y, x, width, height = (boxes[..., k] * scale for k in range(4))
    cos, sin = jnp.cos(boxes[..., 4]) / 2, jnp.sin(boxes[..., 4]) / 2
    first = (jnp.arange(n) * h * w)[:, jnp.newaxis, jnp.newaxis]
    total = jnp.zeros((*boxes.shape[:3], shape[1]), rows.dtype)
    for u, v in BOX_POINTS[:points]:
        y_cells = border_cells(y + u * width * sin + v * height * cos, h)
        x_cells = border_cells(x + u * width * cos - v * height * sin, w)
        total += sample_bilinear(rows, lambda row, column: first + row * w + column, y_cells, x_cells)
    return total


@vendor.implements("diopiRotatedFeatureAlignMmcv")
def rotated_feature_align(features, best_bboxes, spatial_scale, points):
    """Return the features plus samples at the center, or center and corners, of the best box of each cell."""
    sums = _sum_box_samples(planes_to_rows(features), feature_map_shape(features), best_bboxes, spatial_scale, points)
    return features + jnp.moveaxis(sums, -1, 1)


# Active rotated filters


@vendor.implements("diopiActiveRotatedFilterMmcv")
def active_rotated_filter(input, indices):
    """Return each filter in all rotations (Zhou et al., "Oriented response networks")."""
    p, q, o, *kernel = input.shape
    rotations, entries = indices.shape[-1], indices.size // max(indices.shape[-1], 1)
    sources = jnp.argsort(indices.reshape(entries, rotations), 0)
    rotated = input.reshape(p, q, entries)[:, :, sources]
    return jnp.moveaxis(rotated, 3, 1).reshape(p * rotations, q * o, *kernel)


@vendor.implements("diopiActiveRotatedFilterBackwardMmcv")
def active_rotated_filter_backward(grad_out, indices):
    """Return the gradient of the filters."""
    o, *kernel, rotations = indices.shape
    if grad_out.shape[0] % rotations or grad_out.shape[1] % o:
        raise ValueError(f"a gradient of shape {grad_out.shape} does not fit indices of shape {indices.shape}")
    p, q, entries = grad_out.shape[0] // rotations, grad_out.shape[1] // o, indices.size // rotations
    places = jnp.moveaxis(indices.reshape(entries, rotations), 1, 0) - 1
    grad = grad_out.reshape(p, rotations, q, entries)
    back = jnp.take_along_axis(grad, places[jnp.newaxis, :, jnp.newaxis], 3)
    return back.sum(1).reshape(p, q, o, *kernel)
