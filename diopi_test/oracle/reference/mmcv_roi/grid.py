"""The samples of regions of interest on feature maps: where they are, their means, and the adjoint of these."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import WithTerms
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

Array = NDArray[Any]
Pair = tuple[int, int]
"""Along H and along W."""


def sample_of(roi: Array) -> int:
    """Which feature map of the batch a region is on."""
    return round(float(roi[0]))


def flat(maps: Array) -> Array:
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


def grid_of(roi: Array, scale: float, bins: Pair, ratio: int, aligned: bool, shifts: Array) -> Grid:
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

    return combined(sums, scaled(1 / grid.count, its.weight), exact(flat(maps)))


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
        values[sample_of(roi)] += given.value
        terms[sample_of(roi)] += given.terms
    return WithTerms(values, terms)
