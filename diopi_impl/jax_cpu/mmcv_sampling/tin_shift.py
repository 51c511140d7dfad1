"""Shifts of groups of channels in time, for temporal interlacing networks (TIN).

Frames have the shape (N, T, C, S): samples, time steps, channels and pixels. `shift` has the shape (N, groups).

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array

from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.sizes import check_rank, check_shapes


def _shift_frames(frames: Array, shift: Array, result: Any) -> Array:
    """Return the frames with each group of channels moved to later time steps by its shift; fill with zeros."""
    check_rank(4, frames=frames)
    check_rank(2, shift=shift)
    (n, t, c, _), groups = frames.shape, shift.shape[1]
    check_shapes((n, groups), shift=shift)
    if result.shape != frames.shape:
        raise ValueError(f"the result has shape {result.shape}, expected {frames.shape}")
    if not groups or c % groups:
        raise ValueError(f"{c} channels can't be divided into {groups} groups")
    if not frames.size:
        return frames
    source = jnp.arange(t)[:, jnp.newaxis] - jnp.repeat(shift, c // groups, 1)[:, jnp.newaxis]
    inside = (source >= 0) & (source < t)
    moved = jnp.take_along_axis(frames, jnp.where(inside, source, 0)[..., jnp.newaxis], 1)
    return jnp.where(inside[..., jnp.newaxis], moved, 0)


@vendor.implements("diopiTinShiftMmcv")
def tin_shift(output, input, shift):
    """Return the frames with each group of channels shifted in time."""
    return _shift_frames(input, shift, output)


@vendor.implements("diopiTinShiftBackwardMmcv")
def tin_shift_backward(grad_input, grad_output, shift):
    """Return grad_output shifted as in the forward function, as MMCV does.

    The exact gradient, shifted back, is also valid.
    """
    return _shift_frames(grad_output, shift, grad_input)
