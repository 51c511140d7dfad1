"""Shifts of groups of channels in time, for temporal interlacing networks (TIN).

Frames have the shape (N, T, C, S): samples, time steps, channels and pixels. `shift` has the shape (N, groups).

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.

Source: H. Shao et al., "Temporal Interlacing Network", 2020.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import AnyOf, reference

Array = NDArray[Any]


def _shift_frames(frames: Array, shift: Array) -> Array:
    """Return the frames with each group of channels moved to later time steps by its shift; fill with zeros."""
    t, c = frames.shape[1:3]
    if c % shift.shape[1]:
        raise ValueError(f"input has {c} channels, expected a multiple of the number of groups, {shift.shape[1]}")
    result, channels = np.zeros(frames.shape), c // shift.shape[1]
    for sample, group in np.ndindex(*shift.shape):
        offset, group_channels = int(shift[sample, group]), slice(group * channels, (group + 1) * channels)
        length, start, source = max(t - abs(offset), 0), max(offset, 0), max(-offset, 0)
        result[sample, start : start + length, group_channels] = frames[
            sample, source : source + length, group_channels
        ]
    return result


@reference("diopiTinShiftMmcv")
def tin_shift(input, shift):
    """Return the frames with each group of channels shifted in time."""
    return _shift_frames(input, shift)


@reference("diopiTinShiftBackwardMmcv")
def tin_shift_backward(grad_output, shift):
    """Return grad_output shifted as in the forward function, as MMCV does.

    The exact gradient, shifted back, is also valid.
    """
    return AnyOf(_shift_frames(grad_output, shift))
