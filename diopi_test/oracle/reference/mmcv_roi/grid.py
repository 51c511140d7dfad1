"""Samples of regions of interest on feature maps: their positions, their means, and the gradient of the means.

A region is divided into *bins*; the samples of a bin are at a grid of points.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import WithTerms
from diopi_test.oracle.reference.products import scale_result
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

Array = NDArray[Any]
Pair = tuple[int, int]
"""Two values: one for H and one for W."""


def feature_map_index(roi: Array) -> int:
    """Return the index in the batch of the feature map that a region is on."""
    return round(float(roi[0]))


def flatten_planes(maps: Array) -> Array:
    """Return maps (…, H, W) as flattened planes (…, H·W)."""
    return maps.reshape(*maps.shape[:-2], maps.shape[-2] * maps.shape[-1])


@final
@dataclass(frozen=True)
class SampleGrid:
    """The coordinates of the samples of a region.

    Attributes:
        y: The positions along H, (bins along H, bins along W, points per bin).
        x: The positions along W, in the same shape.
    """

    y: Coordinate
    x: Coordinate

    @property
    def point_count(self) -> int:
        """Return the number of points per bin, at least 1."""
        return max(self.y.value.shape[2], 1)

    def samples_on(self, size: Pair) -> BilinearSamples:
        """Return the samples on planes of this size."""
        return bilinear_samples(clamped_cells(self.y, size[0]), clamped_cells(self.x, size[1]), size[1])


def sample_offsets(extent: float, bins: int, ratio: int) -> Array:
    """Return the distances of samples from the start of a region along an axis, (bins, points).

    Args:
        extent: The length of the region along the axis, in cells.
        bins: The number of bins along the axis.
        ratio: The number of points per bin along the axis; 0 or less for the length of a bin, rounded up.
    """
    count = max(ratio if ratio > 0 else ceil(extent / bins), 0)
    return (np.arange(bins * count).reshape(bins, count) + 0.5) * extent / bins / max(count, 1)


def cross_axes(rows: Coordinate, columns: Coordinate) -> SampleGrid:
    """Return the samples at all pairs of y and x, each (bins along H, bins along W, points along its axis)."""
    (ph, pw, gh), gw = rows.value.shape, columns.value.shape[2]

    def expand(coordinates: Array, axis: int) -> Array:
        """Repeat coordinates along the axis of the points of the opposite axis."""
        return np.broadcast_to(np.expand_dims(coordinates, axis), (ph, pw, gh, gw)).reshape(ph, pw, gh * gw)

    return SampleGrid(
        Coordinate(expand(rows.value, 3), expand(rows.terms, 3)),
        Coordinate(expand(columns.value, 2), expand(columns.terms, 2)),
    )


def _region_extents(roi: Array, scale: float, aligned: bool) -> tuple[Array, Array]:
    """Return the start and the extent of a region along H and W, in cells; `region_grid` describes the arguments."""
    low, high = roi[[2, 1]] * scale, roi[[4, 3]] * scale
    return (low - 0.5, high - low) if aligned else (low, np.maximum(high - low, 1))


def region_grid(roi: Array, scale: float, bins: Pair, ratio: int, aligned: bool, shifts: Array) -> SampleGrid:
    """Return the samples of a region.

    Args:
        roi: The region: index of the feature map, x1, y1, x2, y2.
        scale: The size of a pixel in cells of the feature map.
        bins: The number of bins along H and W.
        ratio: The number of points per bin along an axis; 0 or less for a number that depends on the extent.
        aligned: Whether coordinates are shifted by half a cell. If not, a region has at least the size of a cell.
        shifts: The displacement of each bin's samples, (2, bins along H, bins along W).

    Returns:
        The samples.
    """
    starts, extents = _region_extents(roi, scale, aligned)
    coordinates = []
    for axis, (start, extent) in enumerate(zip(starts, extents, strict=True)):
        steps = np.expand_dims(sample_offsets(float(extent), bins[axis], ratio), 1 - axis)
        positions = (start + shifts[axis])[..., np.newaxis] + steps
        terms = (1 + abs(start) + np.abs(shifts[axis]))[..., np.newaxis] + np.abs(steps)
        coordinates.append(Coordinate(positions, terms))
    return cross_axes(*coordinates)


def bin_means(grid: SampleGrid, maps: Array) -> WithTerms:
    """Return the mean of each bin's samples of maps (C, H, W): (C, bins along H, bins along W)."""
    samples = grid.samples_on((maps.shape[1], maps.shape[2]))

    def sums(weights: Array, planes: Array) -> Array:
        """Return the weighted sums of the samples of each bin."""
        return np.asanyarray(make_gather(samples.index)(weights, planes).sum(-1))

    return sum_rounded_products(
        sums, scale_result(1 / grid.point_count, samples.weight), with_zero_terms(flatten_planes(maps))
    )


def bin_means_adjoint(grid: SampleGrid, grad: Array, size: Pair) -> WithTerms:
    """Return the gradient of maps of this size from the gradient of the means (C, bins along H, bins along W)."""
    samples = grid.samples_on(size)
    sample_grads = np.broadcast_to(grad[..., np.newaxis], (*grad.shape, samples.index.shape[-1]))
    summed = sum_rounded_products(
        make_scatter(samples.index, size[0] * size[1]),
        scale_result(1 / grid.point_count, samples.weight),
        with_zero_terms(sample_grads),
    )
    return stack_results([summed], (len(grad), *size))


def pool_regions(rois: Array, shape: tuple[int, ...], pool_roi: Callable[[int, Array], WithTerms]) -> WithTerms:
    """Return the pooled results of all regions as one result.

    Args:
        rois: The regions.
        shape: The shape of the result; its first axis has the regions.
        pool_roi: Returns the result of a region, from its number and the region.
    """
    return stack_results([pool_roi(number, roi) for number, roi in enumerate(rois)], shape)


def sum_region_gradients(
    rois: Array, shape: tuple[int, ...], roi_gradient: Callable[[int, Array], WithTerms]
) -> WithTerms:
    """Return the gradient of feature maps: the sum of `roi_gradient(number, roi)` over the regions of each map."""
    values, terms = np.zeros((2, *shape))
    for number, roi in enumerate(rois):
        gradient = roi_gradient(number, roi)
        values[feature_map_index(roi)] += gradient.value
        terms[feature_map_index(roi)] += gradient.terms
    return WithTerms(values, terms)
