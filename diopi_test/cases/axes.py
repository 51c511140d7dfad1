"""Shared parts of the cases of functions along axes: axes, shapes and layouts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from diopi_proto.types import Dtype
from diopi_test.cases.case import FULL
from diopi_test.cases.layouts import strided, transposed
from diopi_test.cases.template import CaseTemplate, DtypeSelection


@dataclass(frozen=True)
class Axes:
    """Axes of a shape.

    Attributes:
        shape: The shape of the input.
        axes: The axes; negative axes count from the last. An empty tuple means all axes if the function accepts that.
        keepdim: Whether a reduction keeps the reduced axes with size 1.
    """

    shape: tuple[int, ...]
    axes: tuple[int, ...]
    keepdim: bool = False

    @property
    def axis(self) -> int | None:
        """Return the axis of a function that takes one axis, None for all axes."""
        return self.axes[0] if self.axes else None

    @property
    def reduced_shape(self) -> tuple[int, ...]:
        """Return the shape of a reduction's result."""
        rank = len(self.shape)
        reduced_axes = {axis % rank for axis in self.axes} if rank and self.axes else set(range(rank))
        if self.keepdim:
            return tuple(1 if axis in reduced_axes else length for axis, length in enumerate(self.shape))
        return tuple(length for axis, length in enumerate(self.shape) if axis not in reduced_axes)


def axes_template(
    label: str,
    shape: tuple[int, ...],
    axes: tuple[int, ...],
    *,
    keepdim: bool = False,
    all_dtypes: bool = False,
    smoke: bool = False,
    **attributes: Any,
) -> CaseTemplate[Axes]:
    """Return the template of a call along axes.

    Args:
        label: The label of the cases.
        shape: The shape of the input.
        axes: The axes.
        keepdim: Whether a reduction keeps the reduced axes.
        all_dtypes: Whether there is a case for every element type instead of only float32.
        smoke: Whether the cases are smoke cases.
        attributes: Other attributes of the template.

    Returns:
        The template, with `Axes` as its sizes.
    """
    return CaseTemplate(
        label,
        Axes(shape, axes, keepdim),
        dtypes=DtypeSelection.all if all_dtypes else (Dtype.float32,),
        smoke=smoke,
        **attributes,
    )


SHAPES = ((6,), (5, 4), (3, 5, 4), (3, 2, 5, 4))
"""Shapes of ranks 1 to 4 without equal sizes within a shape."""


def rank_axis_pairs(ranks: Sequence[int] = (1, 2, 3, 4)) -> list[tuple[int, int]]:
    """Return (rank, axis) for every axis of tensors of these ranks, counted from either end."""
    return [(rank, axis) for rank in ranks for axis in range(-rank, rank)]


def untested_axes(tested: Collection[tuple[int, int]]) -> Iterator[tuple[str, tuple[int, ...], int]]:
    """Yield label, shape and axis for each (rank, axis) of ranks 1 to 4 that is not in `tested`."""
    for rank, axis in rank_axis_pairs():
        if (rank, axis) not in tested:
            yield f"axis{axis}-of-{rank}", SHAPES[rank - 1], axis


def untested_axes_templates(templates: Sequence[CaseTemplate[Axes]]) -> list[CaseTemplate[Axes]]:
    """Return calls along the axes that no template uses, alternately with and without `keepdim`."""
    tested = {
        (len(template.sizes.shape), template.sizes.axis)
        for template in templates
        if template.sizes.axis is not None and template.level == FULL
    }
    return [axes_template(label, shape, (axis,), keepdim=axis % 2 == 0) for label, shape, axis in untested_axes(tested)]


ROWS = axes_template("rows", (7, 5), (1,), all_dtypes=True, smoke=True)

ONE_AXIS = (
    ROWS,
    axes_template("columns", (7, 5), (0,)),
    axes_template("middle", (3, 4, 5), (-2,), layout=strided, result_layout=strided, all_dtypes=True),
    axes_template("first-of-4", (4, 2, 3, 2), (-4,), layout=transposed, result_layout=transposed),
    axes_template("second-of-5", (2, 5, 3, 1, 2), (1,)),
    axes_template("cube", (5, 5, 5), (1,)),
    axes_template("vector", (6,), (-1,)),
    axes_template("length-one", (3, 1, 4), (1,)),
    axes_template("scalar", (), (0,)),
    axes_template("scalar-last", (), (-1,)),
    axes_template("no-slices", (0, 4), (1,)),
    axes_template("long", (1031,), (0,)),
    axes_template("long-rows", (24, 130), (-1,)),
    axes_template("long-columns", (130, 3), (0,)),
    axes_template("many-columns", (3, 1031), (0,)),
)
"""Calls along one axis; every axis length is at least 1."""

KEEPDIM = (
    axes_template("kept", (4, 6), (0,), keepdim=True, all_dtypes=True, smoke=True),
    axes_template("kept-middle", (3, 4, 5), (-2,), keepdim=True, layout=transposed, result_layout=strided),
)

ALL_AXES = (
    axes_template("all", (3, 4, 5), (), layout=strided, all_dtypes=True),
    axes_template("all-kept", (4, 6), (), keepdim=True, layout=transposed),
    axes_template("all-of-scalar", (), ()),
)

SEVERAL_AXES = (
    axes_template("two-axes", (2, 3, 4, 5), (3, 1)),
    axes_template("first-and-last", (3, 4, 5), (-1, 0), keepdim=True),
    axes_template("three-axes", (2, 5, 3, 4), (0, -1, 2), layout=transposed),
    axes_template("every-axis", (3, 5), (1, 0)),
)

NO_ELEMENTS = (
    axes_template("no-elements", (0, 3), (0,), all_dtypes=True),
    axes_template("no-elements-kept", (2, 0, 3), (1,), keepdim=True),
    axes_template("all-of-none", (0, 3), ()),
)


def restrict_dtypes(template: CaseTemplate[Axes], dtypes: Sequence[Dtype]) -> CaseTemplate[Axes]:
    """Return the template restricted to the element types in `dtypes`."""
    return template.replace(
        dtypes=dtypes if template.dtypes is DtypeSelection.all else [d for d in dtypes if d is Dtype.float32]
    )
