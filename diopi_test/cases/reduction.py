"""Reductions along axes, and the running sum."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.dtypes import category, half, is_floating
from diopi_proto.parameters import Size
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.case import Case, ResultOverride, TensorSpec, cases_for
from diopi_test.cases.axes import ALL_AXES, KEPT, NO_ELEMENTS, ONE_AXIS, ROWS, SEVERAL_AXES, Along, patterns_of
from diopi_test.domains import Domain, between, choice, distinct, magnitudes, normal, special_but, whole, whole_range

nan, inf = float("nan"), float("inf")

LONG = Along("long", (1031,), (0,))
LONG_COLUMNS = Along("long-columns", (517, 3), (0,))
LONG_ROWS = Along("long-rows", (24, 130), (-1,))
COLUMNS = Along("", (6, 19), (0,))
COLUMNS_OF_16 = Along("", (16, 5), (0,))
ALL, ALL_KEPT, ALL_OF_SCALAR = ALL_AXES
KEPT_COLUMNS = KEPT[0]

SUMMABLE = (*ONE_AXIS, *KEPT, *SEVERAL_AXES, *ALL_AXES, *NO_ELEMENTS)
ONE_OR_ALL = (*ONE_AXIS, *KEPT, *ALL_AXES, *NO_ELEMENTS)

WIDER = {Dtype.float16: Dtype.float32, Dtype.bfloat16: Dtype.float32, Dtype.float32: Dtype.float64}
"""Types of a result that hold a sum exactly which the summands' own type can't hold."""


def _case(
    prototype: Prototype,
    dtype: Dtype,
    along: Along,
    domain: Domain,
    label: str = "",
    *,
    attributes: Mapping[str, Any] | None = None,
    shape: tuple[int, ...] | None = None,
    result: Dtype | None = None,
    exact: bool = False,
) -> Case:
    """A case whose tensor is reduced along the axes of a pattern; `result` is the element type of the last result."""
    arguments: dict[str, Any] = {
        prototype.arguments[0].name: TensorSpec(along.shape, dtype, domain, along.layout),
        **_axes(prototype, along),
        **(attributes or {}),
    }
    shape = along.reduced if shape is None else shape
    last = prototype.results[-1].name
    results = {
        p.name: ResultOverride(result if p.name == last else None, along.result, shape) for p in prototype.results
    }
    smoke = along.smoke and not label
    return Case(f"{dtype.name}-{label or along.label}", dtype, arguments, results, smoke, exact)


def _axes(prototype: Prototype, along: Along) -> dict[str, Any]:
    """The arguments that say along which axes, and whether they are kept."""
    names = {p.name: p.annotation for p in prototype.arguments}
    axes: dict[str, Any] = {}
    if "dim" in names:
        axes["dim"] = along.axes if names["dim"] is Size else along.axis
    if "keepdim" in names:
        axes["keepdim"] = along.kept
    return axes


def _everywhere(
    prototype: Prototype,
    patterns: Sequence[Along],
    domain: Domain,
    dtypes: Sequence[Dtype],
    attributes: Mapping[str, Any] | None = None,
) -> Iterator[Case]:
    """All patterns in float32, the common ones in the other element types."""
    for dtype in dtypes:
        for along in patterns_of(dtype, patterns):
            yield _case(prototype, dtype, along, domain, attributes=attributes)


def _inexact(prototype: Prototype) -> list[Dtype]:
    return [dtype for dtype in prototype.dtypes if category(dtype) > 1]


def _integral(prototype: Prototype) -> list[Dtype]:
    return [dtype for dtype in prototype.dtypes if category(dtype) < 2]


def _floating(prototype: Prototype) -> list[Dtype]:
    return [dtype for dtype in prototype.dtypes if is_floating(dtype)]


def _sums(prototype: Prototype) -> Iterator[Case]:
    """Sums of floating numbers; the exact ones show any accumulator that is too narrow."""
    yield from _everywhere(prototype, SUMMABLE, normal(mean=0.5), _inexact(prototype))
    powers = Along("", (2, 1024), (1,))
    for dtype in _inexact(prototype):
        yield _case(prototype, dtype, powers, whole(1, 9), "exact", exact=True)
        yield _case(prototype, dtype, COLUMNS_OF_16, _cancelling, "exact-cancelling", exact=True)
    for dtype in (*half, Dtype.float32, Dtype.complex64):
        yield _case(prototype, dtype, LONG_ROWS, magnitudes(-6, 4, signed=False), "long-rows-positive")
    for narrow, wide in WIDER.items():
        largest = 2**24 if narrow is Dtype.float32 else 9
        domain = whole(largest // 2, largest)
        yield _case(prototype, narrow, powers, domain, f"to-{wide.name}", result=wide, exact=True)
    infinite = choice([inf, -inf, nan, *[0.5, 1.0, -2.0, 3.0, -0.25] * 6])
    for dtype in _floating(prototype):
        yield _case(prototype, dtype, COLUMNS, infinite, "infinite")


def _cancelling(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Columns of 16 numbers that add up to 16 or less, while partial sums leave the range of float16."""
    large = [32768.0] * 7 + [-32768.0] * 7
    columns = [[*large, 3.0, 13.0 - 2 * number] for number in range(count // 16)]
    return rng.permuted(np.array(columns), axis=1).T.reshape(-1)


@cases_for("diopiSum")
def sum_(prototype: Prototype) -> Iterator[Case]:
    yield from _sums(prototype)
    for dtype in _integral(prototype):
        for along in (ROWS, KEPT_COLUMNS, ALL, NO_ELEMENTS[0]):
            yield _case(prototype, dtype, along, whole_range)
    for dtype in (Dtype.bool, Dtype.uint8, Dtype.int32):
        yield _case(prototype, dtype, LONG, whole_range)


@cases_for("diopiMean")
def mean(prototype: Prototype) -> Iterator[Case]:
    yield from _sums(prototype)
    # their sum is beyond the range of the type, their mean is not
    yield _case(prototype, Dtype.float16, ROWS, between(50000, 65000), "large")


NO_DEVIATION = {
    "length-one|one-element": "one element doesn't deviate from itself",
    "correction-[57]": "5 elements less 5 or more leave a divisor of 0",
}


@cases_for("diopiStd", weak=NO_DEVIATION)
def std(prototype: Prototype) -> Iterator[Case]:
    yield from _everywhere(prototype, SUMMABLE, normal(), prototype.dtypes, {"correction": None})
    row = Along("", (7, 5), (1,))
    for dtype in prototype.dtypes:
        for correction in (0, 1.5):
            yield _std(prototype, dtype, row, normal(), correction, f"correction-{correction}")
        yield _std(prototype, dtype, LONG_ROWS, normal(1, 16), 0, "far-from-zero")
    for correction in (1, 2, 1.0, 5, 7):
        yield _std(prototype, Dtype.float32, row, normal(), correction, f"correction-{correction}")
    yield _std(prototype, Dtype.float32, Along("", (3, 1), (1,)), normal(), None, "one-element")
    yield _std(prototype, Dtype.float32, Along("", (1, 3), (0,)), normal(), 0, "one-element-correction-0")
    for dtype in half:
        yield _std(prototype, dtype, Along("", (20, 400), (1,)), _ever_wider, None, "very-long-rows")
    # squares of these are beyond the range of the type
    yield _std(prototype, Dtype.float16, row, between(300, 3000), 0, "large")
    infinite = choice([nan, inf, -inf, *[1.0, -2.0, 0.5, -3.0] * 7])
    for dtype in _floating(prototype):
        yield _std(prototype, dtype, COLUMNS, infinite, 1, "infinite")


def _ever_wider(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Normal numbers, deviating eight times more at the end than at the beginning."""
    return rng.normal(0, 1, count) * np.linspace(0.5, 4, count)


def _std(
    prototype: Prototype, dtype: Dtype, along: Along, domain: Domain, correction: float | None, label: str
) -> Case:
    return _case(prototype, dtype, along, domain, label, attributes={"correction": correction})


EXTREMES = {
    "infinite": choice([nan, inf, -inf, *[2.0, -1.0, 0.5] * 7]),
    "all-high": choice([inf]),
    "all-low": choice([-inf]),
}
"""Floating values among which extrema are hard to find; several may be equal."""

EQUAL_SLICES = {
    "length-one": "one element is its own extremum, at 0",
    "first-of-equals-long-columns": "where the extremum is, not which number it is, is in question",
    "all-high|all-low": "no element exceeds what a search for the extremum starts from",
}

NEIGHBOURS = choice([2**62 + i for i in range(-20, 20)])
"""Different numbers of int64, equal as float64."""


def _positions(prototype: Prototype, patterns: Sequence[Along]) -> Iterator[Case]:
    """Where extrema are; only the cases that say so, and those of bool, have several equal numbers in a slice."""
    numbers = [dtype for dtype in prototype.dtypes if dtype is not Dtype.bool]
    yield from _everywhere(prototype, patterns, distinct, numbers)
    rarely = [0, 1, 0, 0, 0, 0] if "max" in prototype.name.lower() else [1, 0, 1, 1, 1, 1]
    yield from _everywhere(prototype, patterns, choice(rarely), [*{Dtype.bool} & set(prototype.dtypes)])
    for dtype in prototype.dtypes:
        yield _case(prototype, dtype, ROWS, choice([0, 1, 1, 1, 2]), "first-of-equals")
    for dtype in (*half, Dtype.float32, Dtype.int64):
        for along in (LONG, LONG_COLUMNS):
            yield _case(prototype, dtype, along, whole(0, 9), f"first-of-equals-{along.label}")
    for dtype in _floating(prototype):
        yield _case(prototype, dtype, COLUMNS, EXTREMES["infinite"], "infinite")
    for label in ("all-high", "all-low"):
        yield _case(prototype, Dtype.float32, KEPT_COLUMNS, EXTREMES[label], label)
    for dtype in _integral(prototype):
        yield _case(prototype, dtype, KEPT_COLUMNS, whole_range, "whole-range")
    yield _case(prototype, Dtype.int64, ROWS, NEIGHBOURS, "neighbours")
    for dtype in (Dtype.float32, Dtype.int64):
        yield _case(prototype, dtype, ROWS, distinct, "int32-positions", result=Dtype.int32)


@cases_for("diopiMax", "diopiMin", weak=EQUAL_SLICES)
def extremum_and_position(prototype: Prototype) -> Iterator[Case]:
    yield from _positions(prototype, (*ONE_AXIS, *KEPT))


@cases_for("diopiArgmax", "diopiArgmin", weak=EQUAL_SLICES)
def position(prototype: Prototype) -> Iterator[Case]:
    yield from _positions(prototype, (*ONE_AXIS, *KEPT, *ALL_AXES))
    for dtype in (Dtype.float32, Dtype.float16, Dtype.int64):
        yield _case(prototype, dtype, ALL, distinct, "all-to-vector", shape=(1,))
    yield _case(prototype, Dtype.float32, ALL, whole(0, 2), "first-of-all")
    yield _case(prototype, Dtype.float32, ALL, EXTREMES["infinite"], "infinite-of-all")


def _extrema(prototype: Prototype, patterns: Sequence[Along], whole_tensor: Along) -> Iterator[Case]:
    """The values of extrema; no slice has zeros of both signs."""
    yield from _everywhere(prototype, patterns, whole_range, prototype.dtypes)
    for dtype in _floating(prototype):
        for label, domain in {
            **EXTREMES,
            "special": special_but(0.0, -0.0, nan),
            "negative": between(-9, -1),
            "positive": between(1, 9),
        }.items():
            yield _case(prototype, dtype, whole_tensor, domain, label)
    yield _case(prototype, Dtype.int64, whole_tensor, NEIGHBOURS, "neighbours")


@cases_for("diopiAmax", weak=EQUAL_SLICES)
def amax(prototype: Prototype) -> Iterator[Case]:
    yield from _extrema(prototype, (*ONE_AXIS, *KEPT, *SEVERAL_AXES, *ALL_AXES), COLUMNS)


@cases_for("diopiMaxAll", "diopiMinAll", weak={"infinite": "a NaN is the extremum of all"})
def extremum_of_all(prototype: Prototype) -> Iterator[Case]:
    patterns = [
        Along("matrix", (7, 5), (), common=True, smoke=True),
        *ALL_AXES,
        Along("rank5", (2, 1, 3, 2, 2), ()),
        Along("one", (1,), ()),
        Along("long", (1031,), ()),
    ]
    yield from _extrema(prototype, [pattern for pattern in patterns if not pattern.kept], Along("", (19,), ()))
    for dtype in (Dtype.float16, Dtype.float32, Dtype.int32):
        for label, domain in {"ascending": _ascending, "descending": _descending}.items():
            yield _case(prototype, dtype, LONG, domain, label)


def _ascending(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """The extrema are the first and last element."""
    return np.sort(distinct(rng, count, dtype))


def _descending(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    return _ascending(rng, count, dtype)[::-1]


TRUTHS: dict[int, list[complex]] = {
    0: [1],
    1: [1, 2, -1, 2, 4],
    2: [1.0, 0.25, -0.5, nan, inf],
    3: [1.0, 1j, -0.25j, complex(0, nan)],
}
"""Elements that count as true, by category of the element type: also those no integer or no real number equals."""


def _mostly(rare: Sequence[complex], frequent: Sequence[complex], times: int = 6) -> Domain:
    """A seventh of the elements, or one for that many `times` others, from the one, all others from the other."""
    return choice([*rare, *(frequent[i % len(frequent)] for i in range(times * len(rare)))])


@cases_for("diopiAny", "diopiAll")
def truth(prototype: Prototype) -> Iterator[Case]:
    for dtype in prototype.dtypes:
        false: list[complex] = [0.0, -0.0] if category(dtype) > 1 else [0]
        true = TRUTHS[category(dtype)]
        rare, frequent = (true, false) if prototype.base == "diopiAny" else (false, true)
        short = [pattern for pattern in ONE_OR_ALL if pattern.label != "long-rows"]
        yield from _everywhere(prototype, short, _mostly(rare, frequent), [dtype])
        if dtype is Dtype.float32:
            yield _case(prototype, dtype, LONG_ROWS, _mostly(rare, frequent, 200))
        yield _case(prototype, dtype, ROWS, choice(false), "false")
        yield _case(prototype, dtype, ROWS, choice(true), "true")
    for dtype, high in HIGH_BITS.items():
        domain = choice([high, *[0] * 6] if prototype.base == "diopiAny" else [high])
        yield _case(prototype, dtype, ROWS, domain, "high-bits")


HIGH_BITS = {Dtype.int16: 2**8, Dtype.int32: 2**16, Dtype.int64: 2**32}
"""Numbers that are zero when cut down to the next narrower type."""


@cases_for("diopiProd")
def prod(prototype: Prototype) -> Iterator[Case]:
    yield from _everywhere(prototype, ONE_OR_ALL, magnitudes(-1, 1), _inexact(prototype))
    for dtype in _integral(prototype):
        domain = choice([1, 1, 1, 1, 1, 1, 1, 0]) if dtype is Dtype.bool else whole_range
        yield from _everywhere(prototype, ONE_OR_ALL, domain, [dtype])
    for dtype in _floating(prototype):
        yield _case(prototype, dtype, ROWS, choice([3.0, 5.0, -7.0]), "exact", exact=True)
        yield _case(prototype, dtype, COLUMNS, choice([inf, nan, -inf, *[0.5, -2.0, 4.0, 1.0] * 6]), "infinite")
        yield _case(prototype, dtype, COLUMNS, choice([0.0, -0.0, *[0.5, -2.0, 4.0] * 4]), "zeros", exact=True)
    for dtype in (Dtype.complex64, Dtype.complex128):
        yield _case(prototype, dtype, ROWS, choice([1 + 2j, -3j, 2 - 1j]), "exact", exact=True)
    yield _case(prototype, Dtype.float16, Along("", (5, 18), (1,)), _balanced, "partial-overflow", exact=True)


def _balanced(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Rows of 18 factors whose product is small, while partial products leave the range of float16, not of float32."""
    rows = [[16.0] * 8 + [1 / 16] * 8 + [3.0, 1.0 - 2 * number] for number in range(count // 18)]
    return rng.permuted(np.array(rows), axis=1)


RUNNING = (*ONE_AXIS, Along("empty-slices", (3, 0), (1,), common=True))


@cases_for("diopiCumsum", "diopiCumsumBackward")
def cumsum(prototype: Prototype) -> Iterator[Case]:
    for dtype in prototype.dtypes:
        domain = normal() if category(dtype) > 1 else whole_range
        for along in patterns_of(dtype, RUNNING):
            yield _case(prototype, dtype, along, domain, shape=along.shape)
    for dtype in (*_inexact(prototype), *set(prototype.dtypes) & {Dtype.bool}):
        yield _case(prototype, dtype, LONG, whole(0, 9), "exact", shape=LONG.shape, exact=True)
    infinite = choice([nan, inf, -inf, *[1.0, -2.0, 0.5] * 9])
    for dtype in _floating(prototype):
        yield _case(prototype, dtype, COLUMNS, infinite, "infinite", shape=COLUMNS.shape)
