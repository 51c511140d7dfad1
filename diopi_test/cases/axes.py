"""What the cases of functions along axes share: which axes, in what shapes and layouts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from diopi_proto.types import Dtype
from diopi_test.cases.layouts import strided, transposed
from diopi_test.cases.template import CaseTemplate, Types


@dataclass(frozen=True)
class Axes:
    """Axes of a shape.

    Attributes:
        shape: of the input.
        axes: negative ones count from the last; none are all, where the function takes that.
        kept: whether a reduction keeps the axes with size 1.
    """

    shape: tuple[int, ...]
    axes: tuple[int, ...]
    kept: bool = False

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


def along(
    label: str,
    shape: tuple[int, ...],
    axes: tuple[int, ...],
    *,
    kept: bool = False,
    common: bool = False,
    smoke: bool = False,
    **about: Any,
) -> CaseTemplate:
    """A call along these axes, in float32 alone or, if it is `common`, in every element type."""
    return CaseTemplate(
        label, Axes(shape, axes, kept), dtypes=Types.every if common else (Dtype.float32,), smoke=smoke, **about
    )


SHAPES = ((6,), (5, 4), (3, 5, 4), (3, 2, 5, 4))
"""Shapes of ranks 1 to 4, of whose axes no two are alike."""


def every_axis(ranks: Sequence[int] = (1, 2, 3, 4)) -> list[tuple[int, int]]:
    """Ranks, and the axes of tensors of these ranks, counted from either end."""
    return [(rank, axis) for rank in ranks for axis in range(-rank, rank)]


def untried(tried: Collection[tuple[int, int]]) -> Iterator[tuple[str, tuple[int, ...], int]]:
    """Label, shape and axis of cases along the axes of ranks 1 to 4 that are not among those tried, (rank, axis)."""
    for rank, axis in every_axis():
        if (rank, axis) not in tried:
            yield f"axis{axis}-of-{rank}", SHAPES[rank - 1], axis


def along_untried(templates: Sequence[CaseTemplate]) -> list[CaseTemplate]:
    """Calls along the axes that none of the templates is along, in turn with the axis kept and without it."""
    tried = {(len(one.sizes.shape), one.sizes.axis) for one in templates if one.sizes.axis is not None}
    return [along(label, shape, (axis,), kept=axis % 2 == 0) for label, shape, axis in untried(tried)]


ROWS = along("rows", (7, 5), (1,), common=True, smoke=True)

ONE_AXIS = (
    ROWS,
    along("columns", (7, 5), (0,)),
    along("middle", (3, 4, 5), (-2,), layout=strided, result=strided, common=True),
    along("first-of-4", (4, 2, 3, 2), (-4,), layout=transposed, result=transposed),
    along("second-of-5", (2, 5, 3, 1, 2), (1,)),
    along("cube", (5, 5, 5), (1,)),
    along("vector", (6,), (-1,)),
    along("length-one", (3, 1, 4), (1,)),
    along("scalar", (), (0,)),
    along("scalar-last", (), (-1,)),
    along("no-slices", (0, 4), (1,)),
    along("long", (1031,), (0,)),
    along("long-rows", (24, 130), (-1,)),
    along("long-columns", (130, 3), (0,)),
    along("many-columns", (3, 1031), (0,)),
)
"""One axis; every axis length is at least 1."""

KEPT = (
    along("kept", (4, 6), (0,), kept=True, common=True, smoke=True),
    along("kept-middle", (3, 4, 5), (-2,), kept=True, layout=transposed, result=strided),
)

ALL_AXES = (
    along("all", (3, 4, 5), (), layout=strided, common=True),
    along("all-kept", (4, 6), (), kept=True, layout=transposed),
    along("all-of-scalar", (), ()),
)

SEVERAL_AXES = (
    along("two-axes", (2, 3, 4, 5), (3, 1)),
    along("first-and-last", (3, 4, 5), (-1, 0), kept=True),
    along("three-axes", (2, 5, 3, 4), (0, -1, 2), layout=transposed),
    along("every-axis", (3, 5), (1, 0)),
)

NO_ELEMENTS = (
    along("no-elements", (0, 3), (0,), common=True),
    along("no-elements-kept", (2, 0, 3), (1,), kept=True),
    along("all-of-none", (0, 3), ()),
)


def narrowed(template: CaseTemplate, dtypes: Sequence[Dtype]) -> CaseTemplate:
    """The template for those of its element types that are among `dtypes`."""
    return template.but(dtypes=dtypes if template.dtypes is Types.every else [d for d in dtypes if d is Dtype.float32])
