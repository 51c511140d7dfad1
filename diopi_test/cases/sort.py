"""Cases of sorting, of the selection of the largest or smallest elements, and of distinct values.

A template describes cases that differ only in their element type (`diopi_test.cases.template`).

A domain draws the values of a tensor (`diopi_test.cases.domains`). Large cases belong to a level with the sizes of real
models. `Case.non_discriminating` is the reason why a wrong result can pass a case.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from itertools import cycle, product
from math import inf, nan
from typing import Any, Unpack

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.dtypes import floating, half, integer
from diopi_proto.types import Dtype
from diopi_test.cases.axes import untested_axes
from diopi_test.cases.case import ResultOverride, TensorSpec
from diopi_test.cases.domains import Domain, any_value, choice, distinct, full_range, integer_values, subnormal, uniform
from diopi_test.cases.facts import CaseFacts
from diopi_test.cases.layouts import Layout, contiguous, expanded, strided, strides, transposed
from diopi_test.cases.template import (
    SMOKE_IN_ALL_DTYPES,
    Arguments,
    CaseTemplate,
    DtypeSelection,
    TemplateFields,
    register,
    tensor,
)
from diopi_test.cases.tensors import derive_single_tensor, literal, positions
from lib_rt.dtypes import integer_range
from lib_rt.formats import format_of, is_inexact

Shape = tuple[int, ...]
"""The sizes of a tensor."""

WITH_INFINITIES = choice([inf, -inf, 0.25, -3.0, 1e4, -1e-4, 2.0, 0.0, nan])
"""A domain of nine different numbers with both infinities and a NaN, which counts as the largest number."""

WITH_EQUAL_NUMBERS = choice([nan, -nan, inf, inf, -inf, -inf, 0.0, -0.0, 0.0, -0.0, 1.0, -1.0, 1.0])
"""A domain of equal numbers of every kind.

Zeros of both signs are equal, and all NaNs are equal, whatever their sign bit is.
"""


def draw_neighbors(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Return up to 40 different numbers that differ only in their last bits, repeated and in random order.

    Many of them are equal after a conversion to a narrower type. They lie around 1, or around the middle of the
    positive integers of an integer type.
    """
    steps = np.resize(np.arange(-20, 20), count)
    middle = 1.0 if is_inexact(dtype) else (integer_range(dtype)[1] + 1) // 2
    return rng.permutation(middle + steps * (format_of(dtype).epsilon if is_inexact(dtype) else 1))


PRECISE_DTYPES = (Dtype.float32, Dtype.float64, Dtype.int32, Dtype.int64)
"""Element types whose numbers lose digits in a conversion to the next narrower type."""

FEW_VALUES = integer_values(0, 3)
"""A domain of the integers from 0 to 3, so that several elements are equal."""

SINGLE_POSITION_REASON = "on an axis of size 1, every position is 0"
"""The reason why wrong positions can pass a case whose axis has size 1 (`Case.non_discriminating`)."""

SHAPES_AND_AXES: Mapping[str, tuple[Shape, int]] = {
    "columns": ((7, 5), 0),
    "middle": ((3, 4, 5), 1),
    "first-of-4": ((5, 2, 3, 2), -4),
    "last-of-5": ((2, 1, 3, 2, 4), -1),
    "vector": ((6,), -1),
    "length-one": ((3, 1, 4), 1),
    "number": ((), 0),
    "number-last": ((), -1),
    "no-rows": ((0, 4), 1),
    "empty-rows": ((3, 0), -1),
    "long": ((1031,), 0),
    "long-columns": ((130, 3), 0),
}
"""By label, a shape of the input and the axis along which a function works."""


def untested_shapes(templates: Iterable[CaseTemplate[Shape]]) -> list[tuple[str, Shape, int]]:
    """Return the axes of ranks 1 to 4 along which no template works.

    Args:
        templates: The templates.

    Returns:
        A label, a shape and the axis, for each such axis.
    """
    return list(untested_axes({(len(template.sizes), template.argument("dim")) for template in templates}))


LAYOUT_PAIRS = [(layout, contiguous) for layout in (contiguous, transposed, strided, contiguous)]
"""Pairs of the layouts of input and result, which templates get in rotation."""

STRIDED_IN_ALL_DTYPES: Mapping[str, Any] = {
    "layout": strided,
    "result_layout": transposed,
    "dtypes": DtypeSelection.all,
}
"""Fields of templates with a strided input and a transposed result."""

TRANSPOSED_IN_ALL_DTYPES: Mapping[str, Any] = {
    "layout": transposed,
    "result_layout": strided,
    "dtypes": DtypeSelection.all,
}
"""Fields of templates with a transposed input and a strided result."""

INT32_INDICES = ResultOverride(Dtype.int32)
"""The override of the result `indices`: positions in int32 instead of int64."""


def equal_rows(columns: int) -> Domain:
    """Return a domain of matrices in which all elements of a row are equal and different rows differ.

    Args:
        columns: The number of elements of a row.

    Returns:
        The domain.
    """
    return lambda rng, count, dtype: rng.permutation(np.arange(count // columns)).repeat(columns)


def sort_template(
    label: str,
    shape: Shape,
    dim: int | None,
    descending: bool,
    stable: bool | None,
    domain: Domain = distinct,
    **fields: Unpack[TemplateFields],
) -> CaseTemplate[Shape]:
    """Return a template of `diopiSort` or `diopiArgsort`.

    Args:
        label: The label of the cases without the element type.
        shape: The shape of the input.
        dim: The axis; None to sort the flattened tensor, which only `diopiArgsort` accepts.
        descending: Whether the largest element comes first.
        stable: Whether equal elements must keep their order; None to pass NULL, which only `diopiSort` accepts.
        domain: The domain of the input.
        **fields: Further fields of the template.

    Returns:
        The template.
    """
    arguments = {"stable": bool(stable), "dim": dim, "descending": descending, "pStable": stable}
    return CaseTemplate(label, shape, arguments, **fields).replace(domains={"input": domain})


SORT_OPTIONS = tuple(product((False, True), (None, False, True)))
"""All pairs of values of `descending` and `stable`."""

SORT = (
    sort_template("rows", (6, 7), 1, False, None, **SMOKE_IN_ALL_DTYPES),
    sort_template("inner-descending", (2, 6, 3), -2, True, False, **STRIDED_IN_ALL_DTYPES),
    sort_template("stable", (4, 9), 1, False, True, FEW_VALUES, **SMOKE_IN_ALL_DTYPES),
    sort_template("stable-descending", (9, 4), 0, True, True, FEW_VALUES, **TRANSPOSED_IN_ALL_DTYPES),
    sort_template("any-order", (4, 9), 1, False, None, FEW_VALUES, dtypes=DtypeSelection.all),
    *CaseTemplate.cycle_layouts(
        [
            sort_template(label, *SHAPES_AND_AXES[label], *options)
            for label, options in zip(SHAPES_AND_AXES, cycle(SORT_OPTIONS), strict=False)
        ],
        *LAYOUT_PAIRS,
    ),
    *(
        sort_template(
            f"equals-{'descending' if options[0] else 'ascending'}-{options[1]}",
            (4, 26),
            1,
            *options,
            WITH_EQUAL_NUMBERS,
        )
        for options in SORT_OPTIONS
    ),
    sort_template("equals-of-halves", (26,), 0, True, True, WITH_EQUAL_NUMBERS, dtypes=half),
    sort_template("any-order-of-equals", (26,), 0, True, False, WITH_EQUAL_NUMBERS, dtypes=half),
    sort_template("infinite", (9,), 0, False, None, WITH_INFINITIES, dtypes=floating),
    sort_template("infinite-descending", (9,), 0, True, None, WITH_INFINITIES),
    sort_template("subnormal", (9,), 0, False, True, subnormal, dtypes=floating),
    sort_template("subnormal-descending", (27,), 0, True, True, subnormal),
    sort_template("whole-range", (5, 8), 1, False, True, full_range, dtypes=integer),
    sort_template("whole-range-descending", (5, 8), 0, True, True, full_range, dtypes=(Dtype.int8, Dtype.uint8)),
    sort_template("neighbors", (40,), 0, False, None, draw_neighbors, dtypes=PRECISE_DTYPES),
    sort_template("all-equal", (4, 6), -1, False, None, equal_rows(6), dtypes=(Dtype.float32, Dtype.int64)),
    sort_template("expanded", (4, 6), 1, False, True, layout=expanded),
    sort_template("long-of-few", (1031,), 0, True, True, FEW_VALUES, dtypes=(Dtype.float32, Dtype.uint8)),
    sort_template("stable-long-rows", (3, 300), -1, False, True, FEW_VALUES, dtypes=(Dtype.float32, *half)),
    sort_template("stable-power-of-two", (256, 2), 0, True, True, FEW_VALUES),
    sort_template("many-pairs", (1031, 2), 1, False, True),
    sort_template("very-long", (4099,), 0, True, True, integer_values(-999, 999)),
    sort_template("long-any-order", (1031,), 0, False, False, FEW_VALUES, dtypes=(Dtype.float32, Dtype.bool)),
    sort_template(
        "int32-positions", (4, 9), 1, True, True, FEW_VALUES, results={"indices": INT32_INDICES, "out": INT32_INDICES}
    ),
    sort_template(
        "int32-positions-any-order",
        (4, 9),
        1,
        True,
        None,
        FEW_VALUES,
        results={"indices": INT32_INDICES, "out": INT32_INDICES},
    ),
)
"""The templates of `diopiSort`, except for the large ones.

Equal numbers reveal a vendor whose sort is not stable, or that loses positions.
"""

SORT_ALONG_OTHER_AXES = tuple(
    sort_template(label, shape, dim, *options)
    for (label, shape, dim), options in zip(untested_shapes(SORT), cycle(SORT_OPTIONS), strict=False)
)
"""Templates of sorts for each axis of ranks 1 to 4 along which no template of `SORT` sorts."""

FAR_APART_HALF: Mapping[str, Any] = {"layout": strides(2053, 2), "dtypes": (Dtype.float16,), "large": True}
"""Fields of large templates in float16 whose elements have gaps between them."""

LARGE_SORT = (
    sort_template("long-rows", (3, 32_003), 1, False, None, large=True),
    sort_template("many-rows", (70_001, 3), 1, False, None, large=True),
    sort_template("long-columns", (4097, 17), 0, False, None, large=True),
    sort_template("half-far-apart", (67, 1031), 1, False, None, **FAR_APART_HALF),
)
"""The large templates of sorts."""

ARGSORT = (*SORT, sort_template("no-axis", (4, 3, 7), None, True, False), *SORT_ALONG_OTHER_AXES, *LARGE_SORT)
"""The templates of `diopiArgsort`, which can also sort the flattened tensor."""

register(
    "diopiSort",
    templates=(*SORT, *SORT_ALONG_OTHER_AXES, *LARGE_SORT),
    derive=derive_single_tensor(),
    non_discriminating={"length-one": SINGLE_POSITION_REASON},
)
register(
    "diopiArgsort",
    templates=ARGSORT,
    derive=derive_single_tensor(),
    non_discriminating={"length-one": SINGLE_POSITION_REASON},
)


def topk_template(
    label: str,
    shape: Shape,
    dim: int,
    k: int,
    largest: bool,
    is_sorted: bool,
    domain: Domain = distinct,
    **fields: Unpack[TemplateFields],
) -> CaseTemplate[Shape]:
    """Return a template of `diopiTopk`, which selects the largest or smallest elements along an axis.

    Args:
        label: The label of the cases without the element type.
        shape: The shape of the input.
        dim: The axis.
        k: The number of selected elements.
        largest: Whether the largest elements are selected instead of the smallest.
        is_sorted: Whether the selected elements must be sorted.
        domain: The domain of the input.
        **fields: Further fields of the template.

    Returns:
        The template.
    """
    arguments = {"k": k, "dim": dim, "largest": largest, "sorted": is_sorted}
    return CaseTemplate(label, shape, arguments, **fields).replace(domains={"input": domain})


def half_of_axis_templates() -> Iterator[CaseTemplate[Shape]]:
    """Yield templates that select about half of the elements along each of `SHAPES_AND_AXES`."""
    options = cycle(((True, True), (False, True), (True, False), (False, False)))  # largest, sorted
    for label, (shape, dim) in SHAPES_AND_AXES.items():
        yield topk_template(label, shape, dim, (shape[dim] + 1) // 2 if shape else 1, *next(options))


TOPK = (
    topk_template("rows", (4, 9), 1, 3, True, True, **SMOKE_IN_ALL_DTYPES),
    topk_template("smallest", (9, 4), 0, 4, False, True, **SMOKE_IN_ALL_DTYPES),
    topk_template("inner", (2, 6, 3), -2, 2, True, True, **STRIDED_IN_ALL_DTYPES),
    topk_template("any-order", (4, 9), 1, 5, True, False, dtypes=DtypeSelection.all),
    topk_template("any-of-equals", (4, 9), 1, 4, True, True, FEW_VALUES, **TRANSPOSED_IN_ALL_DTYPES),
    topk_template("smallest-of-equals", (4, 9), 1, 4, False, False, FEW_VALUES),
    *CaseTemplate.cycle_layouts(half_of_axis_templates(), *LAYOUT_PAIRS),
    topk_template("one", (4, 7), 1, 1, True, False),
    topk_template("few-of-many", (3, 1300), 1, 5, True, True, dtypes=(Dtype.float32, Dtype.int32)),
    topk_template("many-of-very-many", (4099,), 0, 1025, False, True),
    topk_template("high-columns", (307, 3), 0, 2, True, True),
    topk_template("many-rows-with-nan", (517, 6), 1, 2, True, True, choice([nan, *map(float, range(-20, 20))])),
    topk_template("negative", (4, 9), 1, 3, True, True, uniform(-9, -1)),
    topk_template("all", (4, 7), 1, 7, True, True),
    topk_template("all-smallest", (4, 7), 0, 4, False, True),
    topk_template("all-any-order", (4, 7), 1, 7, True, False),
    topk_template("none", (4, 7), 1, 0, True, True),
    topk_template("equals", (3, 26), 1, 9, True, True, WITH_EQUAL_NUMBERS, dtypes=(Dtype.float32, Dtype.bfloat16)),
    topk_template(
        "equals-smallest", (3, 26), 1, 9, False, True, WITH_EQUAL_NUMBERS, dtypes=(Dtype.float32, Dtype.float16)
    ),
    topk_template("infinite", (9,), 0, 4, True, True, WITH_INFINITIES, dtypes=floating),
    topk_template("infinite-smallest", (9,), 0, 8, False, True, WITH_INFINITIES),
    topk_template("subnormal", (9,), 0, 4, True, True, subnormal, dtypes=floating),
    topk_template("subnormal-smallest", (9,), 0, 4, False, True, subnormal),
    topk_template("whole-range", (5, 8), 1, 3, True, True, full_range, dtypes=integer),
    topk_template("neighbors", (40,), 0, 17, False, True, draw_neighbors, dtypes=PRECISE_DTYPES),
    topk_template("int32-positions", (4, 9), 1, 3, False, True, results={"indices": INT32_INDICES}),
    topk_template("int32-positions-any-order", (4, 9), 1, 3, True, False, results={"indices": INT32_INDICES}),
)
"""The templates of `diopiTopk`, except for the large ones."""

TOPK_ALONG_OTHER_AXES = tuple(
    topk_template(label, shape, dim, (shape[dim] + 1) // 2, *options)
    for (label, shape, dim), options in zip(
        untested_shapes(TOPK), cycle(product((True, False), (True, False))), strict=False
    )
)
"""Templates of `diopiTopk` for each axis of ranks 1 to 4 along which no template of `TOPK` selects."""

LARGE_TOPK = (
    topk_template("vocabulary", (11, 32_003), 1, 509, True, True, large=True),
    topk_template("many-of-all", (3, 9001), 1, 4099, True, True, large=True),
    topk_template("many-rows", (70_001, 5), 1, 2, True, True, large=True),
    topk_template("half-far-apart", (67, 1031), 1, 17, True, True, **FAR_APART_HALF),
)
"""The large templates of `diopiTopk`."""

register(
    "diopiTopk",
    templates=(*TOPK, *TOPK_ALONG_OTHER_AXES, *LARGE_TOPK),
    derive=derive_single_tensor(),
    non_discriminating={"length-one": SINGLE_POSITION_REASON},
)

MATRIX_POSITIONS = positions(4, 6, end=6, distinct_along=1)
"""A tensor of 4 rows of positions. Each row is a permutation of 0 to 5."""

CUBE_POSITIONS = positions(3, 5, 4, end=5, distinct_along=1, layout=transposed)
"""A transposed tensor of positions, with permutations of 0 to 4 along axis 1."""


@dataclass(frozen=True)
class AxisSort:
    """The sizes of `diopiSortBackward`: the elements that a sort, a selection or a reduction takes along an axis.

    Attributes:
        shape: The shape of the input of the forward function.
        axis: The axis.
        indices: The positions of the elements along the axis.
        keepdim: Whether the result of the forward function has the axis. Only a reduction can remove the axis.
    """

    shape: Shape
    axis: int
    indices: TensorSpec
    _: KW_ONLY
    keepdim: bool = True


def sorted_rows(rows: int, length: int) -> AxisSort:
    """Return the sizes of the gradient of a sort along the rows of a matrix.

    Args:
        rows: The number of rows.
        length: The number of elements of a row.

    Returns:
        The sizes.
    """
    return AxisSort((rows, length), 1, positions(rows, length, end=length, distinct_along=1))


SORT_BACKWARD = (
    CaseTemplate("rows", AxisSort((4, 6), 1, MATRIX_POSITIONS), **SMOKE_IN_ALL_DTYPES),
    CaseTemplate("maxima", AxisSort((4, 6), 0, literal([3, 0, 2, 2, 1, 0]), keepdim=False), **SMOKE_IN_ALL_DTYPES),
    CaseTemplate("inner", AxisSort((3, 5, 4), -2, CUBE_POSITIONS), **STRIDED_IN_ALL_DTYPES),
    CaseTemplate("topk", AxisSort((7, 3), 0, positions(4, 3, end=7, distinct_along=0)), **TRANSPOSED_IN_ALL_DTYPES),
    CaseTemplate("maxima-of-last", AxisSort((3, 4), -1, literal([3, 0, 2]), keepdim=False), layout=strided),
    CaseTemplate(
        "maxima-of-inner", AxisSort((2, 4, 3), 1, literal([[3, 0, 2], [1, 1, 0]], layout=transposed), keepdim=False)
    ),
    CaseTemplate("maxima-of-first-of-4", AxisSort((3, 2, 1, 2), -4, literal([[[2, 0]], [[1, 1]]]), keepdim=False)),
    CaseTemplate("kept-maxima", AxisSort((2, 4, 3), -2, literal([[[3, 0, 2]], [[1, 1, 0]]]))),
    CaseTemplate("maximum", AxisSort((5,), 0, literal(3), keepdim=False)),
    CaseTemplate("cube", AxisSort((4, 4, 4), -2, positions(4, 4, 4, end=4, distinct_along=1))),
    CaseTemplate("cube-first", AxisSort((4, 4, 4), 0, positions(4, 4, 4, end=4, distinct_along=0))),
    CaseTemplate("maxima-of-cube", AxisSort((4, 4, 4), -2, literal([[3, 0, 2, 1], [1, 1, 0, 2]] * 2), keepdim=False)),
    CaseTemplate("vector", AxisSort((6,), -1, positions(6, end=6, distinct_along=0, layout=strided))),
    CaseTemplate("int32", AxisSort((4, 6), 1, positions(4, 6, end=6, distinct_along=1, dtype=Dtype.int32))),
    CaseTemplate("number", AxisSort((), 0, literal(0))),
    CaseTemplate("maximum-of-number", AxisSort((), -1, literal(0), keepdim=False)),
    CaseTemplate("nothing-taken", AxisSort((4, 3), 1, positions(4, 0, end=3, distinct_along=1))),
    CaseTemplate("no-rows", AxisSort((0, 3), 1, positions(0, 3, end=3, distinct_along=1))),
    CaseTemplate("rows-of-16", AxisSort((4, 16), 1, positions(4, 16, end=16, distinct_along=1))),
    CaseTemplate("long", AxisSort((1031,), 0, positions(515, end=1031, distinct_along=0))),
)
"""The templates of `diopiSortBackward`, except for the large ones.

The function adds each gradient at the position of its element in the input.
"""

SORT_BACKWARD_ALONG_OTHER_AXES = tuple(
    CaseTemplate(label, AxisSort(shape, dim, positions(*shape, end=shape[dim], distinct_along=dim)))
    for label, shape, dim in untested_axes({(len(t.sizes.shape), t.sizes.axis) for t in SORT_BACKWARD})
)
"""Templates of `diopiSortBackward` for each axis of ranks 1 to 4 along which no template of `SORT_BACKWARD` works."""

LARGE_SORT_BACKWARD = (
    CaseTemplate("long-rows", sorted_rows(3, 32_003), large=True),
    CaseTemplate("many-rows", sorted_rows(70_001, 3), large=True),
    CaseTemplate("half", sorted_rows(67, 1031), dtypes=(Dtype.float16,), large=True),
)
"""The large templates of `diopiSortBackward`."""


def sort_backward_arguments(template: CaseTemplate[AxisSort], dtype: Dtype) -> Mapping[str, Any]:
    """Return the arguments of `diopiSortBackward` for the sizes of a template.

    Args:
        template: The template. Its layout applies to `grad_output`.
        dtype: Not used; `grad_output` has the type under test.

    Returns:
        The arguments by name.
    """
    sizes = template.sizes
    return {
        "grad_output": tensor(*sizes.indices.shape, domain=any_value, layout=template.layout),
        "dim": sizes.axis,
        "indices": sizes.indices,
        "sizes": sizes.shape,
        "keepdim": sizes.keepdim,
    }


register(
    "diopiSortBackward",
    templates=(*SORT_BACKWARD, *SORT_BACKWARD_ALONG_OTHER_AXES, *LARGE_SORT_BACKWARD),
    derive=sort_backward_arguments,
)


def repeated_slices(shape: Shape, dim: int, distinct_count: int) -> Domain:
    """Return a domain of small integers in which slices across an axis repeat.

    Args:
        shape: The shape of the tensor.
        dim: The axis that counts the slices.
        distinct_count: The number of different slices. They differ from each other in one or two elements.

    Returns:
        The domain.
    """

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        """Return the numbers of the tensor in row-major order."""
        elements_per_slice = int(np.prod(shape)) // shape[dim]
        slice_values = np.tile(
            rng.integers(0, 2 if dtype is Dtype.bool else 4, elements_per_slice), (distinct_count, 1)
        )
        changed_positions = rng.permutation(elements_per_slice)[: distinct_count - 1]
        slice_values[np.arange(1, distinct_count), changed_positions] = (
            1 - slice_values[np.arange(1, distinct_count), changed_positions]
        )
        slice_numbers = rng.permutation(np.resize(np.arange(distinct_count), shape[dim]))
        other_sizes = [length for axis, length in enumerate(shape) if axis != dim % len(shape)]
        return np.asarray(np.moveaxis(slice_values[slice_numbers].reshape(shape[dim], *other_sizes), 0, dim)).reshape(
            -1
        )

    return draw


def draw_repeated_of_whole_range(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Return values from the whole range of the type: a third as many different values as elements, used repeatedly."""
    return rng.choice(full_range(rng, max(count // 3, 1), dtype), count)


BOTH_ZEROS = choice([0.0, -0.0, 1.0, -0.0, -2.0, 0.0])
"""A domain with zeros of both signs, which count as equal."""


def unique_template(
    label: str,
    shape: Shape,
    dim: int | None = None,
    is_sorted: bool = True,
    *,
    has_counts: bool = True,
    domain: Domain | None = None,
    **fields: Unpack[TemplateFields],
) -> CaseTemplate[Shape]:
    """Return a template of `diopiUnique`, which returns the distinct numbers or the distinct slices of a tensor.

    Args:
        label: The label of the cases without the element type.
        shape: The shape of the input.
        dim: The axis that counts the slices; None for distinct numbers.
        is_sorted: Whether the result must be sorted.
        has_counts: Whether the caller requests the number of occurrences of each result.
        domain: The domain of the input; None for numbers or slices of which most repeat.
        **fields: Further fields of the template.

    Returns:
        The template.
    """
    arguments: Arguments = {"dim": dim, "sorted": is_sorted, "return_counts": has_counts}
    default_domain = FEW_VALUES if dim is None else repeated_slices(shape, dim, 3)
    return CaseTemplate(label, shape, arguments, **fields).replace(domains={"input": domain or default_domain})


def fields_in_layout(layout: Layout) -> dict[str, Any]:
    """Return the fields of a template in every element type, with this layout of input and result `indices`."""
    return {"layout": layout, "results": {"indices": ResultOverride(layout=layout)}, "dtypes": DtypeSelection.all}


WITHOUT_INDICES: Mapping[str, Any] = {"results": {"indices": None}}
"""Fields of templates whose caller omits the result `indices`."""

UNIQUE = (
    unique_template("matrix", (4, 5), **SMOKE_IN_ALL_DTYPES),
    unique_template("rows", (7, 3), 0, **SMOKE_IN_ALL_DTYPES),
    unique_template("inner", (2, 6, 3), -2, **fields_in_layout(strided)),
    unique_template("columns", (4, 6), 1, False, **fields_in_layout(transposed)),
    unique_template("any-order", (4, 5), None, False, **fields_in_layout(transposed)),
    unique_template("not-counted", (4, 5), has_counts=False),
    unique_template("not-mapped", (4, 5), **WITHOUT_INDICES),
    unique_template("values-alone", (4, 5), has_counts=False, **WITHOUT_INDICES),
    unique_template("slices-not-counted", (7, 3), 0, has_counts=False),
    unique_template("slices-not-mapped", (7, 3), 0, **WITHOUT_INDICES),
    unique_template("slices-alone", (7, 3), 0, False, has_counts=False, **WITHOUT_INDICES),
    unique_template("all-different", (9,), domain=distinct),
    unique_template("all-slices-different", (5, 4), 1, domain=distinct),
    unique_template("all-equal", (3, 4), domain=integer_values(2, 2)),
    unique_template("all-slices-equal", (3, 4), -1, domain=repeated_slices((3, 4), -1, 1)),
    unique_template("number", ()),
    unique_template("nothing", (0,)),
    unique_template("no-rows", (0, 3)),
    unique_template("no-slices", (0, 3), 0, domain=FEW_VALUES),
    unique_template("first-of-4", (7, 2, 1, 2), -4),
    unique_template("last-of-5", (2, 1, 3, 2, 6), -1),
    unique_template("vector", (9,), 0, domain=FEW_VALUES),
    unique_template("expanded", (4, 5), layout=expanded),
    unique_template("zeros", (12,), domain=BOTH_ZEROS, dtypes=floating),
    unique_template("slices-with-zeros", (12, 1), 0, domain=BOTH_ZEROS, dtypes=(Dtype.float32, Dtype.bfloat16)),
    unique_template("negative-zeros", (6,), domain=choice([-0.0, 1.0]), dtypes=(Dtype.float32, Dtype.float16)),
    unique_template("infinite", (18,), domain=choice([inf, -inf, 2.0, 0.5, -1.0]), dtypes=floating),
    unique_template(
        "not-a-number", (9,), domain=choice([nan, inf, -inf, inf, 2.0, -inf, 0.5, inf, 2.0]), dtypes=floating
    ),
    unique_template("whole-range", (4, 6), domain=draw_repeated_of_whole_range, dtypes=integer),
    unique_template("neighbors", (60,), domain=draw_neighbors, dtypes=PRECISE_DTYPES),
    unique_template("long", (1031,), domain=integer_values(0, 99), dtypes=(Dtype.float32, Dtype.int32)),
    unique_template("many-different", (2, 1031), domain=integer_values(0, 1500)),
    unique_template("long-slices", (130, 5), 0, domain=repeated_slices((130, 5), 0, 6)),
    unique_template("wide-slices", (9, 140), 0, domain=repeated_slices((9, 140), 0, 4)),
    unique_template("cube", (4, 4, 4), 1),
    unique_template("int32-positions", (4, 5), results={"indices": INT32_INDICES}),
    unique_template("int32-positions-of-slices", (7, 3), 0, results={"indices": INT32_INDICES}),
)
"""The templates of `diopiUnique`, except for the large ones."""

UNIQUE_ALONG_OTHER_AXES = tuple(
    unique_template(label, shape, dim, domain=repeated_slices(shape, dim, 2) if len(shape) > 1 else FEW_VALUES)
    for label, shape, dim in untested_shapes(template for template in UNIQUE if template.argument("dim") is not None)
)
"""Templates of distinct slices for each axis of ranks 1 to 4 across which no template of `UNIQUE` has slices."""

LARGE_UNIQUE = (
    unique_template("tokens", (263, 257), dtypes=(Dtype.int64,), large=True),
    unique_template("numbers", (67, 1031), large=True),
)
"""The large templates of `diopiUnique`."""

register(
    "diopiUnique",
    templates=(*UNIQUE, *UNIQUE_ALONG_OTHER_AXES, *LARGE_UNIQUE),
    derive=derive_single_tensor(),
    non_discriminating={"all-different": "no value is repeated", "all-equal": "equal elements give a single result"},
)
CaseFacts(has_single_nan=True).declare("diopiUnique")
