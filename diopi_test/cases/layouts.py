"""Layouts: the positions of a tensor's elements in its storage.

A storage is the block of memory that contains a tensor. It can be larger than the tensor, with gaps between elements.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import final


@dataclass(frozen=True)
class Placement:
    """The positions of a tensor's elements in its storage. All fields count elements, not bytes.

    Attributes:
        strides: The distance of neighboring elements along each axis.
        offset: The position of the first element.
        storage_elements: The number of elements of the storage.
    """

    strides: tuple[int, ...]
    offset: int
    storage_elements: int

    def is_non_overlapping(self, shape: Sequence[int]) -> bool:
        """Return whether no two elements of a tensor of the shape `shape` share memory.

        The check is conservative: it also returns False for some placements without overlaps, in which the elements of
        one axis lie between those of another.
        """
        end = 0
        for step, length in sorted(zip(self.strides, shape, strict=True)):
            if length > 1 and step <= end:
                return False
            end += (length - 1) * step
        return True


Layout = Callable[[Sequence[int]], Placement]
"""Returns the placement of a tensor for its shape; `contiguous` is a layout."""


def _dense(shape: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    """Return the strides, in elements, of a tensor without gaps between its elements.

    Args:
        shape: The sizes.
        order: The axes from the outermost, which has the largest stride, to the innermost, which has the stride 1.

    Returns:
        One stride per axis. An axis of length 0 counts as an axis of length 1.
    """
    strides, step = [0] * len(shape), 1
    for axis in reversed(order):
        strides[axis] = step
        step *= max(shape[axis], 1)
    return tuple(strides)


def contiguous(shape: Sequence[int]) -> Placement:
    """Place elements in row-major order without gaps."""
    return Placement(_dense(shape, range(len(shape))), 0, prod(shape))


def transposed(shape: Sequence[int]) -> Placement:
    """Place elements in column-major order without gaps: the first axis is the innermost."""
    return Placement(_dense(shape, range(len(shape))[::-1]), 0, prod(shape))


def channels_last(shape: Sequence[int]) -> Placement:
    """Return a placement without gaps in which axis 1, the channels, is innermost, as in NHWC.

    Tensors of fewer than three axes are placed in row-major order.
    """
    order = [0, *range(2, len(shape)), 1] if len(shape) > 2 else list(range(len(shape)))
    return Placement(_dense(shape, order), 0, prod(shape))


def strided(shape: Sequence[int]) -> Placement:
    """Return a row-major placement that uses every second position of the storage, starting at position 3.

    The storage has gaps before the first element, between all elements and after the last element.
    """
    strides = tuple(2 * stride for stride in _dense(shape, range(len(shape))))
    return Placement(strides, 3, 2 * prod(shape) + 5)


def expanded(shape: Sequence[int]) -> Placement:
    """Return a row-major placement with stride 0 along the first axis longer than 1, as in a broadcast view.

    All elements along this axis share memory. Therefore only inputs may have this layout.
    """
    axis = next((i for i, length in enumerate(shape) if length > 1), None)
    inner = [1 if i == axis else length for i, length in enumerate(shape)]
    strides = [0 if i == axis else stride for i, stride in enumerate(_dense(inner, range(len(inner))))]
    return Placement(tuple(strides), 0, prod(inner))


@final
@dataclass(frozen=True)
class Strides:
    """The layout of a tensor with fixed strides and offset in elements.

    The name of the layout contains all numbers: `strides(4096,1)`, or `strides(4096,1)+3` with the offset 3. A stride
    may be 0, and elements of an input may share memory.

    Attributes:
        steps: The strides, one per axis.
        offset: The position of the first element in the storage.
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
        suffix = f"+{self.offset}" if self.offset else ""
        return f"strides({','.join(map(str, self.steps))}){suffix}"

    def __call__(self, shape: Sequence[int]) -> Placement:
        """Return the placement of a tensor; raise ValueError unless `shape` has one axis per stride."""
        if len(shape) != len(self.steps):
            raise ValueError(
                f"the shape {tuple(shape)} has {len(shape)} axes, expected {len(self.steps)} for {self.__name__}"
            )
        last = sum((length - 1) * step for length, step in zip(shape, self.steps, strict=True))
        return Placement(self.steps, self.offset, 0 if 0 in shape else self.offset + last + 1)


def strides(*steps: int, offset: int = 0) -> Strides:
    """Return the layout with fixed strides.

    Args:
        *steps: The strides in elements, one per axis.
        offset: The position of the first element in the storage.

    Returns:
        The layout, for tensors with as many axes as there are strides.

    Raises:
        ValueError: A stride or the offset is negative.
    """
    return Strides(steps, offset)


LAYOUTS: dict[str, Layout] = {
    layout.__name__: layout for layout in (contiguous, transposed, channels_last, strided, expanded)
}
"""The layouts that work for tensors of any shape, by their names in case labels and stored cases."""

_STRIDES = re.compile(r"strides\((\d{1,18}(?:,\d{1,18})*)?\)(?:\+(\d{1,18}))?")
"""Matches the name of a `Strides` layout, such as `strides(8,1)` or `strides(8,1)+3`."""


def layout_named(name: str) -> Layout:
    """Return the layout with a name from a stored case.

    Args:
        name: A key of `LAYOUTS`, or the name of a `Strides` layout, such as `strides(8,1)+3`.

    Returns:
        The layout.

    Raises:
        ValueError: No layout has this name.
    """
    if name in LAYOUTS:
        return LAYOUTS[name]
    if (match := _STRIDES.fullmatch(name)) is None:
        raise ValueError(f"the layout {name!r} is unknown, expected {', '.join(LAYOUTS)}, or strides(…) with integers")
    steps, offset = match.groups()
    return Strides(tuple(int(step) for step in steps.split(",")) if steps else (), int(offset or 0))


def different_layout(layout: str, shape: Sequence[int]) -> str:
    """Return the name of a layout that differs from `layout`, for a second call with the same values.

    Args:
        layout: The name of a layout.
        shape: The shape of the tensor.

    Returns:
        "contiguous" unless `layout` is contiguous. Otherwise "transposed", or "strided" if fewer than two axes are
        longer than 1, because transposing does not move elements then.
    """
    if layout != "contiguous":
        return "contiguous"
    return "transposed" if sum(length > 1 for length in shape) > 1 else "strided"
