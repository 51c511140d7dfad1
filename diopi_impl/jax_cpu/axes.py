"""Which axes a call may name."""

from __future__ import annotations

from collections.abc import Sequence

from jax import Array


def check_axes(input: Array, *axes: int) -> None:
    """Raise ValueError unless every axis exists and none is named twice; 0-d input has one."""
    rank = max(input.ndim, 1)
    for axis in axes:
        if not -rank <= axis < rank:
            raise ValueError(f"dim {axis} is out of range for a {input.ndim}-d input")
    if len({axis % rank for axis in axes}) < len(axes):
        raise ValueError(f"dim {axes} names an axis twice")


def normalize_axes(input: Array, axes: Sequence[int]) -> tuple[int, ...]:
    """The axes a list names, counted from the first; the one axis of 0-d input is none that JAX knows.

    Raises ValueError as `check_axes` does.
    """
    check_axes(input, *axes)
    return tuple(axis % input.ndim for axis in axes) if input.ndim else ()


def first_normalized_axis(input: Array, normalized_shape: Sequence[int]) -> int:
    """The first of the last axes, whose sizes are `normalized_shape`; ValueError if they are not."""
    begin = input.ndim - len(normalized_shape)
    if not normalized_shape or begin < 0 or input.shape[begin:] != tuple(normalized_shape):
        raise ValueError(f"input of shape {input.shape} does not end in normalized_shape {tuple(normalized_shape)}")
    return begin
