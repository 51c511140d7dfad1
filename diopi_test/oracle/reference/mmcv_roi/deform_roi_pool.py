"""DeformRoiPool: the samples of each bin are moved by offsets."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import PartlySpecified, WithTerms, reference
from diopi_test.oracle.reference.mmcv_roi.grid import (
    Grid,
    Pair,
    adjoint_of_mean,
    flat,
    gathered,
    grid_of,
    mean_of,
    pooled,
    sample_of,
)
from diopi_test.oracle.reference.sampling import combined, exact, scaled, stacked, taken

Array = NDArray[Any]


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
        return mean_of(grid_of(roi, spatial_scale, bins, sampling_ratio, True, shifts[number]), input[sample_of(roi)])

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
    grids = [
        grid_of(roi, spatial_scale, bins, sampling_ratio, True, its) for roi, its in zip(rois, shifts, strict=True)
    ]

    def of_roi(number: int, roi: Array) -> WithTerms:
        return adjoint_of_mean(grids[number], grad_output[number], size)

    to_input = gathered(rois, input.shape, of_roi)
    if grad_offset is None or offset is None or not offset.size:
        return to_input, None if grad_offset is None else exact(np.zeros(grad_offset.shape))
    slopes = [
        _slopes(grid, input[sample_of(roi)], grad) for grid, roi, grad in zip(grids, rois, grad_output, strict=True)
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

    along = [combined(taken(its.index), by, exact(flat(maps))) for by in (its.by_x, its.by_y)]
    parts = [combined(over_channels, scaled(1 / grid.count, one), exact(grad)) for one in along]
    free = [
        (at.value >= 0) & (at.value <= length - 1) & at.is_between
        for at, length in zip((grid.y, grid.x), size, strict=True)
    ]
    return stacked(parts, (2, *grad.shape[1:])), np.all(free[0] & free[1], -1)
