"""RoiPool."""

from __future__ import annotations

from itertools import pairwise, product
from math import ceil, floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import PartlySpecified, WithTerms, reference
from diopi_test.oracle.reference.mmcv_roi.grid import gathered, sample_of
from diopi_test.oracle.reference.sampling import ROUNDED, combined, exact, put, stacked

Array = NDArray[Any]


def _cells(start: float, extent: float, bins: int, length: int) -> tuple[list[range], list[bool]]:
    """The cells of each bin along an axis, and whether they are sure: in float32 an edge may miss a whole number."""

    def clipped(edge: int) -> int:
        return min(max(edge, 0), length)

    edges = [start + i * extent / bins for i in range(bins + 1)]
    sure = [_is_sure(start, extent / bins, i) for i in range(bins + 1)]
    cells = [range(clipped(floor(low)), clipped(ceil(high))) for low, high in pairwise(edges)]
    return cells, [all(both) for both in pairwise(sure)]


def _is_sure(start: float, width: float, number: int) -> bool:
    """Whether an edge is on its side of the next whole number in float32, too, however it is computed there."""
    offset = number * width
    edge = start + offset
    is_exact = all(np.float32(part) == part for part in ((start, width, offset, edge) if number else (start,)))
    return is_exact or abs(edge - round(edge)) > ROUNDED * (abs(start) + abs(offset))


@reference("diopiRoiPoolMmcv")
def roi_pool(
    output: Array,
    argmax: Array,
    input: Array,
    rois: Array,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
) -> tuple[PartlySpecified, PartlySpecified]:
    largest, places = np.zeros(output.shape), np.zeros(argmax.shape, np.int64)
    specified = np.ones(output.shape, bool)
    for number, roi in enumerate(rois):
        low, high = roi[[2, 1]] * spatial_scale, (roi[[4, 3]] + 1) * spatial_scale
        extents = high - low
        if (extents <= 0).any():
            continue
        bins, lengths = (pooled_height, pooled_width), input.shape[2:]
        (rows, sure_rows), (columns, sure_columns) = map(_cells, low, extents, bins, lengths)
        specified[number] = np.logical_and.outer(sure_rows, sure_columns)
        for i, j in product(range(pooled_height), range(pooled_width)):
            cells = input[sample_of(roi)][:, rows[i].start : rows[i].stop, columns[j].start : columns[j].stop]
            if not cells.size:
                places[number, :, i, j] = -1
                continue
            best = np.argmax(cells.reshape(len(cells), -1), -1)
            y, x = np.unravel_index(best, cells.shape[1:])
            largest[number, :, i, j] = cells[np.arange(len(cells)), y, x]
            places[number, :, i, j] = (y + rows[i].start) * input.shape[3] + x + columns[j].start
    return PartlySpecified(largest, specified), PartlySpecified(places, specified)


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
