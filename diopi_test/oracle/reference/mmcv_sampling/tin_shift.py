"""Shifts of groups of channels in time, of a temporal interlacing network (TIN)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import AnyOf, reference

Array = NDArray[Any]


def _shifted(frames: Array, shift: Array) -> Array:
    """Frames (N, T, C, S), groups of channels each by their own number of places; what comes in is 0."""
    t, c = frames.shape[1:3]
    if c % shift.shape[1]:
        raise ValueError(f"{c} channels do not make {shift.shape[1]} groups")
    result, channels = np.zeros(frames.shape), c // shift.shape[1]
    for sample, group in np.ndindex(*shift.shape):
        by, its = int(shift[sample, group]), slice(group * channels, (group + 1) * channels)
        kept, start, source = max(t - abs(by), 0), max(by, 0), max(-by, 0)
        result[sample, start : start + kept, its] = frames[sample, source : source + kept, its]
    return result


@reference("diopiTinShiftMmcv")
def tin_shift(output: Array, input: Array, shift: Array) -> Array:
    return _shifted(input, shift)


@reference("diopiTinShiftBackwardMmcv")
def tin_shift_backward(grad_input: Array, grad_output: Array, shift: Array) -> AnyOf:
    return AnyOf(_shifted(grad_output, shift))
