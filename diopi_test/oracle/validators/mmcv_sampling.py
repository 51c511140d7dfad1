"""The validator of the gradient of a temporal shift, which has two valid results.

The mathematical gradient shifts `grad_output` back. MMCV shifts it forward again, as the function itself does.
"""

from __future__ import annotations

import numpy as np

from diopi_test.oracle.validators import Array, CompletedCall, Problems, validates


def _shift_frames(frames: Array, shift: Array, direction: int) -> Array:
    """Return frames in which each channel is moved along the time axis; 0 where there is no source frame.

    Args:
        frames: The frames, [samples, time, channels, pixels].
        shift: The number of time steps by which each group of channels is moved, [samples, groups].
        direction: 1 to move by `shift`, −1 to move back.
    """
    n, t, c, _ = frames.shape
    shifts = np.repeat(shift, c // max(shift.shape[1], 1), 1)[:, np.newaxis]
    source = np.arange(t)[:, np.newaxis] - direction * shifts
    inside = (source >= 0) & (source < t)
    sample, channel = np.arange(n)[:, np.newaxis, np.newaxis], np.arange(c)
    return np.where(inside[..., np.newaxis], frames[sample, np.where(inside, source, 0), channel], 0)


def _is_identical(x: Array, y: Array) -> bool:
    """Return whether two arrays are identical. Zeros of different signs differ; all NaNs are identical."""
    signs = np.isnan(x) | (np.signbit(x) == np.signbit(y))
    return np.array_equal(x, y, equal_nan=True) and bool(signs.all())


@validates("diopiTinShiftBackwardMmcv")
def tin_shift_backward(call: CompletedCall) -> Problems:
    """Check that the gradient is exactly `grad_output`, shifted in one of the two directions as a whole."""
    grad_output, shift = call.arguments["grad_output"], call.arguments["shift"]
    if not grad_output.size:
        return
    candidates = [_shift_frames(grad_output, shift, direction) for direction in (1, -1)]
    if not any(_is_identical(call.result, moved) for moved in candidates):
        foreign = np.argwhere(~np.isin(call.result, grad_output) & (call.result != 0))
        detail = f"; the number at {foreign[0].tolist()} is not in grad_output" if len(foreign) else ""
        yield f"grad_input: expected grad_output shifted entirely forward, or entirely back{detail}"
