"""Shared parts of the cases of index functions: sizes of templates, layouts, and templates of sums of gradients.

A template describes cases that differ only in their element type. The family derives the arguments of a call from the
`sizes` of its template, which are objects of the classes in this package. A case is non-discriminating if an
implementation with a coarse error passes it.
"""

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


class HasAxis(Protocol):
    """The interface of sizes that contain the shape of a tensor and an axis, such as `IndexedAxis`."""

    @property
    def shape(self) -> Shape:
        """Return the shape of the tensor."""

    @property
    def axis(self) -> int:
        """Return the axis along which the function works; it may be negative."""


Sizes = TypeVar("Sizes")
"""A type of the sizes of a template."""

AxisSizes = TypeVar("AxisSizes", bound=HasAxis)
"""A type of the sizes of a template that contain a shape and an axis."""


@dataclass(frozen=True)
class IndexedAxis:
    """The sizes of a template of a call that reads or writes a tensor at positions along an axis.

    Attributes:
        shape: The shape of the tensor that the function reads or writes.
        axis: The axis; −1 is the last one.
        index: The integer tensor of positions along the axis.
    """

    shape: Shape
    axis: int
    index: TensorSpec


@dataclass(frozen=True)
class IndexedTable:
    """The sizes of a template of a call that reads or writes rows of a table.

    Attributes:
        shape: The shape of the table, often (rows, columns).
        indices: The integer tensor of the numbers of rows.
    """

    shape: Shape
    indices: TensorSpec


ONE_DTYPE_PER_KIND = (Dtype.float32, Dtype.bfloat16, Dtype.int64, Dtype.complex64)
"""One element type of each kind: single precision, half precision, integer and complex."""

ROUNDED_DTYPES = (*floating, *complexes)
"""The floating-point and complex element types, in which sums have rounding errors."""

EQUAL_LAYOUTS = [(layout, layout) for layout in (contiguous, transposed, strided)]
"""Pairs of equal layouts of arguments and result, for `CaseTemplate.cycle_layouts`."""

DIFFERENT_LAYOUTS = [(contiguous, transposed), (strided, contiguous)]
"""Pairs of different layouts of arguments and result, for `CaseTemplate.cycle_layouts`."""

EXACT_SUMMANDS = integer_values(-3, 3)
"""A domain of integers from −3 to 3. Every floating-point type represents the sums of a few dozen of them exactly."""

POSITIVE_SUMMANDS = uniform(0.7, 0.74)
"""A domain of positive numbers that shows whether long sums are accumulated in half precision.

Such a sum stops growing as soon as a number is less than half a unit in the last place of the sum.
"""

REPEATED_INDEX = literal(np.resize([1, 1, 1, 0], 1100))
"""An index of 1100 elements: the position 1 occurs 825 times, and the position 0 occurs 275 times."""

LONG_REPEATED_INDEX = literal(np.resize([1, 1, 1, 0], 8000))
"""An index of 8000 elements: the position 1 occurs 6000 times, and the position 0 occurs 2000 times."""

NEIGHBORING_INTEGERS = choice([2**62 + i for i in range(-20, 20)])
"""A domain of int64 numbers near 2^62, which become equal if a kernel converts them to float64."""

SINGLE_POSITION_REASON = "the axis has size 1, so every valid index selects the same element"
"""The reason why an implementation that ignores the index passes cases in which only one position is valid."""

ALL_TRUE_REASON = "all elements of the mask are true"
"""The reason why a function that ignores the mask and selects everything passes cases with this mask."""

ALL_FALSE_REASON = "all elements of the mask are false"
"""The reason why a function that ignores the mask and selects nothing passes cases with this mask."""


LARGE_AXES: Sequence[tuple[str, Shape, int, int, Mapping[str, Any]]] = (
    ("long-rows", (7, 32_003), 1, 10_007, {"large": True}),
    ("many-rows", (70_001, 3), 0, 65_537, {"large": True}),
    ("half", (67, 1031), 1, 1031, {"large": True, "dtypes": (Dtype.float16,)}),
)
"""Large templates: the label, the shape, the axis, the number of positions along the axis, and other fields."""

LARGE_FLOAT16_FIELDS: Mapping[str, Any] = {"dtypes": (Dtype.float16,), "large": True}
"""The fields of large templates in float16."""

FAR_APART_FIELDS: Mapping[str, Any] = {"layout": strides(4099, 3), **LARGE_FLOAT16_FIELDS}
"""The fields of large templates in float16 whose tensors, matrices, have gaps between all elements."""


def replace_length(shape: Shape, axis: int, length: int) -> Shape:
    """Return `shape` with the length of the axis `axis` replaced by `length`; `axis` must not be negative."""
    return tuple(length if number == axis else size for number, size in enumerate(shape))


def sized_templates(
    table: Mapping[str, Sizes], long: DtypeSelection = DtypeSelection.leading
) -> list[CaseTemplate[Sizes]]:
    """Return one template per entry of a table.

    Args:
        table: The sizes of the templates by label.
        long: The element types of the template with the label "long". All others have only the leading type, usually
            float32.

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
        exact: The sizes of a template with sums of at most a few dozen small integers, which are exact.
        long: The sizes of a template with sums of many positive numbers, which stop growing if they are accumulated in
            half precision.
        dtypes: The element types of the template with long sums.

    Returns:
        The templates.
    """
    return [
        CaseTemplate("exact", exact, {}, domains={gradient: EXACT_SUMMANDS}, dtypes=ROUNDED_DTYPES, exact=True),
        CaseTemplate("long-sum", long, {}, domains={gradient: POSITIVE_SUMMANDS}, dtypes=dtypes),
    ]


def add_untested_axes(
    templates: Sequence[CaseTemplate[AxisSizes]], sizes: Callable[[Shape, int], AxisSizes]
) -> list[CaseTemplate[AxisSizes]]:
    """Return the templates together with new ones for the axes that they do not test, for tensors of ranks 1 to 4.

    Args:
        templates: The templates that already exist.
        sizes: Returns the sizes of a new template for a shape and an axis.

    Returns:
        The templates, followed by one new template per combination of a rank and an axis from −rank to rank − 1 that no
        template has.
    """
    tested = {(len(template.sizes.shape), template.sizes.axis) for template in templates}
    return [*templates, *(CaseTemplate(label, sizes(shape, axis)) for label, shape, axis in untested_axes(tested))]


def mask_values(mask: TensorSpec) -> Any:
    """Return the elements of a mask as an array of bool; the mask must have fixed values (`TensorSpec.compute`)."""
    assert callable(mask.compute)
    return np.asarray(mask.compute({})) != 0
