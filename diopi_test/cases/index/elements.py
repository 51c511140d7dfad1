"""Cases of gather, its gradient and scatter.

These functions have an index tensor that contains a position along an axis for each element. Gather reads the element
at the position, and scatter writes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

from diopi_proto.dtypes import category, floating, half, integer
from diopi_proto.types import Dtype
from diopi_test.cases.case import TensorSpec
from diopi_test.cases.domains import Domain, any_value, choice, full_range, normal
from diopi_test.cases.exact_integers import integers_without_overflow
from diopi_test.cases.facts import CaseFacts
from diopi_test.cases.index.positions import (
    DIFFERENT_LAYOUTS,
    EXACT_SUMMANDS,
    LARGE_AXES,
    NEIGHBORING_INTEGERS,
    ONE_DTYPE_PER_KIND,
    POSITIVE_SUMMANDS,
    REPEATED_INDEX,
    ROUNDED_DTYPES,
    SINGLE_POSITION_REASON,
    IndexedAxis,
    Shape,
    add_untested_axes,
    replace_length,
    sized_templates,
    sum_templates,
)
from diopi_test.cases.index.values import CONVERSIONS
from diopi_test.cases.layouts import strided, transposed
from diopi_test.cases.template import (
    SMOKE_IN_ALL_DTYPES,
    CaseTemplate,
    DtypeSelection,
    TemplateFields,
    register,
    tensor,
)
from diopi_test.cases.tensors import literal, positions

I32 = Dtype.int32
"""The element type of some indices."""

GATHERS: Mapping[str, IndexedAxis] = {
    "rows": IndexedAxis((4, 3), 0, positions(4, 3, end=4)),
    "longer": IndexedAxis((3, 4), 1, positions(3, 9, end=4)),
    "shorter": IndexedAxis((3, 4), 1, positions(3, 2, end=4)),
    "smaller": IndexedAxis((4, 5, 3), 1, positions(2, 3, 2, end=5)),
    "first-axis": IndexedAxis((4, 3, 2), 0, positions(6, 2, 1, end=4, layout=transposed)),
    "last-of-4": IndexedAxis((2, 3, 2, 5), -1, positions(2, 2, 2, 3, end=5)),
    "first-of-4": IndexedAxis((5, 2, 3, 2), -4, positions(4, 2, 3, 2, end=5, layout=strided)),
    "rank-5": IndexedAxis((2, 1, 3, 2, 3), 2, positions(2, 1, 5, 2, 3, end=3)),
    "cube": IndexedAxis((4, 4, 4), 1, positions(4, 4, 4, end=4)),
    "cube-first": IndexedAxis((4, 4, 4), -3, positions(4, 4, 4, end=4)),
    "vector": IndexedAxis((6,), 0, positions(9, end=6)),
    "of-number": IndexedAxis((), 0, literal([0])),
    "number-of-number": IndexedAxis((), -1, literal(0)),
    "number-in-vector": IndexedAxis((1,), 0, literal(0)),
    "no-indices": IndexedAxis((4, 3), 1, positions(4, 0, end=3)),
    "no-indices-of-other-rank": IndexedAxis((4, 3), 1, positions(0, end=3)),
    "no-elements": IndexedAxis((0, 3), 1, positions(0, 2, end=3)),
    "int32": IndexedAxis((3, 4), -2, positions(5, 4, end=3, dtype=I32)),
    "wide": IndexedAxis((3, 1030), 0, positions(4, 1027, end=3)),
    "long": IndexedAxis((8, 130), 1, positions(8, 130, end=130)),
}
"""Sizes of templates of gather and its gradient, by label."""

SHARED_TEMPLATES = (
    CaseTemplate("columns", IndexedAxis((4, 6), 1, positions(4, 5, end=6)), **SMOKE_IN_ALL_DTYPES),
    CaseTemplate(
        "inner",
        IndexedAxis((3, 4, 5), -2, positions(3, 6, 4, end=4, dtype=I32, layout=transposed)),
        layout=transposed,
        result_layout=strided,
        dtypes=DtypeSelection.all,
    ),
)
"""Templates that gather and its gradient share."""

GATHER = (
    *SHARED_TEMPLATES,
    *CaseTemplate.cycle_layouts(sized_templates(GATHERS, DtypeSelection.one_per_size), *DIFFERENT_LAYOUTS),
)
"""The small templates of `diopiGather`."""

CROWDED_COLUMNS = IndexedAxis((3, 2), 1, positions(3, 70, end=2))
"""Sizes with an index that contains 70 positions per row, but only two different ones."""

GATHER_BACKWARD = (
    *SHARED_TEMPLATES,
    *CaseTemplate.cycle_layouts(sized_templates(GATHERS), *DIFFERENT_LAYOUTS),
    *sum_templates(
        "grad_output", IndexedAxis((3, 6), 1, positions(3, 67, end=6)), IndexedAxis((3,), 0, REPEATED_INDEX)
    ),
    CaseTemplate("often", CROWDED_COLUMNS, dtypes=floating),
    CaseTemplate("wrap", CROWDED_COLUMNS, {}, domains={"grad_output": full_range}, dtypes=integer),
    CaseTemplate(
        "neighbors", CROWDED_COLUMNS, {}, domains={"grad_output": NEIGHBORING_INTEGERS}, dtypes=(Dtype.int64,)
    ),
)
"""The small templates of `diopiGatherBackward`, which adds up the gradients of all reads of one element."""


LARGE_GATHERS = [
    CaseTemplate(
        label,
        IndexedAxis(shape, axis, positions(*replace_length(shape, axis, number), end=shape[axis])),
        **fields,
    )
    for label, shape, axis, number, fields in LARGE_AXES
]
"""The large templates of gather and its gradient."""


def gather_arguments(template: CaseTemplate[IndexedAxis], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiGather` and `diopiGatherBackward` for the sizes of a template."""
    sizes = template.sizes
    return {
        "grad_output": tensor(*sizes.index.shape, layout=template.layout),
        "input": tensor(*sizes.shape, domain=any_value, layout=template.layout),
        "dim": sizes.axis,
        "index": sizes.index,
    }


def gather_along(shape: Shape, axis: int) -> IndexedAxis:
    """Return sizes with an index of the shape `shape`, which contains random positions along the axis `axis`."""
    return IndexedAxis(shape, axis, positions(*shape, end=shape[axis]))


SINGLE_POSITION_REASONS = {"of-number|number-in-vector": SINGLE_POSITION_REASON}
"""The reason why an implementation that ignores the index passes some cases, by a regular expression for labels."""

register(
    "diopiGather",
    templates=(*add_untested_axes(GATHER, gather_along), *LARGE_GATHERS),
    derive=gather_arguments,
    non_discriminating=SINGLE_POSITION_REASONS,
)
register(
    "diopiGatherBackward",
    templates=(*add_untested_axes(GATHER_BACKWARD, gather_along), *LARGE_GATHERS),
    derive=gather_arguments,
    non_discriminating=SINGLE_POSITION_REASONS,
)


@dataclass(frozen=True)
class ScatteredAxis(IndexedAxis):
    """The sizes of a template of scatter, which writes elements of a source to positions along an axis.

    Attributes:
        source: The shape of the source, which is at least as large as the index along each axis.
    """

    source: Shape


def distinct_index(shape: Shape, axis: int, length: int) -> TensorSpec:
    """Return an index in which no position occurs twice along the axis.

    Args:
        shape: The shape of the tensor to which scatter writes.
        axis: The axis; not negative.
        length: The length of the index along the axis; it is limited to the length of the tensor.

    Returns:
        The index. Along other axes, it is as long as the tensor.
    """
    index_shape = replace_length(shape, axis, min(length, shape[axis]))
    return positions(*index_shape, end=shape[axis], distinct_along=axis)


SCATTERS: Mapping[str, ScatteredAxis] = {
    "rows": ScatteredAxis((5, 3), 0, positions(4, 3, end=5, distinct_along=0), (4, 3)),
    "larger-source": ScatteredAxis((5, 4), 0, positions(2, 3, end=5, distinct_along=0), (4, 6)),
    "smaller": ScatteredAxis((4, 5, 3), 1, positions(2, 3, 2, end=5, distinct_along=1, layout=transposed), (2, 3, 2)),
    "last-of-4": ScatteredAxis((2, 3, 2, 5), -1, positions(2, 2, 2, 3, end=5, distinct_along=3), (2, 3, 2, 4)),
    "rank-5": ScatteredAxis((2, 1, 5, 2, 3), 2, positions(2, 1, 3, 2, 3, end=5, distinct_along=2), (2, 1, 3, 2, 3)),
    "cube": ScatteredAxis((4, 4, 4), 1, positions(4, 4, 4, end=4, distinct_along=1), (4, 4, 4)),
    "cube-first": ScatteredAxis((4, 4, 4), 0, positions(3, 4, 4, end=4, distinct_along=0), (4, 4, 4)),
    "vector": ScatteredAxis((6,), 0, positions(4, end=6, distinct_along=0, layout=strided), (4,)),
    "of-number": ScatteredAxis((), 0, literal([0]), (1,)),
    "number-of-number": ScatteredAxis((), -1, literal(0), ()),
    "number-of-vector": ScatteredAxis((1,), 0, literal(0), ()),
    "no-indices": ScatteredAxis((4, 3), 1, positions(4, 0, end=3), (4, 2)),
    "no-indices-of-other-rank": ScatteredAxis((4, 3), 1, positions(0, end=3), (2, 3)),
    "no-elements": ScatteredAxis((0, 3), 1, positions(0, 2, end=3), (0, 2)),
    "int32": ScatteredAxis((3, 4), -2, positions(2, 4, end=3, distinct_along=0, dtype=I32), (2, 4)),
    "all": ScatteredAxis((2, 7), 1, positions(2, 7, end=7, distinct_along=1), (2, 7)),
    "long": ScatteredAxis((4, 260), 1, positions(4, 200, end=260, distinct_along=1), (4, 200)),
}
"""Sizes of templates of scatter by label, in which no position occurs twice along the axis."""

DISTINCT_POSITIONS = ScatteredAxis((4, 6), 1, positions(4, 3, end=6, distinct_along=1), (4, 5))
"""Sizes in which scatter writes each element at most once."""

REPEATED_POSITIONS = ScatteredAxis((3, 9), 1, positions(3, 7, end=9), (3, 8))
"""Sizes in which scatter writes some elements several times."""

CROWDED_POSITIONS = ScatteredAxis((3, 17), 1, positions(3, 67, end=17), (4, 70))
"""Sizes in which scatter combines each element with four elements of the source on average."""

INNER_POSITIONS = ScatteredAxis((2, 3, 4), -2, positions(2, 5, 3, end=3, dtype=I32, layout=strided), (2, 6, 3))
"""Sizes in which scatter works along an inner axis and writes some elements several times."""

LARGE_SCATTERS = [
    CaseTemplate(
        label, ScatteredAxis(shape, axis, distinct_index(shape, axis, number), shape), {"reduce": ""}, **fields
    )
    for label, shape, axis, number, fields in LARGE_AXES
]
"""The large templates of `diopiScatter`."""

LARGE_SCALAR_SCATTERS = [
    CaseTemplate(
        label, ScatteredAxis(shape, axis, distinct_index(shape, axis, number // 3), shape), {"reduce": ""}, **fields
    )
    for label, shape, axis, number, fields in LARGE_AXES
]
"""The large templates of `diopiScatterScalar`, which write a third as many elements."""


def scatter_template(
    label: str,
    sizes: ScatteredAxis,
    reduce: str,
    domain: Domain | None = None,
    **fields: Unpack[TemplateFields],
) -> CaseTemplate[ScatteredAxis]:
    """Return a template of `diopiScatter` or `diopiScatterScalar`.

    Args:
        label: The label of the cases without the element type.
        sizes: The sizes.
        reduce: The argument `reduce`: "" to replace elements; "add" or "multiply" to combine the old and the new one.
        domain: The domain of the input and of the source; None for `any_value`.
        **fields: Further fields of the template.

    Returns:
        The template.
    """
    template = CaseTemplate(label, sizes, {"reduce": reduce}, **fields)
    return template.replace(domains={"input": domain, "src": domain}) if domain else template


SCATTER = (
    scatter_template("columns", DISTINCT_POSITIONS, "", **SMOKE_IN_ALL_DTYPES),
    scatter_template("add", REPEATED_POSITIONS, "add", normal(), **SMOKE_IN_ALL_DTYPES),
    scatter_template("multiply", REPEATED_POSITIONS, "multiply", normal(), **SMOKE_IN_ALL_DTYPES),
    scatter_template(
        "layouts", DISTINCT_POSITIONS, "", layout=transposed, result_layout=strided, dtypes=ONE_DTYPE_PER_KIND
    ),
    scatter_template("any-of-several", REPEATED_POSITIONS, "", dtypes=(*ONE_DTYPE_PER_KIND, Dtype.bool, Dtype.float64)),
    scatter_template(
        "add-inner",
        INNER_POSITIONS,
        "add",
        normal(),
        layout=strided,
        result_layout=transposed,
        dtypes=ONE_DTYPE_PER_KIND,
    ),
    scatter_template(
        "multiply-inner", INNER_POSITIONS, "multiply", normal(), layout=transposed, dtypes=ONE_DTYPE_PER_KIND
    ),
    scatter_template("add-exact", CROWDED_POSITIONS, "add", EXACT_SUMMANDS, dtypes=ROUNDED_DTYPES, exact=True),
    scatter_template(
        "multiply-exact", CROWDED_POSITIONS, "multiply", choice([1, -1, 2, 0.5]), dtypes=ROUNDED_DTYPES, exact=True
    ),
    scatter_template(
        "add-long-sum", ScatteredAxis((3,), 0, REPEATED_INDEX, (1100,)), "add", POSITIVE_SUMMANDS, dtypes=half
    ),
    scatter_template(
        "add-without-overflow", REPEATED_POSITIONS, "add", integers_without_overflow(terms=8), dtypes=(I32, Dtype.int64)
    ),
    scatter_template("add-wrap", REPEATED_POSITIONS, "add", full_range, dtypes=(Dtype.uint8, Dtype.int64)),
    scatter_template("multiply-wrap", REPEATED_POSITIONS, "multiply", full_range, dtypes=(Dtype.int16, Dtype.int64)),
    *(
        template.replace(arguments={"reduce": ""})
        for template in CaseTemplate.cycle_layouts(
            sized_templates(SCATTERS, DtypeSelection.one_per_size), *DIFFERENT_LAYOUTS
        )
    ),
    scatter_template("of-number-reduced", SCATTERS["of-number"], "add", normal()),
    scatter_template("number-of-number-reduced", SCATTERS["number-of-number"], "multiply", normal()),
    scatter_template("no-indices-of-other-rank-reduced", SCATTERS["no-indices-of-other-rank"], "add", normal()),
    scatter_template("larger-source-reduced", SCATTERS["larger-source"], "multiply", normal()),
    scatter_template("long-reduced", SCATTERS["long"], "add", normal()),
)
"""The small templates of `diopiScatter`.

If scatter replaces an element several times, any of the written values is a valid result.
"""

SCATTER_SCALAR = (
    *SCATTER,
    *(
        scatter_template(label, DISTINCT_POSITIONS, "", dtypes=(dtype,)).replace(arguments={"value": number})
        for label, (dtype, number, _) in CONVERSIONS.items()
    ),
)
"""The small templates of `diopiScatterScalar`, including numbers that the function must convert."""


def scatter_arguments(template: CaseTemplate[ScatteredAxis], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiScatter` and `diopiScatterScalar` for the sizes of a template.

    The number `value` depends on the element type. For bool, it is the one that changes elements.
    """
    sizes = template.sizes
    number = -2.0 if template.exact else -1.375
    is_product = template.argument("reduce") == "multiply"
    return {
        "input": tensor(*sizes.shape, domain=any_value, layout=template.layout),
        "dim": sizes.axis,
        "src": tensor(*sizes.source, domain=any_value, layout=template.layout),
        "value": (not is_product, 3, number, number)[category(dtype)],
        "index": sizes.index,
    }


WRITTEN_POSITIONS_REASONS = {
    "of-number|number-of-vector": SINGLE_POSITION_REASON,
    "all|cube$": "every position is written",
}
"""The reasons why an implementation that ignores the index passes some cases, by a regular expression for labels."""


def write_one_per_slice(shape: Shape, axis: int) -> ScatteredAxis:
    """Return sizes in which scatter writes one random position per slice along the axis `axis`."""
    source = replace_length(shape, axis % len(shape), 1)
    return ScatteredAxis(shape, axis, positions(*source, end=shape[axis]), source)


def scatter_templates(templates: Sequence[CaseTemplate[ScatteredAxis]]) -> list[CaseTemplate[ScatteredAxis]]:
    """Return the templates together with new ones for the axes that they do not test, for tensors of ranks 1 to 4.

    The new templates replace elements along even axes, and add to elements along odd axes.
    """
    reductions: Sequence[tuple[str, Domain | None]] = (("", None), ("add", normal()))
    new_templates = add_untested_axes(templates, write_one_per_slice)[len(templates) :]
    return [
        *templates,
        *(
            scatter_template(template.label, template.sizes, *reductions[template.sizes.axis % 2])
            for template in new_templates
        ),
    ]


register(
    "diopiScatter",
    templates=(*scatter_templates(SCATTER), *LARGE_SCATTERS),
    derive=scatter_arguments,
    non_discriminating=WRITTEN_POSITIONS_REASONS,
)
register(
    "diopiScatterScalar",
    templates=(*scatter_templates(SCATTER_SCALAR), *LARGE_SCALAR_SCATTERS),
    derive=scatter_arguments,
    non_discriminating=WRITTEN_POSITIONS_REASONS,
)

CaseFacts(scattered_tensor="input").declare("diopiScatter", "diopiScatterScalar")
