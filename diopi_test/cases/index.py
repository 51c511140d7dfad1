"""Functions that read, write or select elements by position, index or mask, and their gradients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import cycle
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto import parameters as kinds
from diopi_proto.dtypes import category, complexes, floating, half, integer
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.case import Case, TensorSpec, cases_for
from diopi_test.cases.scenes import ByDtype, Scene, data, literal, no_position_twice, play, positions
from diopi_test.cases.variants import WIDTHS
from diopi_test.domains import Domain, anything, between, choice, normal, whole, whole_range, with_zeros
from diopi_test.layouts import Layout, contiguous, expanded, strided, transposed

nan, inf = float("nan"), float("inf")

FEW = (Dtype.float32, Dtype.bfloat16, Dtype.int64, Dtype.complex64)
"""One element type of each kind, for scenes that matter in more than one."""

I32 = Dtype.int32


def pattern(*shape: int, every: int = 3, dtype: Dtype = Dtype.bool, layout: Layout = contiguous) -> TensorSpec:
    """A mask, true at one element of `every`; uint8 ones have other numbers than 1 too."""
    numbers = np.arange(int(np.prod(shape))).reshape(shape)
    return literal(np.where(numbers % every == 1, 1 + numbers % 2 * 2, 0), dtype, layout)


def constant(value: bool, *shape: int) -> TensorSpec:
    """A mask that is true everywhere, or nowhere."""
    return literal(np.full(shape, value), Dtype.bool)


# By lists of index tensors and masks

Indices = list[TensorSpec | None]

INDEXING: Mapping[str, tuple[tuple[int, ...], Indices]] = {
    "pair": ((4, 5, 2), [positions(3, 1, below=4, low=-4), positions(4, below=5, low=-5)]),
    "apart": ((4, 3, 5), [positions(3, below=4), None, positions(3, below=5, low=-5)]),
    "apart-broadcast": ((4, 3, 5), [positions(2, 1, below=4), None, positions(3, below=5)]),
    "inner-pair": ((2, 4, 5, 3), [None, positions(2, 3, below=4), positions(3, below=5, dtype=I32)]),
    "last-axis": ((2, 3, 4), [None, None, positions(5, below=4, low=-4, layout=strided)]),
    "three": ((3, 4, 2), [positions(9, below=3), positions(9, below=4, low=-4), positions(1, below=2)]),
    "matrix-of-indices": ((6, 2), [positions(4, 3, below=6, low=-6, layout=transposed)]),
    "number": ((4, 3), [positions(below=4, low=-4)]),
    "number-apart": ((2, 3, 4), [positions(below=2), None, positions(2, below=4)]),
    "all-numbers": ((2, 3), [literal(-1), literal(2)]),
    "cube": ((4, 4, 4), [positions(4, below=4), None, positions(4, below=4)]),
    "no-indices": ((4, 3), [positions(0, below=4)]),
    "no-columns": ((4, 0), [positions(2, below=4)]),
    "rank-5": ((2, 3, 2, 4, 2), [None, positions(4, below=3), None, positions(4, below=4)]),
    "long": ((257,), [positions(1031, below=257, low=-257)]),
    "mask": ((4, 5, 3), [pattern(4, 5)]),
    "mask-of-rows": ((7, 3), [pattern(7, every=2)]),
    "mask-of-all": ((3, 4), [pattern(3, 4, layout=transposed)]),
    "inner-mask": ((3, 5, 2), [None, pattern(5, every=2, layout=strided)]),
    "mask-uint8": ((4, 5), [pattern(4, 5, every=2, dtype=Dtype.uint8)]),
    "inner-mask-uint8": ((3, 4, 2), [None, pattern(4, every=2, dtype=Dtype.uint8)]),
    "mask-and-index": ((2, 3, 4), [literal([[1, 0, 0], [0, 1, 1]], Dtype.bool), positions(3, below=4, low=-4)]),
    "mask-index-apart": ((4, 3, 5), [literal([1, 0, 1, 1], Dtype.bool), None, literal([-2])]),
    "mask-true": ((3, 2), [constant(True, 3)]),
    "mask-false": ((3, 2), [constant(False, 3, 2)]),
}
"""Shapes of the input, and lists of index tensors and masks for it."""

ROWS: tuple[tuple[int, ...], Indices] = ((5, 4), [positions(6, below=5, low=-5)])
MIDDLE: tuple[tuple[int, ...], Indices] = ((3, 4, 5), [None, positions(2, 3, below=4, dtype=I32), None])


ONE_PLACE = "there is but one place"
ALL_TRUE = "the mask is true everywhere"
ALL_FALSE = "the mask is false everywhere"

SUMMANDS = whole(-3, 3)
"""Numbers a few dozen of which have an exact sum in every floating type, whatever their order."""

POSITIVE = between(0.7, 0.74)
"""Numbers that a running sum in half precision rounds to a half or to one, always the same way, then to nothing."""

INEXACT = (*floating, *complexes)

OFTEN = literal(np.resize([1, 1, 1, 0], 1100))
"""Two places of three, the one named 825 times, the other 275 times."""


def by_width(label: str) -> dict[str, Any]:
    """For a scene of many elements: an element type of each size."""
    return {"dtypes": WIDTHS} if label == "long" else {}


def selected(shape: tuple[int, ...], indices: Indices) -> tuple[int, ...]:
    """Shape of what a list of index tensors and masks selects."""

    def key(spec: TensorSpec | None) -> Any:
        if spec is None:
            return slice(None)
        if spec.dtype in (Dtype.bool, Dtype.uint8):
            assert spec.compute is not None
            return np.asarray(spec.compute({})) != 0
        return np.zeros(spec.shape, int)

    return tuple(np.empty(shape)[tuple(key(spec) for spec in indices)].shape)


@cases_for("diopiIndex")
def index(prototype: Prototype) -> Iterator[Case]:
    def scene(label: str, indexing: tuple[tuple[int, ...], Indices], layout: Layout = contiguous, **more: Any) -> Scene:
        shape, indices = indexing
        return Scene(label, {"input": data(*shape, layout=layout), "indices": indices}, **more)

    layouts = cycle((contiguous, transposed, strided))
    yield from play(
        prototype,
        [
            scene("rows", ROWS, common=True, smoke=True),
            scene("middle", MIDDLE, transposed, common=True),
            *(scene(label, one, next(layouts), **by_width(label)) for label, one in INDEXING.items()),
            *(scene(f"{label}-few", INDEXING[label], strided, dtypes=FEW[1:]) for label in ("mask", "apart")),
        ],
    )


@cases_for("diopiIndexBackward", weak={"mask-true": ALL_TRUE})
def index_backward(prototype: Prototype) -> Iterator[Case]:
    def scene(
        label: str,
        indexing: tuple[tuple[int, ...], Indices],
        layout: Layout = contiguous,
        domain: Domain | None = None,
        **more: Any,
    ) -> Scene:
        shape, indices = indexing
        arguments = {
            "zeros_like_input": data(*shape, domain=choice([0.0]), layout=layout),
            "indices": indices,
            "grad_output": data(*selected(shape, indices), domain=domain or normal(), layout=layout),
        }
        return Scene(label, arguments, result=layout, **more)

    layouts = cycle((contiguous, transposed, strided))
    yield from play(
        prototype,
        [
            scene("rows", ROWS, common=True, smoke=True),
            scene("middle", MIDDLE, transposed, common=True),
            scene("mask-common", INDEXING["mask"], strided, common=True),
            *(scene(label, one, next(layouts)) for label, one in INDEXING.items()),
            scene("exact", ((6, 5), [positions(67, below=6)]), domain=SUMMANDS, common=True, exact=True),
            scene("long-sum", ((3, 2), [OFTEN]), domain=POSITIVE, common=True),
        ],
    )


@cases_for("diopiIndexPut", weak={"mask-true": ALL_TRUE})
def index_put(prototype: Prototype) -> Iterator[Case]:
    def scene(
        label: str,
        shape: tuple[int, ...],
        indices: Indices,
        accumulate: bool,
        values: tuple[int, ...] | None = None,
        domain: Domain | None = None,
        layout: Layout = contiguous,
        **more: Any,
    ) -> Scene:
        domain = domain or (normal() if accumulate else anything)
        its_shape = selected(shape, indices) if values is None else values
        arguments = {
            "input": data(*shape, domain=domain, layout=layout),
            "values": data(*its_shape, domain=domain, layout=layout),
            "indices": indices,
            "accumulate": accumulate,
        }
        return Scene(label, arguments, result=layout, **more)

    once: Indices = [no_position_twice(4, below=6)]
    often: Indices = [positions(9, below=4, low=-4)]
    several: Indices = [positions(7, below=9, low=-9)]
    columns: Indices = [None, no_position_twice(3, below=5)]
    layouts = cycle((contiguous, transposed, strided))
    yield from play(
        prototype,
        [
            scene("put", (6, 3), once, False, common=True, smoke=True),
            scene("add", (4, 3), often, True, common=True, smoke=True),
            scene("put-strided", (4, 5), columns, False, layout=strided, dtypes=FEW),
            scene("put-int32", (4, 5), [None, no_position_twice(3, below=5, dtype=I32)], False, layout=transposed),
            scene("any-of-several", (9, 3), several, False, dtypes=(*FEW, Dtype.bool, Dtype.float64)),
            scene("wrap", (3, 2), [positions(9, below=3)], True, domain=whole_range, dtypes=(Dtype.int8, Dtype.uint8)),
            scene("exact", (6, 5), [positions(67, below=6)], True, domain=SUMMANDS, dtypes=INEXACT, exact=True),
            scene("long-sum", (3, 2), [OFTEN], True, domain=POSITIVE, dtypes=half),
            scene("add-neighbours", (3, 2), [positions(9, below=3)], True, domain=LARGE, dtypes=(Dtype.int64,)),
            *(
                scene(f"{label}-add", *one, True, layout=next(layouts), **by_width(label))
                for label, one in INDEXING.items()
            ),
            *(
                scene(f"{label}-put", *INDEXING[label], False, layout=next(layouts))
                for label in INDEXING
                if label.startswith("mask") or label.startswith("no-")
            ),
            scene("one-for-all", (4, 5), columns, False, values=()),
            scene("one-of-vector-for-all", (4, 5), [pattern(4, 5)], False, values=(1,)),
            scene("row-for-all", (6, 3), once, False, values=(3,)),
            scene("column-for-all", (6, 3), once, False, values=(4, 1)),
            scene("add-one-for-all", (4, 3), often, True, values=()),
            scene("add-row-for-mask", (4, 5, 3), [pattern(4, 5)], True, values=(3,)),
            scene("add-row-for-all", (4, 3), often, True, values=(3,)),
        ],
    )


LARGE = choice([2**62 + i for i in range(-20, 20)])
"""Different numbers of int64, equal as float64."""


# Along one axis

Selecting = tuple[tuple[int, ...], int, TensorSpec]
"""Shape of the input, axis, and the index."""

SLICES: Mapping[str, Selecting] = {
    "rows": ((5, 3), 0, positions(4, below=5)),
    "first-of-4": ((7, 2, 3, 2), -4, positions(4, below=7)),
    "cube": ((4, 4, 4), 1, positions(4, below=4)),
    "cube-first": ((4, 4, 4), 0, positions(4, below=4)),
    "third-of-5": ((2, 1, 5, 2, 3), 2, positions(3, below=5)),
    "last-of-3": ((2, 3, 4), 2, positions(7, below=4, layout=strided)),
    "reversed": ((6, 2), 0, literal(range(5, -1, -1))),
    "all-the-same": ((4, 3), 1, literal([2, 2, 2])),
    "number": ((4, 3), 0, literal(2)),
    "number-of-columns": ((4, 3), -1, literal(1, I32)),
    "of-number": ((), 0, literal([0])),
    "number-of-number": ((), -1, literal(0)),
    "no-indices": ((4, 3), 1, positions(0, below=3)),
    "no-rows": ((0, 3), 1, positions(2, below=3)),
    "vector": ((6,), 0, positions(4, below=6)),
    "length-one": ((3, 1, 2), 1, positions(3, below=1)),
    "wide": ((3, 1030), 0, positions(4, below=3)),
    "long": ((1031,), -1, positions(515, below=1031)),
}

COLUMNS: Selecting = ((4, 6), 1, positions(5, below=6))
INNER: Selecting = ((3, 4, 5), -2, positions(6, below=4, dtype=I32))


def along(selecting: Selecting) -> tuple[int, ...]:
    """Shape of the selected slices."""
    shape, dim, index = selecting
    if not shape:
        return ()
    return tuple(int(np.prod(index.shape)) if axis == dim % len(shape) else n for axis, n in enumerate(shape))


@cases_for("diopiIndexSelect", weak={"of-number|length-one": ONE_PLACE})
def index_select(prototype: Prototype) -> Iterator[Case]:
    def scene(label: str, selecting: Selecting, layout: Layout = contiguous, **more: Any) -> Scene:
        shape, dim, index = selecting
        return Scene(label, {"input": data(*shape, layout=layout), "dim": dim, "index": index}, **more)

    layouts = cycle((contiguous, transposed, strided))
    yield from play(
        prototype,
        [
            scene("columns", COLUMNS, common=True, smoke=True),
            scene("inner", INNER, strided, result=transposed, common=True),
            *(
                scene(label, one, next(layouts), result=next(layouts), **by_width(label))
                for label, one in SLICES.items()
            ),
            scene("expanded", ((4, 3), 1, positions(5, below=3)), expanded),
        ],
    )


@cases_for("diopiIndexSelectBackward", weak={"of-number|length-one": ONE_PLACE})
def index_select_backward(prototype: Prototype) -> Iterator[Case]:
    def scene(
        label: str, selecting: Selecting, layout: Layout = contiguous, domain: Domain | None = None, **more: Any
    ) -> Scene:
        shape, dim, index = selecting
        grad = data(*along(selecting), domain=domain or normal(), layout=layout)
        return Scene(label, {"grad": grad, "input_sizes": shape, "dim": dim, "index": index}, result=layout, **more)

    layouts = cycle((contiguous, transposed, strided))
    yield from play(
        prototype,
        [
            scene("columns", COLUMNS, common=True, smoke=True),
            scene("inner", INNER, strided, common=True),
            *(scene(label, one, next(layouts)) for label, one in SLICES.items()),
            scene("exact", ((4, 6, 5), 1, positions(67, below=6)), domain=SUMMANDS, dtypes=INEXACT, exact=True),
            scene("long-sum", ((2, 3), 1, OFTEN), domain=POSITIVE, dtypes=half),
        ],
    )


SINGLE: Mapping[str, tuple[tuple[int, ...], int, int]] = {
    "first": ((4, 3), 0, 0),
    "last": ((4, 3), 0, 3),
    "minus-one": ((3, 5), 1, -1),
    "minus-all": ((3, 5), 1, -5),
    "middle": ((2, 4, 3), 1, 2),
    "first-of-4": ((3, 2, 4, 2), -4, -2),
    "last-of-5": ((2, 1, 3, 2, 4), -1, 1),
    "cube": ((4, 4, 4), 1, 2),
    "cube-first": ((4, 4, 4), 0, 2),
    "of-vector": ((6,), 0, 4),
    "length-one": ((3, 1, 2), 1, 0),
    "no-elements": ((0, 3), 1, 2),
    "long": ((2, 1031), 0, 1),
}
"""Shape of the input, axis, and the index of one slice."""

COLUMN = ((9, 3), 1, 1)
INNER_SLICE = ((3, 4, 5), -2, -3)


def without(shape: tuple[int, ...], dim: int) -> tuple[int, ...]:
    """The shape without an axis."""
    axis = dim % len(shape)
    return shape[:axis] + shape[axis + 1 :]


RANGES: Mapping[str, tuple[tuple[int, ...], int, int, int, int]] = {
    "rows": ((5, 3), 0, 1, 4, 1),
    "every-second": ((7, 2), 0, 0, 7, 2),
    "every-third": ((3, 8), 1, 1, 8, 3),
    "from-the-end": ((3, 6), 1, -4, -1, 1),
    "from-the-end-every-second": ((8, 2), -2, -7, -1, 2),
    "clamped": ((4, 3), 0, -100, 100, 1),
    "end-beyond": ((4, 3), 1, 1, 2**63 - 1, 1),
    "start-beyond": ((4, 3), 1, 5, 9, 1),
    "end-before-start": ((4, 3), 0, 3, 1, 1),
    "wide-step": ((4, 3), 0, 1, 4, 9),
    "one": ((4, 3), 0, 2, 3, 1),
    "first-of-4": ((5, 2, 3, 2), -4, 1, 5, 2),
    "third-of-5": ((2, 1, 7, 2, 3), 2, 1, 6, 2),
    "vector": ((9,), 0, 2, 8, 2),
    "no-elements": ((0, 3), 1, 0, 2, 1),
    "of-nothing": ((3, 0), 1, 0, 5, 1),
    "long": ((1031,), 0, 3, 1030, 2),
}
"""Shape of the input, axis, start, end and step."""

SOME_COLUMNS = ((4, 7), 1, 1, 6, 2)
INNER_RANGE = ((3, 6, 2), -2, -5, 5, 2)


def range_shape(shape: tuple[int, ...], dim: int, start: int, end: int, step: int) -> tuple[int, ...]:
    """Shape of a range of slices."""
    axis = dim % len(shape)
    return (*shape[:axis], len(range(shape[axis])[start:end:step]), *shape[axis + 1 :])


def reading(
    prototype: Prototype, names: Sequence[str], first: Any, second: Any, others: Mapping[str, Any]
) -> Iterator[Case]:
    """Cases of a function that reads a part of `input`, which the numbers of these names select."""

    def scene(label: str, numbers: Any, layout: Layout = contiguous, **more: Any) -> Scene:
        shape, *rest = numbers
        return Scene(label, {"input": data(*shape, layout=layout), **dict(zip(names, rest, strict=True))}, **more)

    layouts = cycle((contiguous, transposed, strided, contiguous))
    yield from play(
        prototype,
        [
            scene("columns", first, common=True, smoke=True),
            scene("inner", second, transposed, result=strided, common=True),
            *(
                scene(label, one, next(layouts), result=next(layouts), **by_width(label))
                for label, one in others.items()
            ),
        ],
    )


def placing(
    prototype: Prototype, names: Sequence[str], part: Any, first: Any, second: Any, others: Mapping[str, Any]
) -> Iterator[Case]:
    """Cases of a function that writes `src`, or the gradient, to the part that the numbers of these names select."""
    is_gradient = "grad_output" in [p.name for p in prototype.arguments]

    def scene(label: str, numbers: Any, layout: Layout = contiguous, source: Any = data, **more: Any) -> Scene:
        shape, *rest = numbers
        small = source(*part(*numbers), layout=layout)
        whole_ = {"input_sizes": shape} if is_gradient else {"input": data(*shape, layout=layout)}
        return Scene(
            label, {"grad_output": small, "src": small, **whole_, **dict(zip(names, rest, strict=True))}, **more
        )

    def other(dtype: Dtype, domain: Domain) -> Any:
        return lambda *shape, layout: TensorSpec(shape, dtype, domain, layout)

    layouts = cycle((contiguous, transposed, strided, contiguous))
    converted = [
        scene("from-float64", first, source=other(Dtype.float64, normal()), dtypes=(Dtype.float32, Dtype.float16)),
        scene("from-float32", first, source=other(Dtype.float32, between(-9, 9)), dtypes=(Dtype.int32, Dtype.int8)),
        scene("from-int64", first, source=other(Dtype.int64, whole(-99, 99)), dtypes=(Dtype.float32, Dtype.complex64)),
        scene(
            "from-float-to-bool", first, source=other(Dtype.float32, choice([0.0, 0.25, -3.0])), dtypes=(Dtype.bool,)
        ),
    ]
    yield from play(
        prototype,
        [
            scene("columns", first, common=True, smoke=True),
            scene("inner", second, transposed, result=strided, common=True),
            *(scene(label, one, next(layouts), result=next(layouts)) for label, one in others.items()),
            *([] if is_gradient else converted),
        ],
    )


@cases_for("diopiSelect")
def select(prototype: Prototype) -> Iterator[Case]:
    yield from reading(prototype, ("dim", "index"), COLUMN, INNER_SLICE, SINGLE)


@cases_for("diopiSelectBackward", "diopiSelectScatter", weak={"length-one": "the slice is all there is"})
def select_placing(prototype: Prototype) -> Iterator[Case]:
    def part(shape: tuple[int, ...], dim: int, index: int) -> tuple[int, ...]:
        return without(shape, dim)

    yield from placing(prototype, ("dim", "index"), part, COLUMN, INNER_SLICE, SINGLE)


@cases_for("diopiSlice")
def slice_(prototype: Prototype) -> Iterator[Case]:
    yield from reading(prototype, ("dim", "start", "end", "step"), SOME_COLUMNS, INNER_RANGE, RANGES)


@cases_for("diopiSliceBackward", "diopiSliceScatter", weak={"clamped": "the range is the whole axis"})
def slice_placing(prototype: Prototype) -> Iterator[Case]:
    names = ("dim", "start", "end", "step")
    yield from placing(prototype, names, range_shape, SOME_COLUMNS, INNER_RANGE, RANGES)


# One value for many places


def _takes_number(prototype: Prototype) -> bool:
    """Whether `value` is a number in this form, not a 0-d tensor."""
    return bool(prototype.parameter("value").annotation is kinds.Scalar)


def usual_value(prototype: Prototype) -> ByDtype:
    """A value of the element type under test."""
    if _takes_number(prototype):
        return ByDtype(lambda dtype: (True, 77, -2.625, -2.625)[category(dtype)])
    return ByDtype(lambda dtype: literal((True, 77, -2.625, -2.625 + 0.5j)[category(dtype)], dtype))


CONVERTED: Mapping[str, tuple[Dtype, Any, Dtype]] = {
    "plain-false": (Dtype.bool, False, Dtype.bool),
    "zero-to-bool": (Dtype.bool, 0.0, Dtype.float32),
    "int-to-float": (Dtype.float32, 3, Dtype.int64),
    "int-to-half": (Dtype.float16, -7, Dtype.int32),
    "int-to-complex": (Dtype.complex64, 3, Dtype.int64),
    "float-to-int": (Dtype.int32, -2.75, Dtype.float32),
    "float-to-byte": (Dtype.uint8, 7.5, Dtype.float64),
    "float-to-bool": (Dtype.bool, 0.25, Dtype.float32),
    "int-to-bool": (Dtype.bool, 2, Dtype.int64),
    "double-to-float": (Dtype.float32, 0.1, Dtype.float64),
    "double-to-half": (Dtype.float16, 0.1, Dtype.float64),
    "double-to-double": (Dtype.float64, 0.1, Dtype.float64),
    "nan": (Dtype.float32, nan, Dtype.float32),
    "infinity": (Dtype.bfloat16, -inf, Dtype.bfloat16),
    "negative-zero": (Dtype.float32, -0.0, Dtype.float32),
    "large": (Dtype.int64, 2**53 + 1, Dtype.int64),
    "least": (Dtype.int64, -(2**63), Dtype.int64),
}
"""The element type under test, and a value of some type that must become one of it."""


def filling(prototype: Prototype, places: Mapping[str, Any]) -> Iterator[Scene]:
    """Scenes in which `input`, of shape (4, 5), is filled with values of other types, at the same places."""
    for label, (dtype, number, of) in CONVERTED.items():
        value = number if _takes_number(prototype) else literal(number, of)
        is_basic = label == "plain-false"
        yield Scene(label, {"input": data(4, 5), **places, "value": value}, dtypes=(dtype,), smoke=is_basic)


@cases_for("diopiIndexFill", weak={"of-number|length-one": "the only place is filled"})
def index_fill(prototype: Prototype) -> Iterator[Case]:
    def scene(label: str, selecting: Selecting, layout: Layout = contiguous, **more: Any) -> Scene:
        shape, dim, index = selecting
        arguments = {"input": data(*shape, layout=layout), "dim": dim, "index": index, "value": usual_value(prototype)}
        return Scene(label, arguments, **more)

    layouts = cycle((contiguous, transposed, strided, contiguous))
    columns = ((4, 6), 1, literal([1, -1, 1]))
    yield from play(
        prototype,
        [
            scene("columns", columns, common=True, smoke=True),
            scene("inner", ((3, 4, 5), -2, literal([0, -2], I32)), strided, result=transposed, common=True),
            *(
                scene(label, one, next(layouts), result=next(layouts))
                for label, one in SLICES.items()
                if label not in ("long", "reversed")
            ),
            scene("negative", ((5, 2), 0, literal([-5, -2]))),
            scene("long", ((1031,), 0, positions(300, below=1031, low=-1031)), dtypes=WIDTHS),
            *filling(prototype, {"dim": 1, "index": literal([0, 3])}),
        ],
    )


# By masks

Masking = tuple[tuple[int, ...], TensorSpec]
"""Shape of the input, and the mask."""

MASKS: Mapping[str, Masking] = {
    "row": ((4, 6), pattern(6, every=2)),
    "column": ((4, 6), pattern(4, 1, every=2)),
    "number": ((3, 4), constant(True)),
    "of-number": ((), constant(True)),
    "of-number-false": ((), constant(False)),
    "false": ((3, 4), constant(False, 3, 4)),
    "true": ((3, 4), constant(True, 3, 4)),
    "empty": ((0, 3), constant(True, 0, 3)),
    "empty-by-row": ((0, 3), constant(True, 3)),
    "strided-mask": ((5, 3), pattern(5, 3, layout=strided)),
    "transposed-mask": ((5, 3), pattern(5, 3, layout=transposed)),
    "inner": ((3, 4, 2), pattern(4, 1, every=2)),
    "rank-5": ((2, 1, 3, 2, 2), pattern(2, 1, 3, 2, 2)),
    "long": ((1031,), pattern(1031)),
    "irregular": ((4099,), literal(np.arange(4099) ** 2 % 101 < 40, Dtype.bool)),
}
"""Masks that fit an input as it is."""

SPREADING: Mapping[str, Masking] = {
    "input-row": ((3,), pattern(4, 3, every=2)),
    "input-column": ((4, 1), pattern(4, 3, every=2)),
    "input-number": ((), pattern(2, 3, every=2)),
    "outer": ((4, 1), pattern(1, 5, every=2)),
    "to-no-rows": ((3,), constant(True, 0, 3)),
}
"""Masks along which the input is broadcast."""

UNMASKED = {"(of-)?number-false|false": ALL_FALSE, "(of-)?number|true": ALL_TRUE}

PLAIN: Masking = ((4, 6), pattern(4, 6))
CUBE: Masking = ((3, 4, 2), pattern(3, 4, 2, every=2, layout=strided))


def masked(masking: Masking) -> tuple[tuple[int, ...], int]:
    """The common shape of input and mask, and the number of true elements in it."""
    shape, mask = masking
    assert mask.compute is not None
    common = np.broadcast_shapes(shape, mask.shape)
    return common, int(np.broadcast_to(np.asarray(mask.compute({})) != 0, common).sum())


def masking_scenes(make: Any) -> list[Scene]:
    """A scene for every mask; `make(label, masking, layout, **more)` gives it."""
    layouts = cycle((contiguous, transposed, strided, contiguous))
    return [
        make("plain", PLAIN, contiguous, common=True, smoke=True),
        make("cube", CUBE, transposed, result=strided, common=True),
        *(make(label, one, next(layouts), result=next(layouts), **by_width(label)) for label, one in MASKS.items()),
        *(make(label, one, next(layouts), result=next(layouts), inplace=False) for label, one in SPREADING.items()),
    ]


@cases_for("diopiMaskedFill", weak=UNMASKED)
def masked_fill(prototype: Prototype) -> Iterator[Case]:
    def scene(label: str, masking: Masking, layout: Layout, **more: Any) -> Scene:
        shape, mask = masking
        return Scene(
            label, {"input": data(*shape, layout=layout), "mask": mask, "value": usual_value(prototype)}, **more
        )

    yield from play(prototype, [*masking_scenes(scene), *filling(prototype, {"mask": pattern(4, 5, every=2)})])


@cases_for("diopiMaskedScatter", weak=UNMASKED)
def masked_scatter(prototype: Prototype) -> Iterator[Case]:
    def scene(
        label: str, masking: Masking, layout: Layout, source: tuple[int, ...] | None = None, **more: Any
    ) -> Scene:
        shape, mask = masking
        from_ = data(*((masked(masking)[1] + 2,) if source is None else source), layout=layout)
        return Scene(label, {"input": data(*shape, layout=layout), "mask": mask, "source": from_}, **more)

    yield from play(
        prototype,
        [
            *masking_scenes(scene),
            scene("just-enough", PLAIN, contiguous, (8,), dtypes=FEW),
            scene("from-transposed-matrix", PLAIN, transposed, (4, 3), dtypes=FEW),
            scene("from-strided-cube", PLAIN, strided, (2, 3, 2)),
            scene("from-number", ((2, 3), literal([[0, 0, 0], [0, 1, 0]], Dtype.bool)), contiguous, ()),
            scene("from-nothing", ((2, 3), constant(False, 2, 3)), contiguous, (0,)),
        ],
    )


@cases_for("diopiMaskedSelect", weak={"input-number": "all elements are the one of the input"})
def masked_select(prototype: Prototype) -> Iterator[Case]:
    def scene(label: str, masking: Masking, layout: Layout, **more: Any) -> Scene:
        shape, mask = masking
        return Scene(label, {"input": data(*shape, layout=layout), "mask": mask}, **more)

    yield from play(prototype, masking_scenes(scene))


ADDED_UP = {
    **UNMASKED,
    "input-number": "whatever is selected is added up",
    "outer": "as much is added up in every row, wherever the mask is true",
}


@cases_for("diopiMaskedSelectBackward", weak=ADDED_UP)
def masked_select_backward(prototype: Prototype) -> Iterator[Case]:
    def scene(label: str, masking: Masking, layout: Layout, domain: Domain | None = None, **more: Any) -> Scene:
        shape, mask = masking
        arguments = {
            "grad_output": data(masked(masking)[1], domain=domain or normal(), layout=layout),
            "input": data(*shape, domain=normal(), layout=layout),
            "mask": mask,
        }
        return Scene(label, arguments, **more)

    summed = {label: SPREADING[label] for label in ("input-row", "outer")}
    more = [scene(f"{label}-all", one, contiguous, common=True) for label, one in summed.items()]
    exact = ((3, 1, 5), pattern(3, 67, 5, every=2))
    long_sum = ((3,), literal(np.arange(1100)[:, np.newaxis] % 4 < [4, 3, 1], Dtype.bool))
    sums = [
        scene("exact", exact, contiguous, SUMMANDS, dtypes=INEXACT, exact=True),
        scene("long-sum", long_sum, contiguous, POSITIVE, dtypes=half),
    ]
    yield from play(prototype, [*masking_scenes(scene), *more, *sums])


@cases_for("diopiWhere", weak={"number-condition-false": ALL_FALSE, "number-condition|all-true": ALL_TRUE})
def where(prototype: Prototype) -> Iterator[Case]:
    def scene(
        label: str,
        condition: TensorSpec,
        input: tuple[int, ...],
        other: tuple[int, ...],
        layout: Layout = contiguous,
        **more: Any,
    ) -> Scene:
        arguments = {"condition": condition, "input": data(*input, layout=layout), "other": data(*other, layout=layout)}
        return Scene(label, arguments, **more)

    def mixed(one: Dtype, two: Dtype) -> Scene:
        arguments = {
            "condition": pattern(4, 5, every=2),
            "input": TensorSpec((4, 5), one, normal()),
            "other": TensorSpec((4, 5), two, normal()),
        }
        return Scene(f"and-{two.name}", arguments, dtypes=(one,))

    byte = pattern(4, 5, every=2, dtype=Dtype.uint8)
    yield from play(
        prototype,
        [
            scene("matrix", pattern(4, 5, every=2), (4, 5), (4, 5), common=True, smoke=True),
            scene("three-ways", pattern(3, 1, every=2), (4, 1, 1), (2,), transposed, result=strided, common=True),
            scene("uint8", byte, (4, 5), (4, 5), dtypes=FEW),
            scene("uint8-strided", replace(byte, layout=strided), (4, 5), (4, 5), strided, result=transposed),
            scene("condition-row", pattern(5, every=2), (4, 5), (4, 5), strided),
            scene("number-input", pattern(4, 5, every=2), (), (4, 5)),
            scene("number-other", pattern(4, 5, every=2), (4, 5), ()),
            scene("number-condition", constant(True), (3, 4), (3, 4)),
            scene("number-condition-false", constant(False), (3, 4), (3, 4)),
            scene("all-numbers", constant(False), (), ()),
            scene("all-true", constant(True, 3, 4), (3, 4), (4,)),
            scene("empty", constant(True, 0, 3), (0, 3), (3,)),
            scene("transposed", pattern(6, 4, layout=transposed), (6, 4), (6, 4), transposed, result=transposed),
            scene("expanded", pattern(4, 5, every=2), (4, 5), (4, 5), expanded),
            scene("rank-5", pattern(2, 1, 3, 1, 2, every=2), (2, 1, 1, 2, 2), (3, 2, 2)),
            scene("long", pattern(1031, every=2), (1031,), (1031,), dtypes=WIDTHS),
            *(mixed(one, two) for one, two in MIXED),
        ],
    )


MIXED = (
    (Dtype.float32, Dtype.int32),
    (Dtype.int64, Dtype.float16),
    (Dtype.bool, Dtype.int64),
    (Dtype.bool, Dtype.float32),
    (Dtype.float16, Dtype.float32),
    (Dtype.float16, Dtype.bfloat16),
    (Dtype.float64, Dtype.float32),
    (Dtype.uint8, Dtype.int8),
    (Dtype.uint8, Dtype.int16),
    (Dtype.int32, Dtype.int64),
    (Dtype.float32, Dtype.complex64),
    (Dtype.complex64, Dtype.float64),
    (Dtype.complex128, Dtype.complex64),
)


# Element by element

Gathering = tuple[tuple[int, ...], int, TensorSpec]
"""Shape of the input, axis, and the index."""

GATHERS: Mapping[str, Gathering] = {
    "rows": ((4, 3), 0, positions(4, 3, below=4)),
    "longer": ((3, 4), 1, positions(3, 9, below=4)),
    "shorter": ((3, 4), 1, positions(3, 2, below=4)),
    "smaller": ((4, 5, 3), 1, positions(2, 3, 2, below=5)),
    "first-axis": ((4, 3, 2), 0, positions(6, 2, 1, below=4, layout=transposed)),
    "last-of-4": ((2, 3, 2, 5), -1, positions(2, 2, 2, 3, below=5)),
    "first-of-4": ((5, 2, 3, 2), -4, positions(4, 2, 3, 2, below=5, layout=strided)),
    "rank-5": ((2, 1, 3, 2, 3), 2, positions(2, 1, 5, 2, 3, below=3)),
    "cube": ((4, 4, 4), 1, positions(4, 4, 4, below=4)),
    "cube-first": ((4, 4, 4), -3, positions(4, 4, 4, below=4)),
    "vector": ((6,), 0, positions(9, below=6)),
    "of-number": ((), 0, literal([0])),
    "number-of-number": ((), -1, literal(0)),
    "number-in-vector": ((1,), 0, literal(0)),
    "no-indices": ((4, 3), 1, positions(4, 0, below=3)),
    "no-indices-of-other-rank": ((4, 3), 1, positions(0, below=3)),
    "no-elements": ((0, 3), 1, positions(0, 2, below=3)),
    "int32": ((3, 4), -2, positions(5, 4, below=3, dtype=I32)),
    "wide": ((3, 1030), 0, positions(4, 1027, below=3)),
    "long": ((8, 130), 1, positions(8, 130, below=130)),
}

GATHER_COLUMNS: Gathering = ((4, 6), 1, positions(4, 5, below=6))
GATHER_INNER: Gathering = ((3, 4, 5), -2, positions(3, 6, 4, below=4, dtype=I32, layout=transposed))


GATHERED_AT_ONE_PLACE = {"of-number|number-in-vector": ONE_PLACE}


@cases_for("diopiGather", weak=GATHERED_AT_ONE_PLACE)
def gather(prototype: Prototype) -> Iterator[Case]:
    def scene(label: str, gathering: Gathering, layout: Layout = contiguous, **more: Any) -> Scene:
        shape, dim, index = gathering
        return Scene(label, {"input": data(*shape, layout=layout), "dim": dim, "index": index}, **more)

    layouts = cycle((contiguous, transposed, strided, contiguous))
    yield from play(
        prototype,
        [
            scene("columns", GATHER_COLUMNS, common=True, smoke=True),
            scene("inner", GATHER_INNER, transposed, result=strided, common=True),
            *(
                scene(label, one, next(layouts), result=next(layouts), **by_width(label))
                for label, one in GATHERS.items()
            ),
        ],
    )


@cases_for("diopiGatherBackward", weak=GATHERED_AT_ONE_PLACE)
def gather_backward(prototype: Prototype) -> Iterator[Case]:
    def scene(
        label: str, gathering: Gathering, layout: Layout = contiguous, domain: Domain | None = None, **more: Any
    ) -> Scene:
        shape, dim, index = gathering
        arguments = {
            "grad_output": data(*index.shape, domain=domain or normal(), layout=layout),
            "input": data(*shape, layout=layout),
            "dim": dim,
            "index": index,
        }
        return Scene(label, arguments, **more)

    often: Gathering = ((3, 2), 1, positions(3, 70, below=2))
    layouts = cycle((contiguous, transposed, strided, contiguous))
    yield from play(
        prototype,
        [
            scene("columns", GATHER_COLUMNS, common=True, smoke=True),
            scene("inner", GATHER_INNER, transposed, result=strided, common=True),
            *(scene(label, one, next(layouts), result=next(layouts)) for label, one in GATHERS.items()),
            scene("often", often, dtypes=floating),
            scene("exact", ((3, 6), 1, positions(3, 67, below=6)), domain=SUMMANDS, dtypes=INEXACT, exact=True),
            scene("long-sum", ((3,), 0, OFTEN), domain=POSITIVE, dtypes=half),
            scene("wrap", often, domain=whole_range, dtypes=integer),
            scene("neighbours", often, domain=LARGE, dtypes=(Dtype.int64,)),
        ],
    )


SCATTERS: Mapping[str, tuple[Gathering, tuple[int, ...]]] = {
    "rows": (((5, 3), 0, no_position_twice(4, 3, below=5)), (4, 3)),
    "larger-source": (((5, 4), 0, no_position_twice(2, 3, below=5)), (4, 6)),
    "smaller": (((4, 5, 3), 1, no_position_twice(2, 3, 2, below=5, axis=1, layout=transposed)), (2, 3, 2)),
    "last-of-4": (((2, 3, 2, 5), -1, no_position_twice(2, 2, 2, 3, below=5, axis=3)), (2, 3, 2, 4)),
    "rank-5": (((2, 1, 5, 2, 3), 2, no_position_twice(2, 1, 3, 2, 3, below=5, axis=2)), (2, 1, 3, 2, 3)),
    "cube": (((4, 4, 4), 1, no_position_twice(4, 4, 4, below=4, axis=1)), (4, 4, 4)),
    "cube-first": (((4, 4, 4), 0, no_position_twice(3, 4, 4, below=4)), (4, 4, 4)),
    "vector": (((6,), 0, no_position_twice(4, below=6, layout=strided)), (4,)),
    "of-number": (((), 0, literal([0])), (1,)),
    "number-of-number": (((), -1, literal(0)), ()),
    "number-of-vector": (((1,), 0, literal(0)), ()),
    "no-indices": (((4, 3), 1, positions(4, 0, below=3)), (4, 2)),
    "no-indices-of-other-rank": (((4, 3), 1, positions(0, below=3)), (2, 3)),
    "no-elements": (((0, 3), 1, positions(0, 2, below=3)), (0, 2)),
    "int32": (((3, 4), -2, no_position_twice(2, 4, below=3, dtype=I32)), (2, 4)),
    "all": (((2, 7), 1, no_position_twice(2, 7, below=7, axis=1)), (2, 7)),
    "long": (((4, 260), 1, no_position_twice(4, 200, below=260, axis=1)), (4, 200)),
}
"""Shape of the input, axis, index, and shape of src; no place is named twice."""

SCATTER_COLUMNS = (((4, 6), 1, no_position_twice(4, 3, below=6, axis=1)), (4, 5))
REPEATED = (((3, 9), 1, positions(3, 7, below=9)), (3, 8))
SUMMED = (((3, 17), 1, positions(3, 67, below=17)), (4, 70))
LONG_SUM = (((3,), 0, OFTEN), (1100,))
REPEATED_INNER = (((2, 3, 4), -2, positions(2, 5, 3, below=3, dtype=I32, layout=strided)), (2, 6, 3))


SCATTERED_EVERYWHERE = {"of-number|number-of-vector": ONE_PLACE, "all|cube$": "every place is written"}


@cases_for("diopiScatter", "diopiScatterScalar", weak=SCATTERED_EVERYWHERE)
def scatter(prototype: Prototype) -> Iterator[Case]:
    def scene(
        label: str,
        scattering: tuple[Gathering, tuple[int, ...]],
        reduce: str | None,
        layout: Layout = contiguous,
        domain: Domain = anything,
        **more: Any,
    ) -> Scene:
        (shape, dim, index), src = scattering
        number = -2.0 if more.get("exact") else -1.375
        arguments = {
            "input": data(*shape, domain=domain, layout=layout),
            "dim": dim,
            "src": data(*src, domain=domain, layout=layout),
            "value": ByDtype(lambda dtype: (reduce != "multiply", 3, number, number)[category(dtype)]),
            "index": index,
            "reduce": reduce,
        }
        return Scene(label, arguments, **more)

    layouts = cycle((contiguous, transposed, strided, contiguous))
    writes = cycle(("", None))
    reductions = cycle(("add", "multiply"))
    yield from play(
        prototype,
        [
            scene("columns", SCATTER_COLUMNS, "", common=True, smoke=True),
            scene("add", REPEATED, "add", domain=normal(), common=True, smoke=True),
            scene("multiply", REPEATED, "multiply", domain=normal(), common=True, smoke=True),
            scene("null", SCATTER_COLUMNS, None, transposed, result=strided, dtypes=FEW),
            scene("any-of-several", REPEATED, "", dtypes=(*FEW, Dtype.bool, Dtype.float64)),
            scene("add-inner", REPEATED_INNER, "add", strided, normal(), result=transposed, dtypes=FEW),
            scene("multiply-inner", REPEATED_INNER, "multiply", transposed, normal(), dtypes=FEW),
            scene("add-exact", SUMMED, "add", domain=SUMMANDS, dtypes=INEXACT, exact=True),
            scene("multiply-exact", SUMMED, "multiply", domain=choice([1, -1, 2, 0.5]), dtypes=INEXACT, exact=True),
            scene("add-long-sum", LONG_SUM, "add", domain=POSITIVE, dtypes=half),
            scene("add-wrap", REPEATED, "add", domain=whole_range, dtypes=(Dtype.uint8, Dtype.int64)),
            scene("multiply-wrap", REPEATED, "multiply", domain=whole_range, dtypes=(Dtype.int16, Dtype.int64)),
            *(
                scene(label, one, next(writes), next(layouts), result=next(layouts), **by_width(label))
                for label, one in SCATTERS.items()
            ),
            *(
                scene(f"{label}-reduced", SCATTERS[label], next(reductions), domain=normal())
                for label in ("of-number", "number-of-number", "no-indices-of-other-rank", "larger-source", "long")
            ),
            *(_scalars(scene) if prototype.base == "diopiScatterScalar" else []),
        ],
    )


def _scalars(scene: Any) -> Iterator[Scene]:
    """The numbers of `CONVERTED`, written and added."""
    for label, (dtype, number, _) in CONVERTED.items():
        usual = scene(label, SCATTER_COLUMNS, "", dtypes=(dtype,))
        yield replace(usual, arguments={**usual.arguments, "value": number})


# Tables


def table_indices(*shape: int, rows: int = 5, dtype: Dtype = Dtype.int64, layout: Layout = contiguous) -> TensorSpec:
    """Numbers of rows, the first and the last one among them if there are two."""
    return TensorSpec(shape, dtype, choice(list(range(rows))), layout)


TABLES: Mapping[str, tuple[tuple[int, ...], TensorSpec]] = {
    "matrix-of-indices": ((5, 3), table_indices(2, 4, layout=transposed)),
    "strided-indices": ((5, 3), table_indices(2, 3, layout=strided)),
    "number": ((5, 3), literal(4)),
    "no-indices": ((5, 3), table_indices(0)),
    "narrow": ((5, 1), table_indices(7)),
    "one-row": ((1, 4), table_indices(3, rows=1)),
    "cube-of-indices": ((6, 2), table_indices(2, 3, 2, rows=6, dtype=I32)),
    "no-columns": ((5, 0), table_indices(3)),
    "wide": ((5, 1030), table_indices(4)),
    "long": ((40, 9), table_indices(115, rows=40)),
}
"""Shape of the table, and the indices."""

LOOKUP = ((5, 4), table_indices(7))
LOOKUP_INT32 = ((5, 3), table_indices(2, 3, dtype=I32, layout=transposed))


ONE_ROW = {"one-row": "there is but one row"}


@cases_for("diopiEmbedding", weak=ONE_ROW)
def embedding(prototype: Prototype) -> Iterator[Case]:
    def scene(
        label: str,
        table: tuple[tuple[int, ...], TensorSpec],
        padding: int = -1,
        scale: bool = False,
        sparse: bool = False,
        layout: Layout = contiguous,
        **more: Any,
    ) -> Scene:
        shape, indices = table
        arguments = {
            "weight": data(*shape, layout=layout),
            "indices": indices,
            "padding_idx": padding,
            "scale_grad_byfreq": scale,
            "sparse": sparse,
        }
        return Scene(label, arguments, **more)

    layouts = cycle((contiguous, transposed, strided, contiguous))
    yield from play(
        prototype,
        [
            scene("vector", LOOKUP, common=True, smoke=True),
            scene("int32", LOOKUP_INT32, 2, layout=transposed, result=strided, common=True),
            *(
                scene(label, one, layout=next(layouts), result=next(layouts), **by_width(label))
                for label, one in TABLES.items()
            ),
            scene("padding", LOOKUP, 0),
            scene("scaled", LOOKUP, scale=True),
            scene("sparse", LOOKUP, 4, sparse=True),
        ],
    )


@cases_for("diopiEmbeddingBackward", weak=ONE_ROW)
def embedding_backward(prototype: Prototype) -> Iterator[Case]:
    def scene(
        label: str,
        table: tuple[tuple[int, ...], TensorSpec],
        padding: int = -1,
        scale: bool = False,
        sparse: bool = False,
        layout: Layout = contiguous,
        domain: Domain | None = None,
        **more: Any,
    ) -> Scene:
        (rows, width), indices = table
        arguments = {
            "grad": data(*indices.shape, width, domain=domain or normal(), layout=layout),
            "indices": indices,
            "num_weights": rows,
            "padding_idx": padding,
            "scale_grad_byfreq": scale,
            "sparse": sparse,
        }
        return Scene(label, arguments, **more)

    in_powers = ((5, 6), literal([0, 1, 2, 1, 3, 3, 0, 3, 3]))  # each once, twice or four times
    unused = ((9, 3), literal([2, 7, 2, 2, 4]))
    layouts = cycle((contiguous, transposed, strided, contiguous))
    yield from play(
        prototype,
        [
            scene("vector", LOOKUP, common=True, smoke=True),
            scene("int32", LOOKUP_INT32, 2, layout=transposed, result=strided, common=True),
            scene("scaled", unused, 4, True, common=True),
            *(scene(label, one, layout=next(layouts), result=next(layouts)) for label, one in TABLES.items()),
            *(
                scene(f"{label}-scaled", TABLES[label], 0, True, layout=next(layouts))
                for label in ("matrix-of-indices", "no-indices", "long")
            ),
            scene("rows-not-named", unused),
            scene("padding-first", LOOKUP, 0),
            scene("padding-last", LOOKUP, 4),
            scene("padding-not-named", unused, 3),
            scene("sparse", LOOKUP, 4, sparse=True),
            scene("exact", ((6, 5), table_indices(67, rows=6)), domain=SUMMANDS, common=True, exact=True),
            scene("exact-scaled", in_powers, scale=True, domain=SUMMANDS, common=True, exact=True),
            scene("long-sum", ((3, 2), OFTEN), domain=POSITIVE, common=True),
        ],
    )


@cases_for("diopiEmbeddingRenorm_", weak={"(just-)?short-enough": "no row is too long, whichever are named"})
def embedding_renorm(prototype: Prototype) -> Iterator[Case]:
    def scene(
        label: str,
        table: tuple[tuple[int, ...], TensorSpec],
        max_norm: float,
        norm_type: float,
        layout: Layout = contiguous,
        **more: Any,
    ) -> Scene:
        shape, indices = table
        weight = data(*shape, domain=_rows_of_unlike_norms(shape), layout=layout)
        arguments = {"inout": weight, "indices": indices, "max_norm": max_norm, "norm_type": norm_type}
        return Scene(label, arguments, **more)

    some = ((6, 4), literal([5, 0, 2, 5, 5]))
    just = {"inout": JUST_SHORT_ENOUGH, "indices": literal([0, 1, 2]), "max_norm": 5 / 256, "norm_type": 2.0}
    yield from play(
        prototype,
        [
            scene("euclidean", some, 1.0, 2.0, common=True, smoke=True),
            scene("absolute", some, 1.5, 1.0, transposed, common=True),
            scene("largest", some, 0.5, inf, strided, common=True),
            scene("cubic", some, 1.0, 3.0),
            scene("root", some, 20.0, 0.5),
            scene("matrix-of-indices", ((6, 3), literal([[4, 1], [3, 4]], I32, transposed)), 1.0, 2.0),
            scene("strided-indices", ((6, 3), literal([[4, 1], [3, 4]], layout=strided)), 1.0, 2.0, transposed),
            scene("number", ((6, 3), literal(4)), 1.0, 2.0),
            scene("to-nothing", some, 0.0, 2.0),
            scene("long", ((60, 17), table_indices(115, rows=60)), 3.0, 2.0),
            scene("one-column", ((6, 1), literal([5, 0, 2])), 1.0, 2.0),
            # nothing is too long, or nothing is named: the table stays bit for bit
            Scene("just-short-enough", just, dtypes=floating, exact=True),
            scene("short-enough", some, 1e4, 2.0, exact=True, common=True),
            scene("no-indices", ((6, 4), table_indices(0)), 1.0, 2.0, exact=True),
            scene("only-short-ones-named", ((6, 4), literal([0, 2, 4])), 1.0, 2.0, exact=True),
        ],
    )


def _rows_of_unlike_norms(shape: tuple[int, ...]) -> Domain:
    """Rows of a table whose numbers are below 0.01 in those of even number, and up to 4 in the others."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        scales = np.where(np.arange(shape[0]) % 2, 4.0, 0.01)[:, np.newaxis]
        return np.asarray(scales * rng.uniform(0.5, 1, shape) * rng.choice([-1, 1], shape)).reshape(-1)

    return draw


JUST_SHORT_ENOUGH = ByDtype(lambda dtype: literal(np.array([[3, -4, 0], [0, 0, -5], [0, 3, 3]]) / 256, dtype))
"""Rows whose Euclidean norms are 5/256, exactly, or less."""


@cases_for("diopiOneHot")
def one_hot(prototype: Prototype) -> Iterator[Case]:
    def scene(label: str, shape: tuple[int, ...], num_classes: int, layout: Layout = contiguous, **more: Any) -> Scene:
        return Scene(
            label, {"input": data(*shape, domain=whole(0, 4), layout=layout), "num_classes": num_classes}, **more
        )

    yield from play(
        prototype,
        [
            scene("vector", (7,), 5, common=True, smoke=True),
            scene("as-many-as-needed", (9,), -1, common=True, smoke=True),
            scene("more", (3, 4), 8, transposed, result=transposed, common=True),
            scene("matrix-as-needed", (3, 4), -1, strided, result=strided, common=True),
            scene("number", (), 5, common=True),
            scene("none", (0,), 4, common=True),
            scene("cube", (2, 3, 2), 6, common=True),
            scene("long", (131,), 7, common=True),
            Scene("one-class", {"input": literal([0, 0, 0]), "num_classes": 1}, dtypes=(Dtype.int64,)),
            Scene("zeros-as-needed", {"input": literal([0, 0]), "num_classes": -1}, dtypes=(Dtype.int64,)),
        ],
    )


@cases_for("diopiNonzero")
def nonzero(prototype: Prototype) -> Iterator[Case]:
    def scene(
        label: str, shape: tuple[int, ...], domain: Domain = with_zeros, layout: Layout = contiguous, **more: Any
    ) -> Scene:
        return Scene(label, {"input": data(*shape, domain=domain, layout=layout)}, **more)

    yield from play(
        prototype,
        [
            scene("matrix", (5, 4), common=True, smoke=True),
            scene("cube", (3, 2, 4), layout=transposed, common=True),
            scene("vector", (9,), layout=strided, common=True),
            scene("number", (), choice([1]), dtypes=(Dtype.float32, Dtype.bool)),
            scene("number-zero", (), choice([0])),
            scene("zeros", (3, 4), choice([0.0, -0.0])),
            scene("no-zeros", (3, 4), choice([1, 2, 3])),
            scene("not-a-number", (6,), choice([nan, 0.0, inf, -inf, 0.25, -0.0]), dtypes=floating),
            scene("imaginary", (6,), choice([1j, 0, -0.5j, complex(0, nan), 1, complex(-0.0, -0.0)]), dtypes=complexes),
            scene("high-bits", (6,), choice([0, 2**8]), dtypes=(Dtype.int16, Dtype.int32)),
            scene("highest-bits", (6,), choice([0, 2**32, -(2**63)]), dtypes=(Dtype.int64,)),
            scene("no-rows", (0, 3)),
            scene("no-columns", (3, 0)),
            scene("rank-5", (2, 1, 3, 2, 2)),
            scene("long", (1031,), dtypes=(*FEW, Dtype.int8)),
            scene("very-long", (5, 823)),
        ],
    )
