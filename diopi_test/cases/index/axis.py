"""Cases of functions that read or write slices along an axis, and of their gradients.

An index tensor, a number or a range selects the slices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, cases_for
from diopi_test.cases.domains import Domain, any_value, choice, integer_values, normal, uniform
from diopi_test.cases.facts import CaseFacts
from diopi_test.cases.index.positions import (
    DIFFERENT_LAYOUTS,
    EQUAL_LAYOUTS,
    LARGE_AXES,
    LARGE_FLOAT16_FIELDS,
    REPEATED_INDEX,
    SINGLE_POSITION_REASON,
    IndexedAxis,
    Shape,
    add_untested_axes,
    sized_templates,
    sum_templates,
)
from diopi_test.cases.index.values import conversion_templates, derive_with_value
from diopi_test.cases.layouts import expanded, strided, strides, transposed
from diopi_test.cases.template import (
    SMOKE_IN_ALL_DTYPES,
    CaseTemplate,
    Derive,
    DtypeSelection,
    expand,
    register,
    tensor,
)
from diopi_test.cases.tensors import literal, positions

# Slices that an index tensor selects

SLICES: Mapping[str, IndexedAxis] = {
    "rows": IndexedAxis((5, 3), 0, positions(4, end=5)),
    "first-of-4": IndexedAxis((7, 2, 3, 2), -4, positions(4, end=7)),
    "cube": IndexedAxis((4, 4, 4), 1, positions(4, end=4)),
    "cube-first": IndexedAxis((4, 4, 4), 0, positions(4, end=4)),
    "third-of-5": IndexedAxis((2, 1, 5, 2, 3), 2, positions(3, end=5)),
    "last-of-3": IndexedAxis((2, 3, 4), 2, positions(7, end=4, layout=strided)),
    "reversed": IndexedAxis((6, 2), 0, literal(range(5, -1, -1))),
    "all-the-same": IndexedAxis((4, 3), 1, literal([2, 2, 2])),
    "number": IndexedAxis((4, 3), 0, literal(2)),
    "number-of-columns": IndexedAxis((4, 3), -1, literal(1, Dtype.int32)),
    "of-number": IndexedAxis((), 0, literal([0])),
    "number-of-number": IndexedAxis((), -1, literal(0)),
    "no-indices": IndexedAxis((4, 3), 1, positions(0, end=3)),
    "no-rows": IndexedAxis((0, 3), 1, positions(2, end=3)),
    "vector": IndexedAxis((6,), 0, positions(4, end=6)),
    "length-one": IndexedAxis((3, 1, 2), 1, positions(3, end=1)),
    "wide": IndexedAxis((3, 1030), 0, positions(4, end=3)),
    "long": IndexedAxis((1031,), -1, positions(515, end=1031)),
}
"""Sizes of templates that select slices with an index tensor, by label."""

COLUMNS = CaseTemplate("columns", IndexedAxis((4, 6), 1, positions(5, end=6)), **SMOKE_IN_ALL_DTYPES)
"""A template that selects columns of a matrix, with smoke cases in every element type."""

INNER_AXIS = CaseTemplate(
    "inner",
    IndexedAxis((3, 4, 5), -2, positions(6, end=4, dtype=Dtype.int32)),
    layout=strided,
    dtypes=DtypeSelection.all,
)
"""A template of slices along an inner axis, with a strided input and an int32 index."""

INDEX_SELECT = (
    COLUMNS,
    INNER_AXIS.replace(result_layout=transposed),
    *CaseTemplate.cycle_layouts(
        sized_templates(SLICES, DtypeSelection.one_per_size), *DIFFERENT_LAYOUTS, (transposed, strided)
    ),
    CaseTemplate("expanded", IndexedAxis((4, 3), 1, positions(5, end=3)), layout=expanded),
)
"""The small templates of `diopiIndexSelect`."""

INDEX_SELECT_BACKWARD = (
    COLUMNS,
    INNER_AXIS.replace(result_layout=strided),
    *CaseTemplate.cycle_layouts(sized_templates(SLICES), *EQUAL_LAYOUTS),
    *sum_templates("grad", IndexedAxis((4, 6, 5), 1, positions(67, end=6)), IndexedAxis((2, 3), 1, REPEATED_INDEX)),
)
"""The small templates of `diopiIndexSelectBackward`, which adds up the gradients of slices selected repeatedly."""

INDEX_FILL = (
    CaseTemplate("columns", IndexedAxis((4, 6), 1, literal([1, -1, 1])), **SMOKE_IN_ALL_DTYPES),
    replace(INNER_AXIS, sizes=IndexedAxis((3, 4, 5), -2, literal([0, -2], Dtype.int32)), result_layout=transposed),
    *CaseTemplate.cycle_layouts(
        [t for t in sized_templates(SLICES) if t.label not in ("long", "reversed")], *DIFFERENT_LAYOUTS
    ),
    CaseTemplate("negative", IndexedAxis((5, 2), 0, literal([-5, -2]))),
    CaseTemplate(
        "long",
        IndexedAxis((1031,), 0, positions(300, end=1031, low=-1031)),
        dtypes=DtypeSelection.one_per_size,
    ),
)
"""The small templates of `diopiIndexFill`; some indices are negative."""


LARGE_SELECTIONS = [
    CaseTemplate(label, IndexedAxis(shape, axis, positions(number, end=shape[axis])), **fields)
    for label, shape, axis, number, fields in LARGE_AXES
]
"""The large templates of `diopiIndexSelect` and its gradient."""

HUGE_SELECTION = CaseTemplate(
    "huge", IndexedAxis((70_001, 3), 0, positions(257, end=70_001)), layout=strides(7_703, 1), large=True
)
"""A template that selects rows of a tensor whose rows are so far apart that they span more than 2^31 bytes."""

LARGE_FILLS = [
    CaseTemplate(label, IndexedAxis(shape, axis, positions(number // 3, end=shape[axis], distinct_along=0)), **fields)
    for label, shape, axis, number, fields in LARGE_AXES
]
"""The large templates of `diopiIndexFill`, which fill a third as many slices."""


def index_arguments(template: CaseTemplate[IndexedAxis], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiIndexSelect`, its gradient and `diopiIndexFill` for the sizes of a template.

    The argument `value` of `diopiIndexFill` is missing.
    """
    shape, dim, index = template.sizes.shape, template.sizes.axis, template.sizes.index
    slices_shape = np.array(shape, int)
    slices_shape[[dim] if shape else []] = np.prod(index.shape)
    return {
        "grad": tensor(*slices_shape.tolist(), layout=template.layout),
        "input_sizes": shape,
        "input": tensor(*shape, domain=any_value, layout=template.layout),
        "dim": dim,
        "index": index,
    }


def select_three_positions(shape: Shape, axis: int) -> IndexedAxis:
    """Return the sizes of a template that selects three random positions along the axis `axis`."""
    return IndexedAxis(shape, axis, positions(3, end=shape[axis]))


SINGLE_POSITION_REASONS = {"of-number|length-one": SINGLE_POSITION_REASON}
"""The reason why an implementation that ignores the index passes some cases, by a regular expression for labels."""

register(
    "diopiIndexSelect",
    templates=(*add_untested_axes(INDEX_SELECT, select_three_positions), *LARGE_SELECTIONS, HUGE_SELECTION),
    derive=index_arguments,
    non_discriminating=SINGLE_POSITION_REASONS,
)
register(
    "diopiIndexSelectBackward",
    templates=(*add_untested_axes(INDEX_SELECT_BACKWARD, select_three_positions), *LARGE_SELECTIONS),
    derive=index_arguments,
    non_discriminating=SINGLE_POSITION_REASONS,
)


@cases_for("diopiIndexFill", non_discriminating={"of-number|length-one": "the only position is filled"})
def index_fill_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of filling slices with a value, including values that the function must convert."""
    templates = [*INDEX_FILL, *conversion_templates(prototype, IndexedAxis((4, 5), 1, literal([0, 3])))]
    all_templates = add_untested_axes(templates, lambda shape, axis: IndexedAxis(shape, axis, literal([-1])))
    return expand(prototype, [*all_templates, *LARGE_FILLS], derive_with_value(prototype, index_arguments))


# Slices that a number or a range selects


@dataclass(frozen=True)
class AxisPart:
    """The sizes of a template of a call that reads or writes one slice or a range of slices along an axis.

    Attributes:
        shape: The shape of the tensor.
        axis: The axis; −1 is the last one.
        numbers: The position of one slice; or the start, the end and the step of a range.
    """

    shape: Shape
    axis: int
    numbers: tuple[int, ...]

    @property
    def selected_shape(self) -> Shape:
        """Return the shape of the selected part; one slice lacks the axis."""
        axis = self.axis % len(self.shape)
        length = () if len(self.numbers) == 1 else (len(range(self.shape[axis])[slice(*self.numbers)]),)
        return (*self.shape[:axis], *length, *self.shape[axis + 1 :])


SINGLE_SLICES: Mapping[str, AxisPart] = {
    "first": AxisPart((4, 3), 0, (0,)),
    "last": AxisPart((4, 3), 0, (3,)),
    "minus-one": AxisPart((3, 5), 1, (-1,)),
    "minus-all": AxisPart((3, 5), 1, (-5,)),
    "middle": AxisPart((2, 4, 3), 1, (2,)),
    "first-of-4": AxisPart((3, 2, 4, 2), -4, (-2,)),
    "last-of-5": AxisPart((2, 1, 3, 2, 4), -1, (1,)),
    "cube": AxisPart((4, 4, 4), 1, (2,)),
    "cube-first": AxisPart((4, 4, 4), 0, (2,)),
    "of-vector": AxisPart((6,), 0, (4,)),
    "length-one": AxisPart((3, 1, 2), 1, (0,)),
    "no-elements": AxisPart((0, 3), 1, (2,)),
    "long": AxisPart((2, 1031), 0, (1,)),
}
"""Sizes of templates that select one slice, by label."""

RANGES: Mapping[str, AxisPart] = {
    "rows": AxisPart((5, 3), 0, (1, 4, 1)),
    "every-second": AxisPart((7, 2), 0, (0, 7, 2)),
    "every-third": AxisPart((3, 8), 1, (1, 8, 3)),
    "from-the-end": AxisPart((3, 6), 1, (-4, -1, 1)),
    "from-the-end-every-second": AxisPart((8, 2), -2, (-7, -1, 2)),
    "clamped": AxisPart((4, 3), 0, (-100, 100, 1)),
    "end-beyond": AxisPart((4, 3), 1, (1, 2**63 - 1, 1)),
    "start-beyond": AxisPart((4, 3), 1, (5, 9, 1)),
    "end-before-start": AxisPart((4, 3), 0, (3, 1, 1)),
    "wide-step": AxisPart((4, 3), 0, (1, 4, 9)),
    "one": AxisPart((4, 3), 0, (2, 3, 1)),
    "first-of-4": AxisPart((5, 2, 3, 2), -4, (1, 5, 2)),
    "third-of-5": AxisPart((2, 1, 7, 2, 3), 2, (1, 6, 2)),
    "vector": AxisPart((9,), 0, (2, 8, 2)),
    "no-elements": AxisPart((0, 3), 1, (0, 2, 1)),
    "of-nothing": AxisPart((3, 0), 1, (0, 5, 1)),
    "long": AxisPart((1031,), 0, (3, 1030, 2)),
}
"""Sizes of templates that select a range of slices, by label."""

SOURCES: Mapping[str, tuple[Dtype, Domain, tuple[Dtype, ...]]] = {
    "from-float64": (Dtype.float64, normal(), (Dtype.float32, Dtype.float16)),
    "from-float32": (Dtype.float32, uniform(-9, 9), (Dtype.int32, Dtype.int8)),
    "from-int64": (Dtype.int64, integer_values(-99, 99), (Dtype.float32, Dtype.complex64)),
    "from-float-to-bool": (Dtype.float32, choice([0.0, 0.25, -3.0]), (Dtype.bool,)),
}
"""Sources that a function must convert to the element type of the tensor to which it writes, by label.

Each entry consists of the element type of the source, the domain of its elements, and the types of the tensor.
"""


def part_templates(
    columns: AxisPart,
    inner: AxisPart,
    table: Mapping[str, AxisPart],
    long: DtypeSelection = DtypeSelection.leading,
) -> list[CaseTemplate[AxisPart]]:
    """Return the templates of a function that reads or writes a part of an axis.

    Args:
        columns: The sizes of the template of smoke cases in every element type.
        inner: The sizes of a template in every element type with other layouts.
        table: The sizes of templates in the leading element type, by label.
        long: The element types of the template "long" in `table`.

    Returns:
        The templates.
    """
    return [
        CaseTemplate("columns", columns, **SMOKE_IN_ALL_DTYPES),
        CaseTemplate("inner", inner, layout=transposed, result_layout=strided, dtypes=DtypeSelection.all),
        *CaseTemplate.cycle_layouts(sized_templates(table, long), *DIFFERENT_LAYOUTS),
    ]


def converted_templates(sizes: AxisPart) -> Iterator[CaseTemplate[AxisPart]]:
    """Yield one template per entry of `SOURCES`, which writes a source of another element type to the part `sizes`."""
    for label, (source, domain, dtypes) in SOURCES.items():
        yield CaseTemplate(
            label, sizes, {"src": tensor(*sizes.selected_shape, domain=domain, dtype=source)}, dtypes=dtypes
        )


def derive_with_numbers(*names: str) -> Derive[AxisPart]:
    """Return a function that derives the arguments of a call from a template with `AxisPart` as sizes.

    Args:
        *names: The names of the parameters of the function that receive the axis and the numbers, in this order.

    Returns:
        The function, for `expand`.
    """

    def arguments(template: CaseTemplate[AxisPart], dtype: Dtype) -> Mapping[str, Any]:
        sizes = template.sizes
        slices_tensor = tensor(*sizes.selected_shape, domain=any_value, layout=template.layout)
        return {
            "grad_output": slices_tensor,
            "src": slices_tensor,
            "input_sizes": sizes.shape,
            "input": tensor(*sizes.shape, domain=any_value, layout=template.layout),
            **dict(zip(names, (sizes.axis, *sizes.numbers), strict=True)),
        }

    return arguments


COLUMN, INNER_COLUMN = AxisPart((9, 3), 1, (1,)), AxisPart((3, 4, 5), -2, (-3,))
"""Sizes of templates that select a column of a matrix, and a slice along an inner axis."""

SELECT_GRADIENTS = part_templates(COLUMN, INNER_COLUMN, SINGLE_SLICES)
"""The small templates of the gradient of `diopiSelect` and of `diopiSelectScatter`."""

WHOLE_SLICE_REASONS = {"length-one": "the slice is the whole axis"}
"""The reason why an implementation that ignores the position passes a case, by label."""

slice_arguments = derive_with_numbers("dim", "index")
"""Derive the arguments of functions that select a slice by its position, from a template."""


def with_next_to_last_slices(templates: Sequence[CaseTemplate[AxisPart]]) -> list[CaseTemplate[AxisPart]]:
    """Return the templates together with new ones that select the next-to-last slice along the axes not yet tested."""
    return add_untested_axes(templates, lambda shape, axis: AxisPart(shape, axis, (-2,)))


SELECT_TEMPLATES = with_next_to_last_slices(
    part_templates(COLUMN, INNER_COLUMN, SINGLE_SLICES, DtypeSelection.one_per_size)
)
"""The small templates of `diopiSelect`."""

LARGE_COLUMN = CaseTemplate("rows", AxisPart((70_001, 3), 1, (1,)), large=True)
"""A template that selects a column of a large matrix."""

FLOAT16_SLICE = CaseTemplate("half", AxisPart((263, 17, 67), 1, (13,)), **LARGE_FLOAT16_FIELDS)
"""A template that selects a slice of a large tensor in float16."""

FAR_APART_FLOAT16_SLICE = CaseTemplate(
    "half-far-apart", AxisPart((263, 17, 257), 1, (13,)), layout=strides(70_003, 4099, 3), **LARGE_FLOAT16_FIELDS
)
"""A template that selects a slice of a large tensor in float16 with gaps between all elements."""

register("diopiSelect", templates=(*SELECT_TEMPLATES, LARGE_COLUMN, FAR_APART_FLOAT16_SLICE), derive=slice_arguments)
register(
    "diopiSelectBackward",
    templates=(*with_next_to_last_slices(SELECT_GRADIENTS), LARGE_COLUMN, FLOAT16_SLICE),
    derive=slice_arguments,
    non_discriminating=WHOLE_SLICE_REASONS,
)
register(
    "diopiSelectScatter",
    templates=(
        *with_next_to_last_slices([*SELECT_GRADIENTS, *converted_templates(COLUMN)]),
        LARGE_COLUMN,
        FLOAT16_SLICE.replace(arguments={"src": tensor(263, 67, domain=any_value, layout=strides(4099, 3))}),
    ),
    derive=slice_arguments,
    non_discriminating=WHOLE_SLICE_REASONS,
)

SOME_COLUMNS, INNER_RANGE = AxisPart((4, 7), 1, (1, 6, 2)), AxisPart((3, 6, 2), -2, (-5, 5, 2))
"""Sizes of templates that select every second column from 1 to 5, and a range along an inner axis."""

SLICE_GRADIENTS = part_templates(SOME_COLUMNS, INNER_RANGE, RANGES)
"""The small templates of the gradient of `diopiSlice` and of `diopiSliceScatter`."""

WHOLE_AXIS_REASONS = {"clamped": "the range is the whole axis"}
"""The reason why an implementation that ignores the range passes a case, by label."""

range_arguments = derive_with_numbers("dim", "start", "end", "step")
"""Derive the arguments of functions that select a range of slices, from a template."""


def with_ranges_from_one(templates: Sequence[CaseTemplate[AxisPart]]) -> list[CaseTemplate[AxisPart]]:
    """Return the templates together with new ones that select all slices except the first along axes not yet tested."""
    return add_untested_axes(templates, lambda shape, axis: AxisPart(shape, axis, (1, shape[axis], 1)))


SLICE_TEMPLATES = with_ranges_from_one(part_templates(SOME_COLUMNS, INNER_RANGE, RANGES, DtypeSelection.one_per_size))
"""The small templates of `diopiSlice`."""

LARGE_SLICES = (
    CaseTemplate("long-rows", AxisPart((7, 32_003), 1, (3, 32_001, 2)), large=True),
    CaseTemplate("many-rows", AxisPart((70_001, 3), 0, (1, 70_000, 1)), large=True),
    CaseTemplate("half", AxisPart((67, 1031), 1, (5, 1031, 3)), **LARGE_FLOAT16_FIELDS),
)
"""The large templates of functions that select a range of slices."""

register("diopiSlice", templates=(*SLICE_TEMPLATES, *LARGE_SLICES), derive=range_arguments)
register(
    "diopiSliceBackward",
    templates=(*with_ranges_from_one(SLICE_GRADIENTS), *LARGE_SLICES),
    derive=range_arguments,
    non_discriminating=WHOLE_AXIS_REASONS,
)
register(
    "diopiSliceScatter",
    templates=(*with_ranges_from_one([*SLICE_GRADIENTS, *converted_templates(SOME_COLUMNS)]), *LARGE_SLICES),
    derive=range_arguments,
    non_discriminating=WHOLE_AXIS_REASONS,
)

CaseFacts(attribute_changes={"float32-columns": [{"input_sizes": (4, 8)}]}).declare("diopiIndexSelectBackward")
CaseFacts(attribute_changes={"float32-columns": [{"step": 1}, {"end": 4}]}).declare("diopiSlice")
