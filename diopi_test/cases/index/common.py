"""Shared parts of the cases of this family: sizes, tables of templates, layouts, and sums of gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from diopi_proto.dtypes import complexes, floating, half
from diopi_proto.types import Dtype
from diopi_test.cases.axes import untested_axes
from diopi_test.cases.case import TensorSpec
from diopi_test.cases.domains import choice, integer_values, uniform
from diopi_test.cases.layouts import contiguous, strided, strides, transposed
from diopi_test.cases.template import CaseTemplate, DtypeSelection
from diopi_test.cases.tensors import literal

Shape = tuple[int, ...]
"""The sizes of a tensor."""


class AlongAxis(Protocol):
    """Sizes of a call along one axis."""

    @property
    def shape(self) -> Shape:
        """Return the shape of the tensor."""

    @property
    def axis(self) -> int:
        """Return the axis."""


Sizes = TypeVar("Sizes")
AxisSizes = TypeVar("AxisSizes", bound=AlongAxis)


@dataclass(frozen=True)
class IndexedAxis:
    """Positions along an axis, given by an index tensor.

    Attributes:
        shape: The shape of the tensor that the function reads or writes.
        axis: The axis.
        index: The positions.
    """

    shape: Shape
    axis: int
    index: TensorSpec


@dataclass(frozen=True)
class IndexedTable:
    """A table, or a tensor with several axes, and the positions that a call reads or writes.

    Attributes:
        shape: The shape of the table.
        indices: The positions.
    """

    shape: Shape
    indices: TensorSpec


ONE_DTYPE_PER_KIND = (Dtype.float32, Dtype.bfloat16, Dtype.int64, Dtype.complex64)
"""One element type of each kind, for templates that matter in more than one."""

INEXACT = (*floating, *complexes)
"""The element types whose sums are rounded."""

ALIKE = [(layout, layout) for layout in (contiguous, transposed, strided)]
"""Layouts of arguments and result, for `CaseTemplate.cycle_layouts`: the same layout."""

UNLIKE = [(contiguous, transposed), (strided, contiguous)]
"""Different layouts of arguments and result."""

SUMMANDS = integer_values(-3, 3)
"""Numbers of which every floating type represents sums of a few dozen exactly, in any order."""

POSITIVE = uniform(0.7, 0.74)
"""Numbers that a running sum in half precision first rounds, always in the same direction, and finally ignores."""

OFTEN = literal(np.resize([1, 1, 1, 0], 1100))
"""Indices of two of three positions: one occurs 825 times, the other 275 times."""

MOST_OFTEN = literal(np.resize([1, 1, 1, 0], 8000))
"""Like `OFTEN`, but so long that the equal rounding errors of a few different numbers add up."""

NEIGHBOURS = choice([2**62 + i for i in range(-20, 20)])
"""Different numbers of int64 that are equal as float64."""

ONE_PLACE_REASON = "there is but one place"
"""Why a case does not show which place is read or written."""

ALL_TRUE_REASON = "the mask is true everywhere"
"""Why a case does not show that the mask is read."""

ALL_FALSE_REASON = "the mask is false everywhere"
"""The same for a mask that selects nothing."""


LARGE_AXES: Sequence[tuple[str, Shape, int, int, Mapping[str, Any]]] = (
    ("long-rows", (7, 32_003), 1, 10_007, {"large": True}),
    ("many-rows", (70_001, 3), 0, 65_537, {"large": True}),
    ("half", (67, 1031), 1, 1031, {"large": True, "dtypes": (Dtype.float16,)}),
)
"""Label, shape, axis, number of positions along the axis, and further fields of templates."""

LARGE_HALF: Mapping[str, Any] = {"dtypes": (Dtype.float16,), "large": True}
"""The fields of large templates in float16."""

FAR_APART: Mapping[str, Any] = {"layout": strides(4099, 3), **LARGE_HALF}
"""The fields of large templates in float16 with gaps between all elements."""


def replace_length(shape: Shape, axis: int, length: int) -> Shape:
    """Return the shape with another length of an axis."""
    return tuple(length if number == axis else size for number, size in enumerate(shape))


def sized_templates(
    table: Mapping[str, Sizes], long: DtypeSelection = DtypeSelection.leading
) -> list[CaseTemplate[Sizes]]:
    """Return a template per row of a table of sizes by label; `long` are the element types of the row of this label."""
    return [
        CaseTemplate(label, sizes, dtypes=long if label == "long" else DtypeSelection.leading)
        for label, sizes in table.items()
    ]


def sum_templates(
    gradient: str, exact: Sizes, long: Sizes, dtypes: Sequence[Dtype] = half
) -> list[CaseTemplate[Sizes]]:
    """Return templates that add up many elements of the gradient: an exact sum, and one that stagnates in `dtypes`."""
    return [
        CaseTemplate("exact", exact, {}, domains={gradient: SUMMANDS}, dtypes=INEXACT, exact=True),
        CaseTemplate("long-sum", long, {}, domains={gradient: POSITIVE}, dtypes=dtypes),
    ]


def add_untested_axes(
    templates: Sequence[CaseTemplate[AxisSizes]], sizes: Callable[[Shape, int], AxisSizes]
) -> list[CaseTemplate[AxisSizes]]:
    """Return the templates, and templates along the axes that none of them covers."""
    tried = {(len(template.sizes.shape), template.sizes.axis) for template in templates}
    return [*templates, *(CaseTemplate(label, sizes(shape, axis)) for label, shape, axis in untested_axes(tried))]


def mask_values(mask: TensorSpec) -> Any:
    """Return the elements of a mask of fixed values as bool."""
    assert callable(mask.compute)
    return np.asarray(mask.compute({})) != 0
