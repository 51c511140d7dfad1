"""Shared parts of the cases of functions along axes: axes, shapes and layouts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from diopi_proto.types import Dtype
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

    @classmethod
    def template(
        cls,
        label: str,
        shape: tuple[int, ...],
        axes: tuple[int, ...],
        *,
        keepdim: bool = False,
        all_dtypes: bool = False,
        **fields: Any,
    ) -> CaseTemplate[Axes]:
        """Return the template of a call along axes.

        Args:
            label: The label of the cases.
            shape: The shape of the input.
            axes: The axes.
            keepdim: Whether a reduction keeps the reduced axes.
            all_dtypes: Whether there is a case for every element type instead of only float32.
            fields: Further fields of the template.

        Returns:
            The template, with `Axes` as its sizes.
        """
        dtypes = DtypeSelection.all if all_dtypes else (Dtype.float32,)
        return CaseTemplate(label, cls(shape, axes, keepdim), dtypes=dtypes, **fields)

    @classmethod
    def untested_templates(cls, templates: Sequence[CaseTemplate[Axes]]) -> list[CaseTemplate[Axes]]:
        """Return calls along the axes that no template uses, alternately with and without `keepdim`."""
        tested = {
            (len(template.sizes.shape), template.sizes.axis)
            for template in templates
            if template.sizes.axis is not None and not template.large
        }
        return [
            cls.template(label, shape, (axis,), keepdim=axis % 2 == 0) for label, shape, axis in untested_axes(tested)
        ]


_SHAPES = ((6,), (5, 4), (3, 5, 4), (3, 2, 5, 4))
"""Shapes of ranks 1 to 4 without equal sizes within a shape."""


def untested_axes(tested: Collection[tuple[int, int]] = ()) -> Iterator[tuple[str, tuple[int, ...], int]]:
    """Yield label, shape and axis for each axis of ranks 1 to 4, counted from either end, that is not tested.

    Args:
        tested: The ranks and axes that other cases test.

    Yields:
        A label, a shape of the rank, and the axis.
    """
    for shape in _SHAPES:
        rank = len(shape)
        for axis in range(-rank, rank):
            if (rank, axis) not in tested:
                yield f"axis{axis}-of-{rank}", shape, axis


ONE_AXIS = (
    Axes.template("rows", (7, 5), (1,), all_dtypes=True, smoke=True),
    Axes.template("columns", (7, 5), (0,)),
    Axes.template("middle", (3, 4, 5), (-2,), layout=strided, result_layout=strided, all_dtypes=True),
    Axes.template("first-of-4", (4, 2, 3, 2), (-4,), layout=transposed, result_layout=transposed),
    Axes.template("second-of-5", (2, 5, 3, 1, 2), (1,)),
    Axes.template("cube", (5, 5, 5), (1,)),
    Axes.template("vector", (6,), (-1,)),
    Axes.template("length-one", (3, 1, 4), (1,)),
    Axes.template("scalar", (), (0,)),
    Axes.template("scalar-last", (), (-1,)),
    Axes.template("no-slices", (0, 4), (1,)),
    Axes.template("long", (1031,), (0,)),
    Axes.template("long-rows", (24, 130), (-1,)),
    Axes.template("long-columns", (130, 3), (0,)),
    Axes.template("many-columns", (3, 1031), (0,)),
)
"""Calls along one axis; every axis length is at least 1."""
