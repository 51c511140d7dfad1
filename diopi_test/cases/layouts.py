"""Layouts: where the elements of a tensor lie in its storage."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import final


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
    return Placement(_dense(shape, range(len(shape))), 0, prod(shape))


def transposed(shape: Sequence[int]) -> Placement:
    """Column-major: the axes lie in memory in reverse order."""
    return Placement(_dense(shape, range(len(shape))[::-1]), 0, prod(shape))


def channels_last(shape: Sequence[int]) -> Placement:
    """Axis 1 innermost: NHWC, NDHWC, NLC."""
    order = [0, *range(2, len(shape)), 1] if len(shape) > 2 else list(range(len(shape)))
    return Placement(_dense(shape, order), 0, prod(shape))


def strided(shape: Sequence[int]) -> Placement:
    """Every second element of a larger row-major storage, from its third on: gaps inside, before and after."""
    strides = tuple(2 * stride for stride in _dense(shape, range(len(shape))))
    return Placement(strides, 3, 2 * prod(shape) + 5)


def expanded(shape: Sequence[int]) -> Placement:
    """Stride 0 along the first axis longer than 1, as a broadcast view has it; for inputs only."""
    axis = next((i for i, length in enumerate(shape) if length > 1), None)
    inner = [1 if i == axis else length for i, length in enumerate(shape)]
    strides = [0 if i == axis else stride for i, stride in enumerate(_dense(inner, range(len(inner))))]
    return Placement(tuple(strides), 0, prod(inner))


@final
@dataclass(frozen=True)
class Strides:
    """The layout of a tensor that has these strides, whatever its lengths, and begins at `offset`, all in elements.

    Its name, `strides(4096,1)` or `strides(4096,1)+3`, says all of it. A stride may be 0, and elements may share
    memory, where a tensor is an input.
    """

    steps: tuple[int, ...]
    offset: int = 0

    def __post_init__(self) -> None:
        if min((*self.steps, self.offset)) < 0:
            raise ValueError(f"strides {self.steps} and offset {self.offset}: expected no negative number")

    @property
    def __name__(self) -> str:
        begin = f"+{self.offset}" if self.offset else ""
        return f"strides({','.join(map(str, self.steps))}){begin}"

    def __call__(self, shape: Sequence[int]) -> Placement:
        """Where the elements lie; ValueError if `shape` has not as many axes as there are strides."""
        if len(shape) != len(self.steps):
            raise ValueError(f"{self.__name__} is for {len(self.steps)} axes, not for shape {tuple(shape)}")
        last = sum((length - 1) * step for length, step in zip(shape, self.steps, strict=True))
        return Placement(self.steps, self.offset, 0 if 0 in shape else self.offset + last + 1)


def strides(*steps: int, offset: int = 0) -> Strides:
    """The layout with these strides; ValueError if one is negative."""
    return Strides(steps, offset)


def is_non_overlapping(placed: Placement, shape: Sequence[int]) -> bool:
    """Whether no two elements share memory; False also of strides too close together to tell at once."""
    end = 0
    for step, length in sorted(zip(placed.strides, shape, strict=True)):
        if length > 1 and step <= end:
            return False
        end += (length - 1) * step
    return True


LAYOUTS: dict[str, Layout] = {
    layout.__name__: layout for layout in (contiguous, transposed, channels_last, strided, expanded)
}
"""The layouts that are for all shapes, by the name that a stored case carries."""

_STRIDES = re.compile(r"strides\((\d{1,18}(?:,\d{1,18})*)?\)(?:\+(\d{1,18}))?")


def layout_named(name: str) -> Layout:
    """The layout of this name, one of `LAYOUTS` or that of a `Strides`; ValueError if there is none."""
    if name in LAYOUTS:
        return LAYOUTS[name]
    if (found := _STRIDES.fullmatch(name)) is None:
        raise ValueError(f"there is no layout {name!r}: expected {', '.join(LAYOUTS)}, or strides(…) of whole numbers")
    steps, offset = found.groups()
    return Strides(tuple(int(step) for step in steps.split(",")) if steps else (), int(offset or 0))


def different_layout(layout: str, shape: Sequence[int]) -> str:
    """The name of a layout in which the elements of a tensor lie in other places: row by row, if they don't yet."""
    if layout != "contiguous":
        return "contiguous"
    return "transposed" if sum(length > 1 for length in shape) > 1 else "strided"
