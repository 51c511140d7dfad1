"""Checks and normalization of axis arguments."""

from __future__ import annotations

from collections.abc import Sequence

from jax import Array


def check_axes(input: Array, *axes: int) -> None:
    """Raise ValueError unless every axis exists and none occurs twice; a 0-d input counts as having one axis."""
    rank = max(input.ndim, 1)
    for axis in axes:
        if not -rank <= axis < rank:
            raise ValueError(f"dim {axis} is out of range for a {input.ndim}-d input")
    if len({axis % rank for axis in axes}) < len(axes):
        raise ValueError(f"dim {axes} names an axis twice")


def normalize_axes(input: Array, axes: Sequence[int]) -> tuple[int, ...]:
    """Return the axes counted from the first one; none for a 0-d input, whose single axis JAX does not have.

    Args:
        input: the array that has the axes.
        axes: the axes, negative ones counted from the last.

    Returns:
        The axes from 0 on, in the same order.

    Raises:
        ValueError: if an axis does not exist or occurs twice.
    """
    check_axes(input, *axes)
    return tuple(axis % input.ndim for axis in axes) if input.ndim else ()


def first_normalized_axis(input: Array, normalized_shape: Sequence[int]) -> int:
    """Return the input's first axis that `normalized_shape` describes; raise ValueError unless the shape ends in it."""
    begin = input.ndim - len(normalized_shape)
    if not normalized_shape or begin < 0 or input.shape[begin:] != tuple(normalized_shape):
        raise ValueError(f"input of shape {input.shape} does not end in normalized_shape {tuple(normalized_shape)}")
    return begin
