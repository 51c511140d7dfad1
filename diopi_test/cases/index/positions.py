"""Shared parts of the cases of index functions: sizes of templates, layouts, and templates of sums of gradients."""

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
    """An object that has the shape of a tensor and an axis: the sizes of a template of a call along one axis."""

    @property
    def shape(self) -> Shape:
        """Return the shape of the tensor."""

    @property
    def axis(self) -> int:
        """Return the axis."""


Sizes = TypeVar("Sizes")
"""The type of the sizes of a template."""

AxisSizes = TypeVar("AxisSizes", bound=AlongAxis)
"""The type of the sizes of a template of calls along an axis."""


@dataclass(frozen=True)
class IndexedAxis:
    """The sizes of a template of a call that reads or writes a tensor at positions along an axis.

    Attributes:
        shape: The shape of the tensor that the function reads or writes.
        axis: The axis.
        index: The tensor of positions.
    """

    shape: Shape
    axis: int
    index: TensorSpec


@dataclass(frozen=True)
class IndexedTable:
    """The sizes of a template of a call that reads or writes rows of a table.

    Attributes:
        shape: The shape of the table, often (rows, columns).
        indices: The tensor of positions of rows.
    """

    shape: Shape
    indices: TensorSpec


ONE_DTYPE_PER_KIND = (Dtype.float32, Dtype.bfloat16, Dtype.int64, Dtype.complex64)
"""A single-precision, a half-precision, an integer and a complex type."""

INEXACT = (*floating, *complexes)
"""The element types whose sums are rounded."""

EQUAL_LAYOUTS = [(layout, layout) for layout in (contiguous, transposed, strided)]
"""Pairs of equal layouts of arguments and result, for `CaseTemplate.cycle_layouts`."""

DIFFERENT_LAYOUTS = [(contiguous, transposed), (strided, contiguous)]
"""Pairs of different layouts of arguments and result."""

SUMMANDS = integer_values(-3, 3)
"""Integers from −3 to 3. Every floating type represents sums of a few dozen of them exactly, in any order."""

POSITIVE = uniform(0.7, 0.74)
"""Numbers whose running sum stagnates in half precision, when a number is less than half a unit of the sum."""

REPEATED_INDEX = literal(np.resize([1, 1, 1, 0], 1100))
"""An index of 1100 elements: the position 1 occurs 825 times, and the position 0 occurs 275 times."""

LONG_REPEATED_INDEX = literal(np.resize([1, 1, 1, 0], 8000))
"""An index of 8000 elements: the position 1 occurs 6000 times, and the position 0 occurs 2000 times."""

NEIGHBORS = choice([2**62 + i for i in range(-20, 20)])
"""Different numbers of int64 that are equal as float64."""

SINGLE_POSITION_REASON = "there is but one place"
"""The `non_discriminating` reason of cases with a single position, which cannot be wrong."""

ALL_TRUE_REASON = "the mask is true everywhere"
"""The `non_discriminating` reason of cases that pass even if the function ignores the mask and selects everything."""

ALL_FALSE_REASON = "the mask is false everywhere"
"""The `non_discriminating` reason of cases that pass even if the function ignores the mask and selects nothing."""


LARGE_AXES: Sequence[tuple[str, Shape, int, int, Mapping[str, Any]]] = (
    ("long-rows", (7, 32_003), 1, 10_007, {"large": True}),
    ("many-rows", (70_001, 3), 0, 65_537, {"large": True}),
    ("half", (67, 1031), 1, 1031, {"large": True, "dtypes": (Dtype.float16,)}),
)
"""For each large template: its label, the shape, the axis, the number of positions along the axis, and other fields."""

LARGE_HALF: Mapping[str, Any] = {"dtypes": (Dtype.float16,), "large": True}
"""The fields of large templates in float16."""

FAR_APART: Mapping[str, Any] = {"layout": strides(4099, 3), **LARGE_HALF}
"""The fields of large templates in float16 with gaps between all elements."""


def replace_length(shape: Shape, axis: int, length: int) -> Shape:
    """Return the shape with `length` as the length of `axis`, which must not be negative."""
    return tuple(length if number == axis else size for number, size in enumerate(shape))


def sized_templates(
    table: Mapping[str, Sizes], long: DtypeSelection = DtypeSelection.leading
) -> list[CaseTemplate[Sizes]]:
    """Return a template per entry of a table of sizes by label.

    Args:
        table: The sizes by label.
        long: The element types of the template with the label "long". All others have the leading type.

    Returns:
        The templates.
    """
    return [
        CaseTemplate(label, sizes, dtypes=long if label == "long" else DtypeSelection.leading)
        for label, sizes in table.items()
    ]


def sum_templates(
    gradient: str, exact: Sizes, long: Sizes, dtypes: Sequence[Dtype] = half
) -> list[CaseTemplate[Sizes]]:
    """Return two templates of gradient functions that add up many elements.

    Args:
        gradient: The name of the argument whose elements are added up.
        exact: The sizes of a template whose sums are exact.
        long: The sizes of a template with long sums, which stagnate if they are accumulated in half precision.
        dtypes: The element types of the template with long sums.

    Returns:
        The templates.
    """
    return [
        CaseTemplate("exact", exact, {}, domains={gradient: SUMMANDS}, dtypes=INEXACT, exact=True),
        CaseTemplate("long-sum", long, {}, domains={gradient: POSITIVE}, dtypes=dtypes),
    ]


def add_untested_axes(
    templates: Sequence[CaseTemplate[AxisSizes]], sizes: Callable[[Shape, int], AxisSizes]
) -> list[CaseTemplate[AxisSizes]]:
    """Return the templates, and a template for each axis of ranks 1 to 4, counted from either end, that none uses.

    Args:
        templates: The templates.
        sizes: Returns the sizes of a new template for a shape and an axis.

    Returns:
        The templates and the new templates.
    """
    tried = {(len(template.sizes.shape), template.sizes.axis) for template in templates}
    return [*templates, *(CaseTemplate(label, sizes(shape, axis)) for label, shape, axis in untested_axes(tried))]


def mask_values(mask: TensorSpec) -> Any:
    """Return the elements of a mask of fixed values as bool."""
    assert callable(mask.compute)
    return np.asarray(mask.compute({})) != 0
