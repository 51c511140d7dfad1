"""DeformRoiPool: pooling of regions in which offsets shift the samples of each bin.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.

Source: J. Dai et al., "Deformable Convolutional Networks", 2017.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import PartlySpecified, WithTerms, reference
from diopi_test.oracle.reference.mmcv_roi.grid import (
    Pair,
    SampleGrid,
    bin_means,
    bin_means_adjoint,
    feature_map_index,
    flatten_planes,
    pool_regions,
    region_grid,
    sum_region_gradients,
)
from diopi_test.oracle.reference.products import scale_result
from diopi_test.oracle.reference.sampling import make_gather, stack_results, sum_rounded_products, with_zero_terms

Array = NDArray[Any]


def _shifts(rois: Array, offset: Array | None, scale: float, gamma: float, bins: Pair) -> Array:
    """Return the shifts of the samples of each bin along H and W: (regions, 2, bins along H, bins along W).

    Args:
        rois: The regions.
        offset: The offsets along W and H, relative to the size of the region; None or empty for no shifts.
        scale: The factor from coordinates of regions to cells of the feature map.
        gamma: The factor of the offsets.
        bins: The number of bins along H and W.
    """
    if offset is None or not offset.size:
        return np.zeros((len(rois), 2, *bins))
    return gamma * offset[:, ::-1] * _region_sizes(rois, scale)[..., np.newaxis, np.newaxis]


def _region_sizes(rois: Array, scale: float) -> Array:
    """Return the sizes of regions along H and W in cells: (regions, 2)."""
    return (rois[:, [4, 3]] - rois[:, [2, 1]]) * scale


@reference("diopiDeformRoiPoolMmcv")
def deform_roi_pool(input, rois, offset, pooled_height, pooled_width, sampling_ratio, spatial_scale, gamma):
    """Return the mean of the shifted samples of each bin: (regions, channels, height, width)."""
    bins = (pooled_height, pooled_width)
    shifts = _shifts(rois, offset, spatial_scale, gamma, bins)

    def pool_roi(number: int, roi: Array) -> WithTerms:
        """Return the bin means of a region."""
        return bin_means(
            region_grid(roi, spatial_scale, bins, sampling_ratio, True, shifts[number]), input[feature_map_index(roi)]
        )

    return pool_regions(rois, (len(rois), input.shape[1], *bins), pool_roi)


@reference("diopiDeformRoiPoolBackwardMmcv")
def deform_roi_pool_backward(
    grad_offset, grad_output, input, rois, offset, pooled_height, pooled_width, sampling_ratio, spatial_scale, gamma
):
    """Return the gradients of the input and of the offsets."""
    bins, size = (pooled_height, pooled_width), (input.shape[2], input.shape[3])
    shifts = _shifts(rois, offset, spatial_scale, gamma, bins)
    grids = [
        region_grid(roi, spatial_scale, bins, sampling_ratio, True, shift)
        for roi, shift in zip(rois, shifts, strict=True)
    ]

    def roi_gradient(number: int, roi: Array) -> WithTerms:
        """Return the gradient of the feature maps from a region."""
        return bin_means_adjoint(grids[number], grad_output[number], size)

    input_gradient = sum_region_gradients(rois, input.shape, roi_gradient)
    if grad_offset is None or offset is None or not offset.size:
        return input_gradient, None if grad_offset is None else with_zero_terms(np.zeros(grad_offset.shape))
    slopes = [
        _slopes(grid, input[feature_map_index(roi)], grad)
        for grid, roi, grad in zip(grids, rois, grad_output, strict=True)
    ]
    factors = gamma * _region_sizes(rois, spatial_scale)[:, ::-1, np.newaxis, np.newaxis]
    offset_gradient = scale_result(factors, stack_results([slope for slope, _ in slopes], grad_offset.shape))
    is_specified = np.reshape([is_free for _, is_free in slopes], (len(rois), 1, *bins))
    return input_gradient, PartlySpecified(offset_gradient, np.broadcast_to(is_specified, grad_offset.shape))


def _slopes(grid: SampleGrid, maps: Array, grad: Array) -> tuple[WithTerms, Array]:
    """Return the gradient by the shifts along x and y, and in which bins it is specified.

    The gradient, (2, bins along H, bins along W), is the sum over channels of grad times the derivatives of the means.
    It is specified in bins (bins along H, bins along W) in which the derivatives are continuous at all samples.

    Args:
        grid: The samples of the region.
        maps: The feature map of the region, (C, H, W).
        grad: The gradient of the means, (C, bins along H, bins along W).
    """
    size = (maps.shape[1], maps.shape[2])
    samples = grid.samples_on(size)

    def sum_channels(slopes: Array, grad: Array) -> Array:
        """Return the sums over channels and samples."""
        return np.einsum("cijs,cij->ij", slopes, grad)

    derivatives = [
        sum_rounded_products(make_gather(samples.index), slope, with_zero_terms(flatten_planes(maps)))
        for slope in (samples.slope_x, samples.slope_y)
    ]
    sums = [
        sum_rounded_products(sum_channels, scale_result(1 / grid.point_count, derivative), with_zero_terms(grad))
        for derivative in derivatives
    ]
    is_specified = [
        (coordinate.value >= 0) & (coordinate.value <= length - 1) & coordinate.stays_in_cell
        for coordinate, length in zip((grid.y, grid.x), size, strict=True)
    ]
    return stack_results(sums, (2, *grad.shape[1:])), np.all(is_specified[0] & is_specified[1], -1)
