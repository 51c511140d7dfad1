"""What the cases of functions along axes share: which axes, in what shapes and layouts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from diopi_proto.types import Dtype
from diopi_test.case import ResultOverride
from diopi_test.layouts import Layout, contiguous, strided, transposed


@dataclass(frozen=True)
class Along:
    """Axes of a shape, and where the tensors lie.

    Attributes:
        label: the part of the case's label after the element type.
        shape: of the input.
        axes: negative ones count from the last; none are all, where the function takes that.
        kept: whether a reduction keeps the axes with size 1.
        layout, result: of the inputs and the result.
        common: whether every element type gets a case of it, not only float32.
        smoke: whether its cases belong to the smoke level too.
    """

    label: str
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    kept: bool = False
    layout: Layout = contiguous
    result: Layout = contiguous
    common: bool = False
    smoke: bool = False

    @property
    def axis(self) -> int | None:
        """The axis of a function that takes one, None for all."""
        return self.axes[0] if self.axes else None

    @property
    def reduced(self) -> tuple[int, ...]:
        """Shape of a reduction's result."""
        rank = len(self.shape)
        gone = {axis % rank for axis in self.axes} if rank and self.axes else set(range(rank))
        if self.kept:
            return tuple(1 if axis in gone else length for axis, length in enumerate(self.shape))
        return tuple(length for axis, length in enumerate(self.shape) if axis not in gone)

    @property
    def reduction(self) -> ResultOverride:
        """The result of a reduction as the caller makes it."""
        return ResultOverride(layout=self.result, shape=self.reduced)


ROWS = Along("rows", (7, 5), (1,), common=True, smoke=True)

ONE_AXIS = (
    ROWS,
    Along("columns", (7, 5), (0,)),
    Along("middle", (3, 4, 5), (-2,), layout=strided, result=strided, common=True),
    Along("first-of-4", (4, 2, 3, 2), (-4,), layout=transposed, result=transposed),
    Along("second-of-5", (2, 5, 3, 1, 2), (1,)),
    Along("cube", (5, 5, 5), (1,)),
    Along("vector", (6,), (-1,)),
    Along("length-one", (3, 1, 4), (1,)),
    Along("scalar", (), (0,)),
    Along("scalar-last", (), (-1,)),
    Along("no-slices", (0, 4), (1,)),
    Along("long", (1031,), (0,)),
    Along("long-rows", (24, 130), (-1,)),
    Along("long-columns", (130, 3), (0,)),
    Along("many-columns", (3, 1031), (0,)),
)
"""One axis; every axis length is at least 1."""

KEPT = (
    Along("kept", (4, 6), (0,), kept=True, common=True, smoke=True),
    Along("kept-middle", (3, 4, 5), (-2,), kept=True, layout=transposed, result=strided),
)

ALL_AXES = (
    Along("all", (3, 4, 5), (), layout=strided, common=True),
    Along("all-kept", (4, 6), (), kept=True, layout=transposed),
    Along("all-of-scalar", (), ()),
)

SEVERAL_AXES = (
    Along("two-axes", (2, 3, 4, 5), (3, 1)),
    Along("first-and-last", (3, 4, 5), (-1, 0), kept=True),
    Along("three-axes", (2, 5, 3, 4), (0, -1, 2), layout=transposed),
    Along("every-axis", (3, 5), (1, 0)),
)

NO_ELEMENTS = (
    Along("no-elements", (0, 3), (0,), common=True),
    Along("no-elements-kept", (2, 0, 3), (1,), kept=True),
    Along("all-of-none", (0, 3), ()),
)


def patterns_of(dtype: Dtype, patterns: Sequence[Along]) -> list[Along]:
    """All patterns for float32, the common ones for the element types whose code differs little from that."""
    return [pattern for pattern in patterns if pattern.common or dtype is Dtype.float32]
