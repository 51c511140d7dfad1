"""Which axes a call may name."""

from __future__ import annotations

from jax import Array


def check_axes(input: Array, *axes: int) -> None:
    """Raise ValueError unless every axis exists and none is named twice; 0-d input has one."""
    rank = max(input.ndim, 1)
    for axis in axes:
        if not -rank <= axis < rank:
            raise ValueError(f"dim {axis} is out of range for a {input.ndim}-d input")
    if len({axis % rank for axis in axes}) < len(axes):
        raise ValueError(f"dim {axes} names an axis twice")
