"""RoiPool."""

from __future__ import annotations

from itertools import product
from math import ceil, floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import WithTerms, reference
from diopi_test.oracle.reference.mmcv_roi.grid import gathered, sample_of
from diopi_test.oracle.reference.sampling import combined, exact, put, stacked

Array = NDArray[Any]


def _cells(start: float, extent: float, bins: int, length: int) -> list[range]:
    """The cells of each bin along an axis."""

    def clipped(edge: int) -> int:
        return min(max(edge, 0), length)

    edges = [(start + i * extent / bins, start + (i + 1) * extent / bins) for i in range(bins)]
    return [range(clipped(floor(low)), clipped(ceil(high))) for low, high in edges]


@reference("diopiRoiPoolMmcv")
def roi_pool(
    output: Array,
    argmax: Array,
    input: Array,
    rois: Array,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
) -> tuple[Array, Array]:
    largest, places = np.zeros(output.shape), np.zeros(argmax.shape, np.int64)
    for number, roi in enumerate(rois):
        low, high = roi[[2, 1]] * spatial_scale, (roi[[4, 3]] + 1) * spatial_scale
        extents = high - low
        if (extents <= 0).any():
            continue
        bins, lengths = (pooled_height, pooled_width), input.shape[2:]
        rows, columns = (_cells(*axis) for axis in zip(low, extents, bins, lengths, strict=True))
        for i, j in product(range(pooled_height), range(pooled_width)):
            cells = input[sample_of(roi)][:, rows[i].start : rows[i].stop, columns[j].start : columns[j].stop]
            if not cells.size:
                places[number, :, i, j] = -1
                continue
            best = np.argmax(cells.reshape(len(cells), -1), -1)
            y, x = np.unravel_index(best, cells.shape[1:])
            largest[number, :, i, j] = cells[np.arange(len(cells)), y, x]
            places[number, :, i, j] = (y + rows[i].start) * input.shape[3] + x + columns[j].start
    return largest, places


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
