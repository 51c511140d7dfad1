"""Sorting, selection of the largest or smallest, and distinct values."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle, product
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.dtypes import floating, half, integer
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.case import Case, TensorSpec, cases_for
from diopi_test.cases.scenes import Scene, data, literal, no_position_twice, play
from diopi_test.domains import Domain, anything, between, choice, distinct, integer_range, whole, whole_range
from diopi_test.formats import format_of, is_inexact
from diopi_test.layouts import Layout, contiguous, expanded, strided, transposed

nan, inf = float("nan"), float("inf")

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

REPEATED = whole(0, 3)

ONE_PLACE = "along an axis of length one there is but place 0"

AXES: dict[str, tuple[tuple[int, ...], int]] = {
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


def equal_rows(columns: int) -> Domain:
    """One number all along each row, another one in each."""
    return lambda rng, count, dtype: rng.permutation(np.arange(count // columns)).repeat(columns)


def sorting(prototype: Prototype, attributes: Any) -> Iterator[Case]:
    """Cases of sort and argsort; `attributes(dim, descending, stable)` gives all arguments but the input."""

    def scene(
        label: str,
        shape: tuple[int, ...],
        dim: int | None,
        descending: bool,
        stable: bool | None,
        domain: Domain = distinct,
        layout: Layout = contiguous,
        **more: Any,
    ) -> Scene:
        arguments = {"input": data(*shape, domain=domain, layout=layout), **attributes(dim, descending, stable)}
        return Scene(label, arguments, **more)

    layouts = cycle((contiguous, transposed, strided, contiguous))
    ways = cycle(product((False, True), (None, False, True)))
    yield from play(
        prototype,
        [
            scene("rows", (6, 7), 1, False, None, common=True, smoke=True),
            scene("inner-descending", (2, 6, 3), -2, True, False, distinct, strided, result=transposed, common=True),
            scene("stable", (4, 9), 1, False, True, REPEATED, common=True, smoke=True),
            scene("stable-descending", (9, 4), 0, True, True, REPEATED, transposed, result=strided, common=True),
            scene("any-order", (4, 9), 1, False, None, REPEATED, common=True),
            *(scene(label, *one, *next(ways), distinct, next(layouts)) for label, one in AXES.items()),
            *(
                scene(f"equals-{'descending' if down else 'ascending'}-{stable}", (4, 26), 1, down, stable, EQUALS)
                for down, stable in product((False, True), (None, False, True))
            ),
            scene("equals-of-halves", (26,), 0, True, True, EQUALS, dtypes=half),
            scene("any-order-of-equals", (26,), 0, True, False, EQUALS, dtypes=half),
            scene("infinite", (9,), 0, False, None, INFINITE, dtypes=floating),
            scene("infinite-descending", (9,), 0, True, None, INFINITE),
            scene("whole-range", (5, 8), 1, False, True, whole_range, dtypes=integer),
            scene("whole-range-descending", (5, 8), 0, True, True, whole_range, dtypes=(Dtype.int8, Dtype.uint8)),
            scene("neighbours", (40,), 0, False, None, neighbours, dtypes=PRECISE),
            scene("all-equal", (4, 6), -1, False, None, equal_rows(6), dtypes=(Dtype.float32, Dtype.int64)),
            scene("expanded", (4, 6), 1, False, True, distinct, expanded),
            scene("long-of-few", (1031,), 0, True, True, REPEATED, dtypes=(Dtype.float32, Dtype.uint8)),
            scene("stable-long-rows", (3, 300), -1, False, True, REPEATED, dtypes=(Dtype.float32, *half)),
            scene("stable-power-of-two", (256, 2), 0, True, True, REPEATED),
            scene("very-long", (4099,), 0, True, True, whole(-999, 999)),
            scene("long-any-order", (1031,), 0, False, False, REPEATED, dtypes=(Dtype.float32, Dtype.bool)),
            scene("int32-positions", (4, 9), 1, True, True, REPEATED, index=Dtype.int32),
            scene("int32-positions-any-order", (4, 9), 1, True, None, REPEATED, index=Dtype.int32),
            *([scene("no-axis", (4, 3, 7), None, True, False)] if prototype.base == "diopiArgsort" else []),
        ],
    )


@cases_for("diopiSort", weak={"length-one": ONE_PLACE})
def sort(prototype: Prototype) -> Iterator[Case]:
    def attributes(dim: int, descending: bool, stable: bool | None) -> dict[str, Any]:
        return {"dim": dim, "descending": descending, "pStable": stable}

    yield from sorting(prototype, attributes)


@cases_for("diopiArgsort", weak={"length-one": ONE_PLACE})
def argsort(prototype: Prototype) -> Iterator[Case]:
    def attributes(dim: int | None, descending: bool, stable: bool | None) -> dict[str, Any]:
        return {"stable": bool(stable), "dim": dim, "descending": descending}

    yield from sorting(prototype, attributes)


@cases_for("diopiTopk", weak={"length-one": ONE_PLACE})
def topk(prototype: Prototype) -> Iterator[Case]:
    def scene(
        label: str,
        shape: tuple[int, ...],
        dim: int,
        k: int,
        largest: bool,
        in_order: bool,
        domain: Domain = distinct,
        layout: Layout = contiguous,
        **more: Any,
    ) -> Scene:
        arguments = {
            "input": data(*shape, domain=domain, layout=layout),
            "k": k,
            "dim": dim,
            "largest": largest,
            "sorted": in_order,
        }
        return Scene(label, arguments, **more)

    def part(shape: tuple[int, ...], dim: int) -> int:
        """How many are taken: about half."""
        return (shape[dim] + 1) // 2 if shape else 1

    layouts = cycle((contiguous, transposed, strided, contiguous))
    ways = cycle(((True, True), (False, True), (True, False), (False, False)))
    yield from play(
        prototype,
        [
            scene("rows", (4, 9), 1, 3, True, True, common=True, smoke=True),
            scene("smallest", (9, 4), 0, 4, False, True, common=True, smoke=True),
            scene("inner", (2, 6, 3), -2, 2, True, True, distinct, strided, result=transposed, common=True),
            scene("any-order", (4, 9), 1, 5, True, False, common=True),
            scene("any-of-equals", (4, 9), 1, 4, True, True, REPEATED, transposed, result=strided, common=True),
            scene("smallest-of-equals", (4, 9), 1, 4, False, False, REPEATED),
            *(scene(label, *one, part(*one), *next(ways), distinct, next(layouts)) for label, one in AXES.items()),
            scene("one", (4, 7), 1, 1, True, False),
            scene("few-of-many", (3, 1300), 1, 5, True, True, dtypes=(Dtype.float32, Dtype.int32)),
            scene("many-of-very-many", (4099,), 0, 1025, False, True),
            scene("negative", (4, 9), 1, 3, True, True, between(-9, -1)),
            scene("all", (4, 7), 1, 7, True, True),
            scene("all-smallest", (4, 7), 0, 4, False, True),
            scene("all-any-order", (4, 7), 1, 7, True, False),
            scene("none", (4, 7), 1, 0, True, True),
            scene("equals", (3, 26), 1, 9, True, True, EQUALS, dtypes=(Dtype.float32, Dtype.bfloat16)),
            scene("equals-smallest", (3, 26), 1, 9, False, True, EQUALS, dtypes=(Dtype.float32, Dtype.float16)),
            scene("infinite", (9,), 0, 4, True, True, INFINITE, dtypes=floating),
            scene("infinite-smallest", (9,), 0, 8, False, True, INFINITE),
            scene("whole-range", (5, 8), 1, 3, True, True, whole_range, dtypes=integer),
            scene("neighbours", (40,), 0, 17, False, True, neighbours, dtypes=PRECISE),
            scene("int32-positions", (4, 9), 1, 3, False, True, index=Dtype.int32),
            scene("int32-positions-any-order", (4, 9), 1, 3, True, False, index=Dtype.int32),
        ],
    )


@cases_for("diopiSortBackward")
def sort_backward(prototype: Prototype) -> Iterator[Case]:
    def scene(
        label: str,
        sizes: tuple[int, ...],
        dim: int,
        keepdim: bool,
        indices: TensorSpec,
        layout: Layout = contiguous,
        **more: Any,
    ) -> Scene:
        arguments = {
            "grad_output": data(*indices.shape, domain=anything, layout=layout),
            "dim": dim,
            "indices": indices,
            "sizes": sizes,
            "keepdim": keepdim,
        }
        return Scene(label, arguments, **more)

    yield from play(
        prototype,
        [
            scene("rows", (4, 6), 1, True, no_position_twice(4, 6, below=6, axis=1), common=True, smoke=True),
            scene("maxima", (4, 6), 0, False, literal([3, 0, 2, 2, 1, 0]), common=True, smoke=True),
            scene(
                "inner",
                (3, 5, 4),
                -2,
                True,
                no_position_twice(3, 5, 4, below=5, axis=1, layout=transposed),
                strided,
                result=transposed,
                common=True,
            ),
            scene("topk", (7, 3), 0, True, no_position_twice(4, 3, below=7), transposed, result=strided, common=True),
            scene("maxima-of-last", (3, 4), -1, False, literal([3, 0, 2]), strided),
            scene("maxima-of-inner", (2, 4, 3), 1, False, literal([[3, 0, 2], [1, 1, 0]], layout=transposed)),
            scene("maxima-of-first-of-4", (3, 2, 1, 2), -4, False, literal([[[2, 0]], [[1, 1]]])),
            scene("kept-maxima", (2, 4, 3), -2, True, literal([[[3, 0, 2]], [[1, 1, 0]]])),
            scene("maximum", (5,), 0, False, literal(3)),
            scene("cube", (4, 4, 4), -2, True, no_position_twice(4, 4, 4, below=4, axis=1)),
            scene("cube-first", (4, 4, 4), 0, True, no_position_twice(4, 4, 4, below=4)),
            scene("maxima-of-cube", (4, 4, 4), -2, False, literal([[3, 0, 2, 1], [1, 1, 0, 2]] * 2)),
            scene("vector", (6,), -1, True, no_position_twice(6, below=6, layout=strided)),
            scene("int32", (4, 6), 1, True, no_position_twice(4, 6, below=6, axis=1, dtype=Dtype.int32)),
            scene("number", (), 0, True, literal(0)),
            scene("maximum-of-number", (), -1, False, literal(0)),
            scene("nothing-taken", (4, 3), 1, True, no_position_twice(4, 0, below=3, axis=1)),
            scene("no-rows", (0, 3), 1, True, no_position_twice(0, 3, below=3, axis=1)),
            scene("long", (1031,), 0, True, no_position_twice(515, below=1031)),
        ],
    )


def few_slices(shape: tuple[int, ...], dim: int, different: int) -> Domain:
    """Small numbers such that only so many slices across axis `dim` differ, and some of those in one element only."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        others = int(np.prod(shape)) // shape[dim]
        kinds = np.tile(rng.integers(0, 2 if dtype is Dtype.bool else 4, others), (different, 1))
        places = rng.permutation(others)[: different - 1]
        kinds[np.arange(1, different), places] = 1 - kinds[np.arange(1, different), places]
        which = rng.permutation(np.resize(np.arange(different), shape[dim]))
        rest = [length for axis, length in enumerate(shape) if axis != dim % len(shape)]
        return np.asarray(np.moveaxis(kinds[which].reshape(shape[dim], *rest), 0, dim)).reshape(-1)

    return draw


ZEROS = choice([0.0, -0.0, 1.0, -0.0, -2.0, 0.0])


@cases_for("diopiUnique", weak={"all-different": "no value occurs twice", "all-equal": "equal elements have one place"})
def unique(prototype: Prototype) -> Iterator[Case]:
    def scene(
        label: str,
        shape: tuple[int, ...],
        dim: int | None = None,
        in_order: bool = True,
        counted: bool = True,
        mapped: bool = True,
        domain: Domain | None = None,
        layout: Layout = contiguous,
        **more: Any,
    ) -> Scene:
        domain = domain or (REPEATED if dim is None else few_slices(shape, dim, 3))
        arguments = {
            "input": data(*shape, domain=domain, layout=layout),
            "dim": dim,
            "sorted": in_order,
            "return_counts": counted,
        }
        absent = () if mapped else ("indices",)
        return Scene(label, arguments, absent=absent, **more)

    yield from play(
        prototype,
        [
            scene("matrix", (4, 5), common=True, smoke=True),
            scene("rows", (7, 3), 0, common=True, smoke=True),
            scene("inner", (2, 6, 3), -2, layout=strided, result=strided, common=True),
            scene("columns", (4, 6), 1, False, layout=transposed, result=transposed, common=True),
            scene("any-order", (4, 5), None, False, layout=transposed, result=transposed, common=True),
            scene("not-counted", (4, 5), None, True, False),
            scene("not-mapped", (4, 5), None, True, True, False),
            scene("values-alone", (4, 5), None, True, False, False),
            scene("slices-not-counted", (7, 3), 0, True, False),
            scene("slices-not-mapped", (7, 3), 0, True, True, False),
            scene("slices-alone", (7, 3), 0, False, False, False),
            scene("all-different", (9,), domain=distinct),
            scene("all-slices-different", (5, 4), 1, domain=distinct),
            scene("all-equal", (3, 4), domain=whole(2, 2)),
            scene("all-slices-equal", (3, 4), -1, domain=few_slices((3, 4), -1, 1)),
            scene("number", ()),
            scene("nothing", (0,)),
            scene("no-rows", (0, 3)),
            scene("no-slices", (0, 3), 0, domain=REPEATED),
            scene("first-of-4", (7, 2, 1, 2), -4),
            scene("last-of-5", (2, 1, 3, 2, 6), -1),
            scene("vector", (9,), 0, domain=REPEATED),
            scene("expanded", (4, 5), layout=expanded),
            scene("zeros", (12,), domain=ZEROS, dtypes=floating),
            scene("slices-with-zeros", (12, 1), 0, domain=ZEROS, dtypes=(Dtype.float32, Dtype.bfloat16)),
            scene("negative-zeros", (6,), domain=choice([-0.0, 1.0]), dtypes=(Dtype.float32, Dtype.float16)),
            scene("infinite", (18,), domain=choice([inf, -inf, 2.0, 0.5, -1.0]), dtypes=floating),
            scene(
                "not-a-number", (9,), domain=choice([nan, inf, -inf, inf, 2.0, -inf, 0.5, inf, 2.0]), dtypes=floating
            ),
            scene("whole-range", (4, 6), domain=choice_of_whole_range, dtypes=integer),
            scene("neighbours", (60,), domain=neighbours, dtypes=PRECISE),
            scene("long", (1031,), domain=whole(0, 99), dtypes=(Dtype.float32, Dtype.int32)),
            scene("many-different", (2, 1031), domain=whole(0, 1500)),
            scene("long-slices", (130, 5), 0, domain=few_slices((130, 5), 0, 6)),
            scene("wide-slices", (9, 140), 0, domain=few_slices((9, 140), 0, 4)),
            scene("cube", (4, 4, 4), 1, domain=few_slices((4, 4, 4), 1, 3)),
            scene("int32-positions", (4, 5), index=Dtype.int32),
            scene("int32-positions-of-slices", (7, 3), 0, index=Dtype.int32),
        ],
    )


def choice_of_whole_range(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Few values from the whole range, each several times."""
    return rng.choice(whole_range(rng, max(count // 3, 1), dtype), count)
