"""RoiPool: the maximum over the cells of the feature map in each bin.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.

Source: R. Girshick, "Fast R-CNN", 2015; MMCV for the division into bins.
"""

from __future__ import annotations

from itertools import pairwise, product
from math import ceil, floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import PartlySpecified, WithTerms, reference
from diopi_test.oracle.reference.mmcv_roi.grid import feature_map_index, sum_region_gradients
from diopi_test.oracle.reference.sampling import (
    POSITION_ERROR,
    make_scatter,
    stack_results,
    sum_rounded_products,
    with_zero_terms,
)

Array = NDArray[Any]


def _bin_cells(start: float, extent: float, bins: int, length: int) -> tuple[list[range], list[bool]]:
    """Return the cells of each bin along an axis, and whether float32 arithmetic certainly yields the same cells.

    Args:
        start: The start of the region, in cells.
        extent: The length of the region, in cells.
        bins: The number of bins.
        length: The number of cells of the axis.
    """

    def clip(edge: int) -> int:
        """Return an edge limited to the axis."""
        return min(max(edge, 0), length)

    edges = [start + i * extent / bins for i in range(bins + 1)]
    is_sure = [_is_sure_edge(start, extent / bins, i) for i in range(bins + 1)]
    cells = [range(clip(floor(low)), clip(ceil(high))) for low, high in pairwise(edges)]
    return cells, [all(neighbors) for neighbors in pairwise(is_sure)]


def _is_sure_edge(start: float, width: float, number: int) -> bool:
    """Return whether an edge of a bin computed in float32 is certainly on the same side of the nearest integer.

    Args:
        start: The start of the region, in cells.
        width: The width of a bin, in cells.
        number: The number of the edge, which is at start + number · width.
    """
    offset = number * width
    edge = start + offset
    is_exact = all(np.float32(part) == part for part in ((start, width, offset, edge) if number else (start,)))
    return is_exact or abs(edge - round(edge)) > POSITION_ERROR * (abs(start) + abs(offset))


@reference("diopiRoiPoolMmcv")
def roi_pool(output, argmax, input, rois, pooled_height, pooled_width, spatial_scale):
    """Return the maximum over the cells of each bin, and its position; unspecified where rounding decides the cells."""
    largest, positions = np.zeros(output.shape), np.zeros(argmax.shape, np.int64)
    specified = np.ones(output.shape, bool)
    for number, roi in enumerate(rois):
        low, high = roi[[2, 1]] * spatial_scale, (roi[[4, 3]] + 1) * spatial_scale
        extents = high - low
        if (extents <= 0).any():
            continue
        bins, lengths = (pooled_height, pooled_width), input.shape[2:]
        (rows, is_sure_row), (columns, is_sure_column) = map(_bin_cells, low, extents, bins, lengths)
        specified[number] = np.logical_and.outer(is_sure_row, is_sure_column)
        for i, j in product(range(pooled_height), range(pooled_width)):
            cells = input[feature_map_index(roi)][:, rows[i].start : rows[i].stop, columns[j].start : columns[j].stop]
            if not cells.size:
                positions[number, :, i, j] = -1
                continue
            best_cells = np.argmax(cells.reshape(len(cells), -1), -1)
            y, x = np.unravel_index(best_cells, cells.shape[1:])
            largest[number, :, i, j] = cells[np.arange(len(cells)), y, x]
            positions[number, :, i, j] = (y + rows[i].start) * input.shape[3] + x + columns[j].start
    return PartlySpecified(largest, specified), PartlySpecified(positions, specified)


@reference("diopiRoiPoolBackwardMmcv")
def roi_pool_backward(grad_input, grad_output, rois, argmax):
    """Return zeros with grad_output added at the positions of the maxima."""
    shape = grad_input.shape

    def channel_gradient(grad: Array, positions: Array) -> WithTerms:
        """Return the gradient of a channel from a region."""
        has_maximum = (positions >= 0)[np.newaxis] * 1.0
        return sum_rounded_products(
            make_scatter(np.maximum(positions, 0)[np.newaxis], shape[2] * shape[3]),
            with_zero_terms(has_maximum),
            with_zero_terms(grad[np.newaxis]),
        )

    def roi_gradient(number: int, roi: Array) -> WithTerms:
        """Return the gradient of the feature maps from a region."""
        channels = zip(grad_output[number], argmax[number], strict=True)
        return stack_results([channel_gradient(*channel) for channel in channels], shape[1:])

    return sum_region_gradients(rois, shape, roi_gradient)
