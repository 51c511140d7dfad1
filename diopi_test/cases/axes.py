"""Shared parts of the cases of functions that work along one or several axes of a tensor, such as softmax and sum.

A template (`CaseTemplate`) describes cases that differ only in their element type. The `sizes` of the templates in this
module are `Axes` objects.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from diopi_proto.types import Dtype
from diopi_test.cases.layouts import strided, transposed
from diopi_test.cases.template import CaseTemplate, DtypeSelection


@dataclass(frozen=True)
class Axes:
    """The shape of an input and the axes along which a function works, as the `sizes` of a template.

    Attributes:
        shape: The shape of the input.
        axes: The axes; −1 is the last one. An empty tuple means all axes if the function accepts that.
        keepdim: Whether a reduction keeps the reduced axes with size 1.
    """

    shape: tuple[int, ...]
    axes: tuple[int, ...]
    keepdim: bool = False

    @property
    def axis(self) -> int | None:
        """Return the first of the axes, for functions that accept one axis; None if `axes` is empty."""
        return self.axes[0] if self.axes else None

    @property
    def reduced_shape(self) -> tuple[int, ...]:
        """Return the shape of the result of a reduction along the axes; if `axes` is empty, along all axes."""
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
        """Return a template with `Axes` as its sizes.

        Args:
            label: The label of the cases without the element type.
            shape: The shape of the input.
            axes: The axes; −1 is the last one.
            keepdim: Whether a reduction keeps the reduced axes with size 1.
            all_dtypes: Whether there is a case for every element type that the function accepts, instead of only for
                float32.
            fields: Further fields of the template.

        Returns:
            The template.
        """
        dtypes = DtypeSelection.all if all_dtypes else (Dtype.float32,)
        return CaseTemplate(label, cls(shape, axes, keepdim), dtypes=dtypes, **fields)

    @classmethod
    def untested_templates(cls, templates: Sequence[CaseTemplate[Axes]]) -> list[CaseTemplate[Axes]]:
        """Return templates for the axes that `templates` do not test, for tensors of ranks 1 to 4.

        Args:
            templates: The templates that already exist. The axes of large templates do not count as tested.

        Returns:
            One float32 template per combination of a rank and an axis from −rank to rank − 1 that no template has.
            `keepdim` is true for even axes and false for odd axes.
        """
        tested = {
            (len(template.sizes.shape), template.sizes.axis)
            for template in templates
            if template.sizes.axis is not None and not template.large
        }
        return [
            cls.template(label, shape, (axis,), keepdim=axis % 2 == 0) for label, shape, axis in untested_axes(tested)
        ]


_SHAPES = ((6,), (5, 4), (3, 5, 4), (3, 2, 5, 4))
"""Shapes of ranks 1 to 4. The sizes within a shape differ, so that a wrong axis changes the shape of the result."""


def untested_axes(tested: Collection[tuple[int, int]] = ()) -> Iterator[tuple[str, tuple[int, ...], int]]:
    """Yield the axes that no case tests, for tensors of ranks 1 to 4.

    Args:
        tested: Pairs of a rank and an axis that other cases test. The axes −1 and rank − 1 are different entries.

    Yields:
        A label such as `axis-2-of-3`, a shape of this rank, and the axis.
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
    Axes.template("sixth-of-8", (2, 1, 2, 2, 1, 3, 2, 2), (5,)),
)
"""Templates of calls along one axis that contains at least one element, or of a tensor without axes ("scalar").

The lengths 1031 and 130 exceed common block sizes, such as 128 and 1024 elements, by a few elements.
"""
