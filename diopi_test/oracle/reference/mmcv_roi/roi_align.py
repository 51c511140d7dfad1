"""RoiAlign with mean or maximum pooling.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.

Source: K. He et al., "Mask R-CNN", 2017; MMCV for the maximum.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import PartlySpecified, WithTerms, reference
from diopi_test.oracle.reference.detection import roi_align as mean_roi_align
from diopi_test.oracle.reference.detection import roi_align_backward as mean_roi_align_backward
from diopi_test.oracle.reference.mmcv_roi.grid import (
    Pair,
    feature_map_index,
    flatten_planes,
    region_grid,
    sum_region_gradients,
)
from diopi_test.oracle.reference.sampling import (
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
MEAN = 1
"""The value of `pool_mode` for the mean; any other value stands for the maximum."""

NO_SAMPLE = -float(np.finfo(np.float32).max)
"""The maximum of a bin without samples: the lowest float32 number, as in MMCV."""


@reference("diopiRoiAlignMmcv")
def roi_align(input, rois, aligned_height, aligned_width, sampling_ratio, pool_mode, spatial_scale, aligned, *, out):
    """Return the mean or the maximum of the samples of each bin; for maxima, also the coordinates of their samples."""
    if pool_mode == MEAN:
        attributes = spatial_scale, aligned_height, aligned_width, sampling_ratio, aligned
        unspecified = [PartlySpecified(np.zeros(override.shape or (0,)), specified=False) for override in out[1:]]
        return mean_roi_align(input, rois, *attributes), unspecified[0], unspecified[1]
    bins, shape = (aligned_height, aligned_width), (len(rois), input.shape[1], aligned_height, aligned_width)
    parts = [_largest_samples(roi, input, spatial_scale, bins, sampling_ratio, aligned) for roi in rois]
    value, y, x = (stack_results([part[k] for part in parts], shape) for k in range(3))
    return value, y, x


def _largest_samples(
    roi: Array, input: Array, scale: float, bins: Pair, ratio: int, aligned: bool
) -> tuple[WithTerms, WithTerms, WithTerms]:
    """Return the largest sample of each bin of a region, (C, bins along H, bins along W), and its coordinates y and x.

    Args:
        roi: The region.
        input: The feature maps, (N, C, H, W).
        scale: The factor from coordinates of regions to cells of the feature map.
        bins: The number of bins along H and W.
        ratio: The number of points per bin along an axis; 0 or less for a number that depends on the extent.
        aligned: Whether coordinates are shifted by half a cell.
    """
    grid = region_grid(roi, scale, bins, ratio, aligned, np.zeros((2, *bins)))
    samples, maps = grid.samples_on((input.shape[2], input.shape[3])), input[feature_map_index(roi)]
    values = sum_rounded_products(make_gather(samples.index), samples.weight, with_zero_terms(flatten_planes(maps)))
    if not samples.index.size:
        no_samples = np.full((len(maps), *bins), NO_SAMPLE)
        return (
            with_zero_terms(no_samples),
            with_zero_terms(-np.ones(no_samples.shape)),
            with_zero_terms(-np.ones(no_samples.shape)),
        )
    best = np.argmax(values.value, -1)[..., np.newaxis]

    def select_best(result: WithTerms) -> WithTerms:
        """Return the elements of the largest samples."""
        arrays = (np.broadcast_to(array, values.value.shape) for array in (result.value, result.terms))
        return WithTerms(*(np.take_along_axis(array, best, -1)[..., 0] for array in arrays))

    y, x = (select_best(WithTerms(coordinate.value, coordinate.terms)) for coordinate in (grid.y, grid.x))
    return select_best(values), y, x


@reference("diopiRoiAlignBackwardMmcv")
def roi_align_backward(
    grad_input,
    grad_output,
    rois,
    argmax_y,
    argmax_x,
    aligned_height,
    aligned_width,
    sampling_ratio,
    pool_mode,
    spatial_scale,
    aligned,
):
    """Return the gradient of the input, for mean or maximum pooling."""
    shape = grad_input.shape
    if pool_mode == MEAN:
        attributes = spatial_scale, aligned_height, aligned_width, *shape, sampling_ratio, aligned
        return mean_roi_align_backward(grad_output, rois, *attributes)
    has_sample = argmax_y != -1

    def roi_gradient(number: int, roi: Array) -> WithTerms:
        """Return the gradient of the feature maps from a region."""
        grad = np.where(has_sample[number], grad_output[number], 0)
        return scatter_to_points(argmax_y[number], argmax_x[number], grad, (shape[2], shape[3]))

    return sum_region_gradients(rois, shape, roi_gradient)


def scatter_to_points(y: Array, x: Array, grad: Array, size: Pair) -> WithTerms:
    """Return the gradient of a feature map from the gradients of samples.

    Args:
        y: The positions of the samples along H, (C, …).
        x: The positions of the samples along W, (C, …).
        grad: The gradient of each sample, (C, …).
        size: The size of the map along H and W.

    Returns:
        The gradient, (C, H, W).
    """
    parts = []
    for row, column, channel_grad in zip(y, x, grad, strict=True):
        rows, columns = (Coordinate(axis, np.abs(axis)) for axis in (row, column))
        samples = bilinear_samples(clamped_cells(rows, size[0]), clamped_cells(columns, size[1]), size[1])
        parts.append(
            sum_rounded_products(
                make_scatter(samples.index, size[0] * size[1]),
                samples.weight,
                with_zero_terms(channel_grad[np.newaxis]),
            )
        )
    return stack_results(parts, (len(grad), *size))
