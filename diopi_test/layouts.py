"""Layouts: where the elements of a tensor lie in its storage."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Placement:
    """Strides and first element of a tensor, and the elements of the storage it lies in."""

    strides: tuple[int, ...]
    offset: int
    storage_elements: int


Layout = Callable[[Sequence[int]], Placement]


def _dense(shape: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    """Strides of a dense tensor whose axes lie in memory in `order`, outermost first."""
    strides, step = [0] * len(shape), 1
    for axis in reversed(order):
        strides[axis] = step
        step *= max(shape[axis], 1)
    return tuple(strides)


def contiguous(shape: Sequence[int]) -> Placement:
    """Row-major, nothing before, between or after."""
    return Placement(_dense(shape, range(len(shape))), 0, int(np.prod(shape)))


def transposed(shape: Sequence[int]) -> Placement:
    """Column-major: the axes lie in memory in reverse order."""
    return Placement(_dense(shape, range(len(shape))[::-1]), 0, int(np.prod(shape)))


def channels_last(shape: Sequence[int]) -> Placement:
    """Axis 1 innermost: NHWC, NDHWC, NLC."""
    order = [0, *range(2, len(shape)), 1] if len(shape) > 2 else list(range(len(shape)))
    return Placement(_dense(shape, order), 0, int(np.prod(shape)))


def strided(shape: Sequence[int]) -> Placement:
    """Every second element of a larger row-major storage, from its third on: gaps inside, before and after."""
    strides = tuple(2 * stride for stride in _dense(shape, range(len(shape))))
    return Placement(strides, 3, 2 * int(np.prod(shape)) + 5)


def expanded(shape: Sequence[int]) -> Placement:
    """Stride 0 along the first axis longer than 1, as a broadcast view has it; for inputs only."""
    axis = next((i for i, length in enumerate(shape) if length > 1), None)
    inner = [1 if i == axis else length for i, length in enumerate(shape)]
    strides = [0 if i == axis else stride for i, stride in enumerate(_dense(inner, range(len(inner))))]
    return Placement(tuple(strides), 0, int(np.prod(inner)))


LAYOUTS: dict[str, Layout] = {
    layout.__name__: layout for layout in (contiguous, transposed, channels_last, strided, expanded)
}
"""All layouts by name, the name a stored case carries."""


def another(layout: str, shape: Sequence[int]) -> str:
    """The name of a layout in which the elements of a tensor lie in other places: row by row, if they don't yet."""
    if layout != "contiguous":
        return "contiguous"
    return "transposed" if sum(length > 1 for length in shape) > 1 else "strided"
