"""The gradient of a temporal shift: shifted back, or once more in the forward's direction, as MMCV has it."""

from __future__ import annotations

import numpy as np

from diopi_test.oracle.validators import Answer, Array, Problems, validates


def _moved(frames: Array, shift: Array, direction: int) -> Array:
    """Frames (N, T, C, S), each taken from `direction` times its shift before; 0 where there is none."""
    n, t, c, _ = frames.shape
    shifts = np.repeat(shift, c // max(shift.shape[1], 1), 1)[:, np.newaxis]
    source = np.arange(t)[:, np.newaxis] - direction * shifts
    inside = (source >= 0) & (source < t)
    sample, channel = np.arange(n)[:, np.newaxis, np.newaxis], np.arange(c)
    return np.where(inside[..., np.newaxis], frames[sample, np.where(inside, source, 0), channel], 0)


def _equal(one: Array, other: Array) -> bool:
    """Number by number; zeros of either sign are two, NaN are all alike."""
    signs = np.isnan(one) | (np.signbit(one) == np.signbit(other))
    return np.array_equal(one, other, equal_nan=True) and bool(signs.all())


@validates("diopiTinShiftBackwardMmcv")
def tin_shift_backward(answer: Answer) -> Problems:
    """All of it in one direction, no bit changed."""
    given, shift = answer.arguments["grad_output"], answer.arguments["shift"]
    if not given.size:
        return
    either = [_moved(given, shift, direction) for direction in (1, -1)]
    if not any(_equal(answer.result, moved) for moved in either):
        wrong = np.argwhere(~np.isin(answer.result, given) & (answer.result != 0))
        where = f", which has numbers that are not its own, first at {wrong[0].tolist()}" if len(wrong) else ""
        yield f"grad_input: expected grad_output shifted forward, or all of it back{where}"
