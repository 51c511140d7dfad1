"""RoiAlign, of the mean and of the maximum."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.cases.model import ResultOverride
from diopi_test.oracle.reference import PartlySpecified, WithTerms, reference
from diopi_test.oracle.reference.detection import roi_align as mean_roi_align
from diopi_test.oracle.reference.detection import roi_align_backward as mean_roi_align_backward
from diopi_test.oracle.reference.mmcv_roi.grid import Pair, flat, gathered, grid_of, sample_of
from diopi_test.oracle.reference.sampling import Coordinate, bordered, combined, exact, put, samples, stacked, taken

Array = NDArray[Any]
MEAN = 1
"""The pool_mode of RoiAlign that is not the maximum."""

NO_SAMPLE = -float(np.finfo(np.float32).max)
"""What the largest of no samples is."""


@reference("diopiRoiAlignMmcv")
def roi_align(
    input: Array,
    rois: Array,
    aligned_height: int,
    aligned_width: int,
    sampling_ratio: int,
    pool_mode: int,
    spatial_scale: float,
    aligned: bool,
    *,
    out: tuple[ResultOverride, ...],
) -> tuple[Any, Any, Any]:
    if pool_mode == MEAN:
        attributes = spatial_scale, aligned_height, aligned_width, sampling_ratio, aligned
        nothing = [PartlySpecified(np.zeros(one.shape or (0,)), specified=False) for one in out[1:]]
        return mean_roi_align(input, rois, *attributes), nothing[0], nothing[1]
    bins, shape = (aligned_height, aligned_width), (len(rois), input.shape[1], aligned_height, aligned_width)
    parts = [_largest(roi, input, spatial_scale, bins, sampling_ratio, aligned) for roi in rois]
    value, y, x = (stacked([part[k] for part in parts], shape) for k in range(3))
    return value, y, x


def _largest(
    roi: Array, input: Array, scale: float, bins: Pair, ratio: int, aligned: bool
) -> tuple[WithTerms, WithTerms, WithTerms]:
    """The largest sample of each bin, and where it is."""
    grid = grid_of(roi, scale, bins, ratio, aligned, np.zeros((2, *bins)))
    its, maps = grid.on((input.shape[2], input.shape[3])), input[sample_of(roi)]
    values = combined(taken(its.index), its.weight, exact(flat(maps)))
    if not its.index.size:
        nothing = np.full((len(maps), *bins), NO_SAMPLE)
        return exact(nothing), exact(-np.ones(nothing.shape)), exact(-np.ones(nothing.shape))
    best = np.argmax(values.value, -1)[..., np.newaxis]

    def chosen(given: WithTerms) -> WithTerms:
        both = (np.broadcast_to(one, values.value.shape) for one in (given.value, given.terms))
        return WithTerms(*(np.take_along_axis(one, best, -1)[..., 0] for one in both))

    y, x = (chosen(WithTerms(at.value, at.terms)) for at in (grid.y, grid.x))
    return chosen(values), y, x


@reference("diopiRoiAlignBackwardMmcv")
def roi_align_backward(
    grad_input: Array,
    grad_output: Array,
    rois: Array,
    argmax_y: Array,
    argmax_x: Array,
    aligned_height: int,
    aligned_width: int,
    sampling_ratio: int,
    pool_mode: int,
    spatial_scale: float,
    aligned: bool,
) -> WithTerms:
    shape = grad_input.shape
    if pool_mode == MEAN:
        attributes = spatial_scale, aligned_height, aligned_width, *shape, sampling_ratio, aligned
        return mean_roi_align_backward(grad_output, rois, *attributes)
    there = argmax_y != -1

    def of_roi(number: int, roi: Array) -> WithTerms:
        given = np.where(there[number], grad_output[number], 0)
        return at_places(argmax_y[number], argmax_x[number], given, (shape[2], shape[3]))

    return gathered(rois, shape, of_roi)


def at_places(y: Array, x: Array, grad: Array, size: Pair) -> WithTerms:
    """What maps of this size get of grad (C, …), each channel at places (C, …) of its own."""
    parts = []
    for row, column, given in zip(y, x, grad, strict=True):
        rows, columns = (Coordinate(at, np.abs(at)) for at in (row, column))
        its = samples(bordered(rows, size[0]), bordered(columns, size[1]), size[1])
        parts.append(combined(put(its.index, size[0] * size[1]), its.weight, exact(given[np.newaxis])))
    return stacked(parts, (len(grad), *size))
