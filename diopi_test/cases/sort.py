"""Sorting, selection of the largest or smallest, and distinct values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import cycle, product
from math import inf, nan
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.dtypes import floating, half, integer
from diopi_proto.types import Dtype
from diopi_test.cases.axes import untested_axes
from diopi_test.cases.domains import (
    Domain,
    choice,
    distinct,
    full_range,
    integer_range,
    integer_values,
    subnormal,
    uniform,
)
from diopi_test.cases.formats import format_of, is_inexact
from diopi_test.cases.layouts import Layout, contiguous, expanded, strided, transposed
from diopi_test.cases.model import ResultOverride
from diopi_test.cases.template import SMOKE_IN_ALL_DTYPES, CaseTemplate, DtypeSelection, cycle_layouts, register
from diopi_test.cases.tensors import arbitrary, derive_single_tensor, distinct_positions, literal

INFINITE = choice([inf, -inf, 0.25, -3.0, 1e4, -1e-4, 2.0, 0.0, nan])
"""Nine different numbers; the only NaN counts as the largest."""

EQUALS = choice([nan, -nan, inf, inf, -inf, -inf, 0.0, -0.0, 0.0, -0.0, 1.0, -1.0, 1.0])
"""Equal numbers of every kind; 0.0 and −0.0 are equal too, and NaN whatever its sign bit."""


def neighbours(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Forty numbers of the type that differ in their last bits, and are equal in a narrower one."""
    steps = np.resize(np.arange(-20, 20), count)
    middle = 1.0 if is_inexact(dtype) else (integer_range(dtype)[1] + 1) // 2
    return rng.permutation(middle + steps * (format_of(dtype).epsilon if is_inexact(dtype) else 1))


PRECISE = (Dtype.float32, Dtype.float64, Dtype.int32, Dtype.int64)
"""Element types with far more numbers than a narrower one has."""

REPEATED = integer_values(0, 3)

ONE_PLACE = "along an axis of length one there is but place 0"

AXES: Mapping[str, tuple[tuple[int, ...], int]] = {
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
"""Shapes of the input, and axes to sort along."""


def also_along(templates: Iterable[CaseTemplate[Any]]) -> list[tuple[str, tuple[int, ...], int]]:
    """Labels, shapes and axes of calls along the axes that none of the templates is along."""
    return list(untested_axes({(len(template.sizes), template.argument("dim")) for template in templates}))


PLACES = [(layout, contiguous) for layout in (contiguous, transposed, strided, contiguous)]

INT32 = ResultOverride(Dtype.int32)
"""Positions are int64 otherwise."""


def equal_rows(columns: int) -> Domain:
    """One number all along each row, another one in each."""
    return lambda rng, count, dtype: rng.permutation(np.arange(count // columns)).repeat(columns)


def ordered(
    label: str,
    shape: tuple[int, ...],
    dim: int | None,
    descending: bool,
    stable: bool | None,
    domain: Domain = distinct,
    **fields: Any,
) -> CaseTemplate[Any]:
    """Sort calls `stable` pStable and takes None too."""
    arguments = {"stable": bool(stable), "dim": dim, "descending": descending, "pStable": stable}
    return CaseTemplate(label, shape, arguments, {"input": domain}, **fields)


WAYS = tuple(product((False, True), (None, False, True)))
"""Whether descending, and whether stable."""

SORT = (
    ordered("rows", (6, 7), 1, False, None, **SMOKE_IN_ALL_DTYPES),
    ordered(
        "inner-descending",
        (2, 6, 3),
        -2,
        True,
        False,
        layout=strided,
        result_layout=transposed,
        dtypes=DtypeSelection.all,
    ),
    ordered("stable", (4, 9), 1, False, True, REPEATED, **SMOKE_IN_ALL_DTYPES),
    ordered(
        "stable-descending",
        (9, 4),
        0,
        True,
        True,
        REPEATED,
        layout=transposed,
        result_layout=strided,
        dtypes=DtypeSelection.all,
    ),
    ordered("any-order", (4, 9), 1, False, None, REPEATED, dtypes=DtypeSelection.all),
    *cycle_layouts(
        [ordered(label, *AXES[label], *way) for label, way in zip(AXES, cycle(WAYS), strict=False)], *PLACES
    ),
    *(ordered(f"equals-{'descending' if way[0] else 'ascending'}-{way[1]}", (4, 26), 1, *way, EQUALS) for way in WAYS),
    ordered("equals-of-halves", (26,), 0, True, True, EQUALS, dtypes=half),
    ordered("any-order-of-equals", (26,), 0, True, False, EQUALS, dtypes=half),
    ordered("infinite", (9,), 0, False, None, INFINITE, dtypes=floating),
    ordered("infinite-descending", (9,), 0, True, None, INFINITE),
    ordered("subnormal", (9,), 0, False, True, subnormal, dtypes=floating),
    ordered("subnormal-descending", (27,), 0, True, True, subnormal),
    ordered("whole-range", (5, 8), 1, False, True, full_range, dtypes=integer),
    ordered("whole-range-descending", (5, 8), 0, True, True, full_range, dtypes=(Dtype.int8, Dtype.uint8)),
    ordered("neighbours", (40,), 0, False, None, neighbours, dtypes=PRECISE),
    ordered("all-equal", (4, 6), -1, False, None, equal_rows(6), dtypes=(Dtype.float32, Dtype.int64)),
    ordered("expanded", (4, 6), 1, False, True, layout=expanded),
    ordered("long-of-few", (1031,), 0, True, True, REPEATED, dtypes=(Dtype.float32, Dtype.uint8)),
    ordered("stable-long-rows", (3, 300), -1, False, True, REPEATED, dtypes=(Dtype.float32, *half)),
    ordered("stable-power-of-two", (256, 2), 0, True, True, REPEATED),
    ordered("very-long", (4099,), 0, True, True, integer_values(-999, 999)),
    ordered("long-any-order", (1031,), 0, False, False, REPEATED, dtypes=(Dtype.float32, Dtype.bool)),
    ordered("int32-positions", (4, 9), 1, True, True, REPEATED, results={"indices": INT32, "out": INT32}),
    ordered("int32-positions-any-order", (4, 9), 1, True, None, REPEATED, results={"indices": INT32, "out": INT32}),
)

OTHER_AXES = tuple(
    ordered(label, shape, dim, *way) for (label, shape, dim), way in zip(also_along(SORT), cycle(WAYS), strict=False)
)

ARGSORT = (*SORT, ordered("no-axis", (4, 3, 7), None, True, False), *OTHER_AXES)

register(
    "diopiSort",
    templates=(*SORT, *OTHER_AXES),
    derive=derive_single_tensor(),
    non_discriminating={"length-one": ONE_PLACE},
)
register("diopiArgsort", templates=ARGSORT, derive=derive_single_tensor(), non_discriminating={"length-one": ONE_PLACE})


def largest(
    label: str,
    shape: tuple[int, ...],
    dim: int,
    k: int,
    of_largest: bool,
    in_order: bool,
    domain: Domain = distinct,
    **fields: Any,
) -> CaseTemplate[Any]:
    """The `k` largest, or smallest."""
    arguments = {"k": k, "dim": dim, "largest": of_largest, "sorted": in_order}
    return CaseTemplate(label, shape, arguments, {"input": domain}, **fields)


def by_half() -> Iterator[CaseTemplate[Any]]:
    """About half of the numbers along each of the axes."""
    ways = cycle(((True, True), (False, True), (True, False), (False, False)))
    for label, (shape, dim) in AXES.items():
        yield largest(label, shape, dim, (shape[dim] + 1) // 2 if shape else 1, *next(ways))


TOPK = (
    largest("rows", (4, 9), 1, 3, True, True, **SMOKE_IN_ALL_DTYPES),
    largest("smallest", (9, 4), 0, 4, False, True, **SMOKE_IN_ALL_DTYPES),
    largest("inner", (2, 6, 3), -2, 2, True, True, layout=strided, result_layout=transposed, dtypes=DtypeSelection.all),
    largest("any-order", (4, 9), 1, 5, True, False, dtypes=DtypeSelection.all),
    largest(
        "any-of-equals",
        (4, 9),
        1,
        4,
        True,
        True,
        REPEATED,
        layout=transposed,
        result_layout=strided,
        dtypes=DtypeSelection.all,
    ),
    largest("smallest-of-equals", (4, 9), 1, 4, False, False, REPEATED),
    *cycle_layouts(by_half(), *PLACES),
    largest("one", (4, 7), 1, 1, True, False),
    largest("few-of-many", (3, 1300), 1, 5, True, True, dtypes=(Dtype.float32, Dtype.int32)),
    largest("many-of-very-many", (4099,), 0, 1025, False, True),
    largest("negative", (4, 9), 1, 3, True, True, uniform(-9, -1)),
    largest("all", (4, 7), 1, 7, True, True),
    largest("all-smallest", (4, 7), 0, 4, False, True),
    largest("all-any-order", (4, 7), 1, 7, True, False),
    largest("none", (4, 7), 1, 0, True, True),
    largest("equals", (3, 26), 1, 9, True, True, EQUALS, dtypes=(Dtype.float32, Dtype.bfloat16)),
    largest("equals-smallest", (3, 26), 1, 9, False, True, EQUALS, dtypes=(Dtype.float32, Dtype.float16)),
    largest("infinite", (9,), 0, 4, True, True, INFINITE, dtypes=floating),
    largest("infinite-smallest", (9,), 0, 8, False, True, INFINITE),
    largest("subnormal", (9,), 0, 4, True, True, subnormal, dtypes=floating),
    largest("subnormal-smallest", (9,), 0, 4, False, True, subnormal),
    largest("whole-range", (5, 8), 1, 3, True, True, full_range, dtypes=integer),
    largest("neighbours", (40,), 0, 17, False, True, neighbours, dtypes=PRECISE),
    largest("int32-positions", (4, 9), 1, 3, False, True, results={"indices": INT32}),
    largest("int32-positions-any-order", (4, 9), 1, 3, True, False, results={"indices": INT32}),
)

TOPK_ALONG = tuple(
    largest(label, shape, dim, (shape[dim] + 1) // 2, *way)
    for (label, shape, dim), way in zip(also_along(TOPK), cycle(product((True, False), (True, False))), strict=False)
)

register(
    "diopiTopk",
    templates=(*TOPK, *TOPK_ALONG),
    derive=derive_single_tensor(),
    non_discriminating={"length-one": ONE_PLACE},
)

MATRIX = distinct_positions(4, 6, below=6, axis=1)
CUBE = distinct_positions(3, 5, 4, below=5, axis=1, layout=transposed)

SORT_BACKWARD = (
    CaseTemplate("rows", ((4, 6), 1, True, MATRIX), **SMOKE_IN_ALL_DTYPES),
    CaseTemplate("maxima", ((4, 6), 0, False, literal([3, 0, 2, 2, 1, 0])), **SMOKE_IN_ALL_DTYPES),
    CaseTemplate(
        "inner", ((3, 5, 4), -2, True, CUBE), layout=strided, result_layout=transposed, dtypes=DtypeSelection.all
    ),
    CaseTemplate(
        "topk",
        ((7, 3), 0, True, distinct_positions(4, 3, below=7)),
        layout=transposed,
        result_layout=strided,
        dtypes=DtypeSelection.all,
    ),
    CaseTemplate("maxima-of-last", ((3, 4), -1, False, literal([3, 0, 2])), layout=strided),
    CaseTemplate("maxima-of-inner", ((2, 4, 3), 1, False, literal([[3, 0, 2], [1, 1, 0]], layout=transposed))),
    CaseTemplate("maxima-of-first-of-4", ((3, 2, 1, 2), -4, False, literal([[[2, 0]], [[1, 1]]]))),
    CaseTemplate("kept-maxima", ((2, 4, 3), -2, True, literal([[[3, 0, 2]], [[1, 1, 0]]]))),
    CaseTemplate("maximum", ((5,), 0, False, literal(3))),
    CaseTemplate("cube", ((4, 4, 4), -2, True, distinct_positions(4, 4, 4, below=4, axis=1))),
    CaseTemplate("cube-first", ((4, 4, 4), 0, True, distinct_positions(4, 4, 4, below=4))),
    CaseTemplate("maxima-of-cube", ((4, 4, 4), -2, False, literal([[3, 0, 2, 1], [1, 1, 0, 2]] * 2))),
    CaseTemplate("vector", ((6,), -1, True, distinct_positions(6, below=6, layout=strided))),
    CaseTemplate("int32", ((4, 6), 1, True, distinct_positions(4, 6, below=6, axis=1, dtype=Dtype.int32))),
    CaseTemplate("number", ((), 0, True, literal(0))),
    CaseTemplate("maximum-of-number", ((), -1, False, literal(0))),
    CaseTemplate("nothing-taken", ((4, 3), 1, True, distinct_positions(4, 0, below=3, axis=1))),
    CaseTemplate("no-rows", ((0, 3), 1, True, distinct_positions(0, 3, below=3, axis=1))),
    CaseTemplate("long", ((1031,), 0, True, distinct_positions(515, below=1031))),
)
"""Sizes are the shape of what was sorted, the axis, whether it was kept, and the places."""

SORT_BACKWARD_ALONG = tuple(
    CaseTemplate(label, (shape, dim, True, distinct_positions(*shape, below=shape[dim], axis=dim)))
    for label, shape, dim in untested_axes({(len(template.sizes[0]), template.sizes[1]) for template in SORT_BACKWARD})
)


def gathered_gradient(template: CaseTemplate[Any], dtype: Dtype) -> Mapping[str, Any]:
    """Derive the arguments of `diopiSortBackward` from the sizes of a template."""
    sizes, dim, keepdim, indices = template.sizes
    grad = arbitrary(*indices.shape, layout=template.layout)
    return {"grad_output": grad, "dim": dim, "indices": indices, "sizes": sizes, "keepdim": keepdim}


register("diopiSortBackward", templates=(*SORT_BACKWARD, *SORT_BACKWARD_ALONG), derive=gathered_gradient)


def few_slices(shape: tuple[int, ...], dim: int, different: int) -> Domain:
    """Small numbers such that only so many slices across axis `dim` differ, and some of those in one element only."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        elements_per_slice = int(np.prod(shape)) // shape[dim]
        kinds = np.tile(rng.integers(0, 2 if dtype is Dtype.bool else 4, elements_per_slice), (different, 1))
        places = rng.permutation(elements_per_slice)[: different - 1]
        kinds[np.arange(1, different), places] = 1 - kinds[np.arange(1, different), places]
        slice_kinds = rng.permutation(np.resize(np.arange(different), shape[dim]))
        other_sizes = [length for axis, length in enumerate(shape) if axis != dim % len(shape)]
        return np.asarray(np.moveaxis(kinds[slice_kinds].reshape(shape[dim], *other_sizes), 0, dim)).reshape(-1)

    return draw


def choice_of_whole_range(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Few values from the whole range, each several times."""
    return rng.choice(full_range(rng, max(count // 3, 1), dtype), count)


ZEROS = choice([0.0, -0.0, 1.0, -0.0, -2.0, 0.0])


def different(
    label: str,
    shape: tuple[int, ...],
    dim: int | None = None,
    in_order: bool = True,
    *,
    counted: bool = True,
    domain: Domain | None = None,
    **fields: Any,
) -> CaseTemplate[Any]:
    """The different numbers, or slices across axis `dim`, few of several by default."""
    arguments = {"dim": dim, "sorted": in_order, "return_counts": counted}
    usual = REPEATED if dim is None else few_slices(shape, dim, 3)
    return CaseTemplate(label, shape, arguments, {"input": domain or usual}, **fields)


def lying(layout: Layout) -> dict[str, Any]:
    """In every element type, with this layout of the input and of the only result that the caller makes."""
    return {"layout": layout, "results": {"indices": ResultOverride(layout=layout)}, "dtypes": DtypeSelection.all}


UNMAPPED: Mapping[str, Any] = {"results": {"indices": None}}

UNIQUE = (
    different("matrix", (4, 5), **SMOKE_IN_ALL_DTYPES),
    different("rows", (7, 3), 0, **SMOKE_IN_ALL_DTYPES),
    different("inner", (2, 6, 3), -2, **lying(strided)),
    different("columns", (4, 6), 1, False, **lying(transposed)),
    different("any-order", (4, 5), None, False, **lying(transposed)),
    different("not-counted", (4, 5), counted=False),
    different("not-mapped", (4, 5), **UNMAPPED),
    different("values-alone", (4, 5), counted=False, **UNMAPPED),
    different("slices-not-counted", (7, 3), 0, counted=False),
    different("slices-not-mapped", (7, 3), 0, **UNMAPPED),
    different("slices-alone", (7, 3), 0, False, counted=False, **UNMAPPED),
    different("all-different", (9,), domain=distinct),
    different("all-slices-different", (5, 4), 1, domain=distinct),
    different("all-equal", (3, 4), domain=integer_values(2, 2)),
    different("all-slices-equal", (3, 4), -1, domain=few_slices((3, 4), -1, 1)),
    different("number", ()),
    different("nothing", (0,)),
    different("no-rows", (0, 3)),
    different("no-slices", (0, 3), 0, domain=REPEATED),
    different("first-of-4", (7, 2, 1, 2), -4),
    different("last-of-5", (2, 1, 3, 2, 6), -1),
    different("vector", (9,), 0, domain=REPEATED),
    different("expanded", (4, 5), layout=expanded),
    different("zeros", (12,), domain=ZEROS, dtypes=floating),
    different("slices-with-zeros", (12, 1), 0, domain=ZEROS, dtypes=(Dtype.float32, Dtype.bfloat16)),
    different("negative-zeros", (6,), domain=choice([-0.0, 1.0]), dtypes=(Dtype.float32, Dtype.float16)),
    different("infinite", (18,), domain=choice([inf, -inf, 2.0, 0.5, -1.0]), dtypes=floating),
    different("not-a-number", (9,), domain=choice([nan, inf, -inf, inf, 2.0, -inf, 0.5, inf, 2.0]), dtypes=floating),
    different("whole-range", (4, 6), domain=choice_of_whole_range, dtypes=integer),
    different("neighbours", (60,), domain=neighbours, dtypes=PRECISE),
    different("long", (1031,), domain=integer_values(0, 99), dtypes=(Dtype.float32, Dtype.int32)),
    different("many-different", (2, 1031), domain=integer_values(0, 1500)),
    different("long-slices", (130, 5), 0, domain=few_slices((130, 5), 0, 6)),
    different("wide-slices", (9, 140), 0, domain=few_slices((9, 140), 0, 4)),
    different("cube", (4, 4, 4), 1),
    different("int32-positions", (4, 5), results={"indices": INT32}),
    different("int32-positions-of-slices", (7, 3), 0, results={"indices": INT32}),
)

UNIQUE_ALONG = tuple(
    different(label, shape, dim, domain=few_slices(shape, dim, 2) if len(shape) > 1 else REPEATED)
    for label, shape, dim in also_along(template for template in UNIQUE if template.argument("dim") is not None)
)

register(
    "diopiUnique",
    templates=(*UNIQUE, *UNIQUE_ALONG),
    derive=derive_single_tensor(),
    non_discriminating={"all-different": "no value occurs twice", "all-equal": "equal elements have one place"},
)
