"""Layouts: the positions of a tensor's elements in its storage."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import final


@dataclass(frozen=True)
class Placement:
    """Strides and offset of a tensor, and the number of elements of its storage."""

    strides: tuple[int, ...]
    offset: int
    storage_elements: int

    def is_non_overlapping(self, shape: Sequence[int]) -> bool:
        """Return whether no two elements share memory; False if the strides are too complex to decide quickly."""
        end = 0
        for step, length in sorted(zip(self.strides, shape, strict=True)):
            if length > 1 and step <= end:
                return False
            end += (length - 1) * step
        return True


Layout = Callable[[Sequence[int]], Placement]


def _dense(shape: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a dense tensor whose axes lie in memory in `order`, outermost first."""
    strides, step = [0] * len(shape), 1
    for axis in reversed(order):
        strides[axis] = step
        step *= max(shape[axis], 1)
    return tuple(strides)


def contiguous(shape: Sequence[int]) -> Placement:
    """Place elements in row-major order without gaps."""
    return Placement(_dense(shape, range(len(shape))), 0, prod(shape))


def transposed(shape: Sequence[int]) -> Placement:
    """Place elements in column-major order: the axes lie in memory in reverse order."""
    return Placement(_dense(shape, range(len(shape))[::-1]), 0, prod(shape))


def channels_last(shape: Sequence[int]) -> Placement:
    """Place elements with axis 1 innermost: NHWC, NDHWC, NLC."""
    order = [0, *range(2, len(shape)), 1] if len(shape) > 2 else list(range(len(shape)))
    return Placement(_dense(shape, order), 0, prod(shape))


def strided(shape: Sequence[int]) -> Placement:
    """Use every second element of a larger row-major storage from the third on: gaps inside, before and after."""
    strides = tuple(2 * stride for stride in _dense(shape, range(len(shape))))
    return Placement(strides, 3, 2 * prod(shape) + 5)


def expanded(shape: Sequence[int]) -> Placement:
    """Use stride 0 along the first axis longer than 1, like a broadcast view; for inputs only."""
    axis = next((i for i, length in enumerate(shape) if length > 1), None)
    inner = [1 if i == axis else length for i, length in enumerate(shape)]
    strides = [0 if i == axis else stride for i, stride in enumerate(_dense(inner, range(len(inner))))]
    return Placement(tuple(strides), 0, prod(inner))


@final
@dataclass(frozen=True)
class Strides:
    """The layout of a tensor with fixed strides and offset in elements.

    Its name, `strides(4096,1)` or `strides(4096,1)+3`, describes it completely. A stride may be 0, and elements of an
    input may share memory.
    """

    steps: tuple[int, ...]
    offset: int = 0

    def __post_init__(self) -> None:
        """Raise ValueError if a stride or the offset is negative."""
        if min((*self.steps, self.offset)) < 0:
            raise ValueError(
                f"the strides {self.steps} or the offset {self.offset} are negative, expected numbers from 0 on"
            )

    @property
    def __name__(self) -> str:
        """Return the name that describes the layout in case labels and stored cases."""
        begin = f"+{self.offset}" if self.offset else ""
        return f"strides({','.join(map(str, self.steps))}){begin}"

    def __call__(self, shape: Sequence[int]) -> Placement:
        """Return the placement of a tensor; raise ValueError unless `shape` has one axis per stride."""
        if len(shape) != len(self.steps):
            raise ValueError(
                f"the shape {tuple(shape)} has {len(shape)} axes, expected {len(self.steps)} for {self.__name__}"
            )
        last = sum((length - 1) * step for length, step in zip(shape, self.steps, strict=True))
        return Placement(self.steps, self.offset, 0 if 0 in shape else self.offset + last + 1)


def strides(*steps: int, offset: int = 0) -> Strides:
    """Return the layout with these strides; raise ValueError if a number is negative."""
    return Strides(steps, offset)


LAYOUTS: dict[str, Layout] = {
    layout.__name__: layout for layout in (contiguous, transposed, channels_last, strided, expanded)
}
"""The layouts for all shapes, by the name in stored cases."""

_STRIDES = re.compile(r"strides\((\d{1,18}(?:,\d{1,18})*)?\)(?:\+(\d{1,18}))?")


def layout_named(name: str) -> Layout:
    """Return the layout with this name: a key of `LAYOUTS`, or a `Strides`; raise ValueError for other names."""
    if name in LAYOUTS:
        return LAYOUTS[name]
    if (found := _STRIDES.fullmatch(name)) is None:
        raise ValueError(f"the layout {name!r} is unknown, expected {', '.join(LAYOUTS)}, or strides(…) with integers")
    steps, offset = found.groups()
    return Strides(tuple(int(step) for step in steps.split(",")) if steps else (), int(offset or 0))


def different_layout(layout: str, shape: Sequence[int]) -> str:
    """Return the name of a layout with other element positions: contiguous, unless `layout` is contiguous already."""
    if layout != "contiguous":
        return "contiguous"
    return "transposed" if sum(length > 1 for length in shape) > 1 else "strided"
