"""Reductions along axes, and the running sum."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf, nan
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.dtypes import category, complexes, floating, half, integer, integral
from diopi_proto.parameters import Size
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.axes import (
    ALL_AXES,
    KEEPDIM,
    NO_ELEMENTS,
    ONE_AXIS,
    ROWS,
    SEVERAL_AXES,
    Axes,
    axes_template,
    restrict_dtypes,
    untested_axes_templates,
)
from diopi_test.cases.domains import (
    Domain,
    choice,
    distinct,
    full_range,
    integer_values,
    log_uniform,
    normal,
    special_except,
    subnormal,
    uniform,
    with_value_in_middle,
)
from diopi_test.cases.model import Case, CaseClass, ResultOverride, cases_for
from diopi_test.cases.template import CaseTemplate, DtypeSelection, expand, tensor
from diopi_test.cases.type_promotion import first_gap

F16, BF16, F32, F64 = floating
INEXACT = (*floating, *complexes)

LONG = axes_template("long", (1031,), (0,))
LONG_COLUMNS = axes_template("long-columns", (517, 3), (0,))
LONG_ROWS = axes_template("long-rows", (24, 130), (-1,))
COLUMNS = axes_template("", (6, 19), (0,))
COLUMNS_OF_16 = axes_template("", (16, 5), (0,))
ALL = ALL_AXES[0]
KEPT_COLUMNS = KEEPDIM[0]
ORDERED = axes_template("", (11, 4), (1,))

SUMMABLE = (*ONE_AXIS, *KEEPDIM, *SEVERAL_AXES, *ALL_AXES, *NO_ELEMENTS)
ONE_OR_ALL = (*ONE_AXIS, *KEEPDIM, *ALL_AXES, *NO_ELEMENTS)


def reductions(
    prototype: Prototype,
    templates: Iterable[CaseTemplate[Any]],
    shape: Callable[[Axes], tuple[int, ...]] = lambda sizes: sizes.reduced_shape,
) -> Iterator[Case]:
    """Return the cases of a function of one tensor, drawn from the templates' domains of "input".

    Cases along the axes that no template covers follow; their data are drawn like those of the template of rows.

    Args:
        prototype: the function.
        templates: the templates of its cases.
        shape: returns the shape of the result.

    Returns:
        The cases.
    """
    first, names = prototype.arguments[0].name, {p.name: p.annotation for p in prototype.arguments}
    listed = list(templates)
    rows = next((template for template in listed if template.label == ROWS.label), None)
    untried = [
        template.replace(arguments=rows.arguments, domains=rows.domains)
        for template in untested_axes_templates(listed)
        if rows
    ]

    def arguments(template: CaseTemplate[Any], dtype: Dtype) -> Mapping[str, Any]:
        sizes = template.sizes
        return {
            first: tensor(*sizes.shape, domain=template.domains["input"], layout=template.layout),
            "dim": sizes.axes if names.get("dim") is Size else sizes.axis,
            "keepdim": sizes.keepdim,
        }

    def decided(template: CaseTemplate[Any]) -> CaseTemplate[Any]:
        usual = ResultOverride(layout=template.result_layout, shape=shape(template.sizes))
        return template.replace(results={**{p.name: usual for p in prototype.results}, **template.results})

    return expand(prototype, map(decided, [*listed, *untried]), arguments)


def from_domain(
    pattern: CaseTemplate[Any],
    domain: Domain,
    dtypes: DtypeSelection | Sequence[Dtype] = (F32,),
    label: str = "",
    **fields: Any,
) -> CaseTemplate[Any]:
    """A pattern with numbers of `domain`; it is a basic case under its own label alone."""
    smoke = pattern.smoke and not label
    return pattern.replace(label or pattern.label, domains={"input": domain}, dtypes=dtypes, smoke=smoke, **fields)


def patterns_from_domain(
    patterns: Iterable[CaseTemplate[Any]], domain: Domain, dtypes: Sequence[Dtype], **fields: Any
) -> Iterator[CaseTemplate[Any]]:
    """All patterns in float32, the common ones in the other element types."""
    return (restrict_dtypes(pattern, dtypes).replace(domains={"input": domain}, **fields) for pattern in patterns)


def by_type(domain_of: Callable[[Dtype], Domain]) -> Domain:
    """Another domain for each element type."""
    return lambda rng, count, dtype: domain_of(dtype)(rng, count, dtype)


def to_type(dtype: Dtype, shape: tuple[int, ...]) -> dict[str, ResultOverride]:
    """The result, or the position of the extremum, in an element type the caller chooses."""
    return dict.fromkeys(("out", "min_indices", "max_indices"), ResultOverride(dtype, shape=shape))


# Sums

POWERS = axes_template("", (2, 1024), (1,))
WIDER = {F16: F32, BF16: F32, F32: F64}
"""Types of a result that hold a sum exactly which the summands' own type can't hold."""

INFINITE = choice([inf, -inf, nan, *[0.5, 1.0, -2.0, 3.0, -0.25] * 6])


def _cancelling(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Columns of 16 numbers that add up to 16 or less, while partial sums leave the range of float16."""
    large = [32768.0] * 7 + [-32768.0] * 7
    columns = [[*large, 3.0, 13.0 - 2 * number] for number in range(count // 16)]
    return rng.permuted(np.array(columns), axis=1).T.reshape(-1)


def _largest(dtype: Dtype) -> Domain:
    """Whole numbers of which a type that is not wider holds no sum."""
    largest = 2**24 if dtype is F32 else 9
    return integer_values(largest // 2, largest)


SUMS = (
    *patterns_from_domain(SUMMABLE, normal(mean=0.5), INEXACT),
    from_domain(POWERS, integer_values(1, 9), INEXACT, "exact", exact=True),
    from_domain(COLUMNS_OF_16, _cancelling, INEXACT, "exact-cancelling", exact=True),
    from_domain(LONG_ROWS, log_uniform(-6, 4, signed=False), (*half, F32, Dtype.complex64), "long-rows-positive"),
    *(
        from_domain(POWERS, _largest(narrow), (narrow,), f"to-{wide.name}", results=to_type(wide, (2,)), exact=True)
        for narrow, wide in WIDER.items()
    ),
    from_domain(COLUMNS, INFINITE, floating, "infinite"),
)
"""Sums of floating numbers; the exact ones show any accumulator that is too narrow."""


def _rounded(dtype: Dtype) -> Domain:
    """Whole numbers that a floating type can't hold while it holds sums and means of four of what they become."""
    twice = 2 * first_gap(dtype)
    return choice([sign * (twice + more) for more in (1, 15) for sign in (1, -1)])


FRACTIONS = choice([1.7, -2.7, 3.5, -0.9, 2.2])
PARTS = choice([1.5 + 2j, -0.5 - 1j, 2 + 1j])

ADDED: dict[tuple[Dtype, Dtype], Domain] = {
    (F32, Dtype.int32): FRACTIONS,
    (F64, Dtype.uint8): choice([1.7, 2.7, 3.5, 1.9]),
    (F32, Dtype.bool): choice([0.5, -0.25, *[0.0] * 12]),
    (F64, F32): _rounded(F32),
    (F32, F16): _rounded(F16),
    (Dtype.int32, F16): _rounded(F16),
    (Dtype.int32, Dtype.int8): choice([300, 7, -3, 1, 515]),
    (Dtype.complex64, F32): PARTS,
}
"""Numbers to add by the element types of the input and of the result that the caller orders: convert them first."""

MULTIPLIED: dict[tuple[Dtype, Dtype], Domain] = {
    **ADDED,
    (F32, Dtype.bool): choice([*[0.5, -0.25] * 6, 0.0]),
    (F64, F32): choice([1e39, -1e-3, 0.5, 3.0]),
    (F32, F16): choice([7e4, -1e-3, 0.5, 3.0]),
    (Dtype.int32, F16): choice([3, -2, 1]),
}
"""As `ADDED`, the factors of products; some are infinite in the type of the result."""


def ordered(
    prototype: Prototype,
    numbers: Mapping[tuple[Dtype, Dtype], Domain],
    shape: tuple[int, ...] = ORDERED.sizes.reduced_shape,
) -> Iterator[CaseTemplate[Any]]:
    """Templates whose result has an element type that the caller orders."""
    for (source, target), domain in numbers.items():
        if target in prototype.selectable_dtypes:
            template = from_domain(ORDERED, domain, (source,), f"ordered-{target.name}", case_class=CaseClass.callers)
            exact = numbers is not MULTIPLIED and domain is not PARTS
            yield template.replace(results=to_type(target, shape), exact=exact)


@cases_for("diopiSum")
def sum_(prototype: Prototype) -> Iterator[Case]:
    integers = (
        *(from_domain(pattern, full_range, integral) for pattern in (ROWS, KEPT_COLUMNS, ALL, NO_ELEMENTS[0])),
        from_domain(LONG, full_range, (Dtype.bool, Dtype.uint8, Dtype.int32)),
    )
    return reductions(prototype, (*SUMS, *ordered(prototype, ADDED), *integers))


@cases_for("diopiMean")
def mean(prototype: Prototype) -> Iterator[Case]:
    # PyTorch's means in half precision are of the input in float32, whatever its own type
    added = {types: domain for types, domain in ADDED.items() if types[1] not in half}
    # their sum is beyond the range of the type, their mean is not
    large = from_domain(ROWS, uniform(50000, 65000), (F16,), "large")
    return reductions(prototype, (*SUMS, *ordered(prototype, added), large))


# Deviations

STANDARD = normal()

NO_DEVIATION = {
    "length-one|one-element": "one element doesn't deviate from itself",
    "correction-[57]": "5 elements less 5 or more leave a divisor of 0",
}


def _ever_wider(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Normal numbers, deviating eight times more at the end than at the beginning."""
    return rng.normal(0, 1, count) * np.linspace(0.5, 4, count)


def deviation(
    label: str, pattern: CaseTemplate[Any], correction: float | None, domain: Domain = STANDARD, **fields: Any
) -> CaseTemplate[Any]:
    """Return a template of a standard deviation with this correction."""
    return from_domain(pattern, domain, label=label, arguments={"correction": correction}).replace(**fields)


ROW = axes_template("", (7, 5), (1,))
DEVIATIONS = (
    *patterns_from_domain(SUMMABLE, STANDARD, INEXACT, arguments={"correction": None}),
    *(deviation(f"correction-{number}", ROW, number, dtypes=DtypeSelection.all) for number in (0, 1.5)),
    *(deviation(f"correction-{number}", ROW, number) for number in (1, 2, 1.0, 5, 7)),
    deviation("far-from-zero", LONG_ROWS, 0, normal(1, 16), dtypes=DtypeSelection.all),
    deviation("one-element", axes_template("", (3, 1), (1,)), None),
    deviation("one-element-correction-0", axes_template("", (1, 3), (0,)), 0),
    deviation("very-long-rows", axes_template("", (20, 400), (1,)), None, _ever_wider, dtypes=half),
    deviation("large", ROW, 0, uniform(300, 3000), dtypes=(F16,)),  # their squares are beyond the range of the type
    deviation("infinite", COLUMNS, 1, choice([nan, inf, -inf, *[1.0, -2.0, 0.5, -3.0] * 7]), dtypes=floating),
)


@cases_for("diopiStd", non_discriminating=NO_DEVIATION)
def std(prototype: Prototype) -> Iterator[Case]:
    return reductions(prototype, DEVIATIONS)


# Extrema and where they are

EXTREMES = {
    "infinite": choice([nan, inf, -inf, *[2.0, -1.0, 0.5] * 7]),
    "all-high": choice([inf]),
    "all-low": choice([-inf]),
}
"""Floating values among which extrema are hard to find; several may be equal."""

NAN_OF_MANY = with_value_in_middle(nan, choice([0.0, 1.0, 2.0, 3.0]))
MANY_ROWS = axes_template("one-nan-of-many", (5, 1031), (1,))
"""Extrema are found by vectors, or by a library, where there are many elements."""

EQUAL_SLICES = {
    "length-one": "one element is its own extremum, at 0",
    "first-of-equals-long-columns": "where the extremum is, not which number it is, is in question",
    "all-high|all-low": "no element exceeds what a search for the extremum starts from",
}

NEIGHBOURS = choice([2**62 + i for i in range(-20, 20)])
"""Different numbers of int64, equal as float64."""


def positions(prototype: Prototype, patterns: Sequence[CaseTemplate[Any]]) -> Iterator[CaseTemplate[Any]]:
    """Where extrema are; only the cases that say so, and those of bool, have several equal numbers in a slice."""
    rarely = [0, 1, 0, 0, 0, 0] if "max" in prototype.name.lower() else [1, 0, 1, 1, 1, 1]
    yield from patterns_from_domain(
        patterns, distinct, [dtype for dtype in prototype.dtypes if dtype is not Dtype.bool]
    )
    yield from patterns_from_domain(patterns, choice(rarely), (Dtype.bool,))
    yield from_domain(ROWS, choice([0, 1, 1, 1, 2]), DtypeSelection.all, "first-of-equals")
    for pattern in (LONG, LONG_COLUMNS):
        yield from_domain(pattern, integer_values(0, 9), (*half, F32, Dtype.int64), f"first-of-equals-{pattern.label}")
    yield from_domain(COLUMNS, EXTREMES["infinite"], floating, "infinite")
    for label in ("all-high", "all-low"):
        yield from_domain(KEPT_COLUMNS, EXTREMES[label], label=label)
    yield from_domain(COLUMNS, subnormal, floating, "subnormal")
    yield from_domain(MANY_ROWS, NAN_OF_MANY, floating)
    yield from_domain(KEPT_COLUMNS, full_range, integral, "whole-range")
    yield from_domain(ROWS, NEIGHBOURS, (Dtype.int64,), "neighbours")
    yield from_domain(
        ROWS, distinct, (F32, Dtype.int64), "int32-positions", results=to_type(Dtype.int32, ROWS.sizes.reduced_shape)
    )


@cases_for("diopiMax", "diopiMin", non_discriminating=EQUAL_SLICES)
def extremum_and_position(prototype: Prototype) -> Iterator[Case]:
    return reductions(prototype, positions(prototype, (*ONE_AXIS, *KEEPDIM)))


@cases_for("diopiArgmax", "diopiArgmin", non_discriminating=EQUAL_SLICES)
def position(prototype: Prototype) -> Iterator[Case]:
    further = (
        from_domain(
            ALL, distinct, (F32, F16, Dtype.int64), "all-to-vector", results={"out": ResultOverride(shape=(1,))}
        ),
        from_domain(ALL, integer_values(0, 2), label="first-of-all"),
        from_domain(ALL, EXTREMES["infinite"], label="infinite-of-all"),
    )
    return reductions(prototype, (*positions(prototype, (*ONE_AXIS, *KEEPDIM, *ALL_AXES)), *further))


def extrema(
    prototype: Prototype, patterns: Iterable[CaseTemplate[Any]], whole_tensor: CaseTemplate[Any]
) -> Iterator[CaseTemplate[Any]]:
    """The values of extrema; no slice has zeros of both signs."""
    yield from patterns_from_domain(patterns, full_range, prototype.dtypes)
    ranges = {
        "special": special_except(0.0, -0.0, nan),
        "subnormal": subnormal,
        "negative": uniform(-9, -1),
        "positive": uniform(1, 9),
    }
    for label, domain in {**EXTREMES, **ranges}.items():
        yield from_domain(whole_tensor, domain, floating, label)
    yield from_domain(whole_tensor, NEIGHBOURS, (Dtype.int64,), "neighbours")


@cases_for("diopiAmax", non_discriminating=EQUAL_SLICES)
def amax(prototype: Prototype) -> Iterator[Case]:
    further = from_domain(MANY_ROWS, NAN_OF_MANY, floating)
    return reductions(
        prototype, (*extrema(prototype, (*ONE_AXIS, *KEEPDIM, *SEVERAL_AXES, *ALL_AXES), COLUMNS), further)
    )


def _ascending(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """The extrema are the first and last element."""
    return np.sort(distinct(rng, count, dtype))


def _descending(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    return _ascending(rng, count, dtype)[::-1]


WHOLE_TENSORS = (
    axes_template("matrix", (7, 5), (), all_dtypes=True, smoke=True),
    *(pattern for pattern in ALL_AXES if not pattern.sizes.keepdim),
    axes_template("rank5", (2, 1, 3, 2, 2), ()),
    axes_template("one", (1,), ()),
    axes_template("long", (1031,), ()),
)


@cases_for(
    "diopiMaxAll", "diopiMinAll", non_discriminating={"infinite|one-nan-of-many": "a NaN is the extremum of all"}
)
def extremum_of_all(prototype: Prototype) -> Iterator[Case]:
    further = (
        from_domain(LONG, domain, (F16, F32, Dtype.int32), label)
        for label, domain in {"ascending": _ascending, "descending": _descending}.items()
    )
    one_nan = from_domain(axes_template("one-nan-of-many", (5, 1031), ()), NAN_OF_MANY, floating)
    return reductions(prototype, (*extrema(prototype, WHOLE_TENSORS, axes_template("", (19,), ())), *further, one_nan))


# Truth

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


HIGH_BITS = {Dtype.int16: 2**8, Dtype.int32: 2**16, Dtype.int64: 2**32}
"""Numbers that are zero when cut down to the next narrower type."""


def _true(dtype: Dtype) -> Sequence[complex]:
    return TRUTHS[category(dtype)]


def _false(dtype: Dtype) -> Sequence[complex]:
    return [0.0, -0.0] if category(dtype) > 1 else [0]


@cases_for("diopiAny", "diopiAll")
def truth(prototype: Prototype) -> Iterator[Case]:
    is_any = prototype.base == "diopiAny"
    rare, frequent = (_true, _false) if is_any else (_false, _true)
    short = [pattern for pattern in ONE_OR_ALL if pattern.label != "long-rows"]
    templates = (
        *patterns_from_domain(short, by_type(lambda dtype: _mostly(rare(dtype), frequent(dtype))), prototype.dtypes),
        from_domain(LONG_ROWS, by_type(lambda dtype: _mostly(rare(dtype), frequent(dtype), 200))),
        from_domain(ROWS, by_type(lambda dtype: choice(_false(dtype))), DtypeSelection.all, "false"),
        from_domain(ROWS, by_type(lambda dtype: choice(_true(dtype))), DtypeSelection.all, "true"),
        *(
            from_domain(ROWS, choice([high, *[0] * (6 * is_any)]), (dtype,), "high-bits")
            for dtype, high in HIGH_BITS.items()
        ),
    )
    return reductions(prototype, templates)


# Products


def _balanced(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Rows of 18 factors whose product is small, while partial products leave the range of float16, not of float32."""
    rows = [[16.0] * 8 + [1 / 16] * 8 + [3.0, 1.0 - 2 * number] for number in range(count // 18)]
    return rng.permuted(np.array(rows), axis=1)


PRODUCTS = (
    *patterns_from_domain(ONE_OR_ALL, log_uniform(-1, 1), INEXACT),
    *patterns_from_domain(ONE_OR_ALL, choice([1, 1, 1, 1, 1, 1, 1, 0]), (Dtype.bool,)),
    *patterns_from_domain(ONE_OR_ALL, full_range, integer),
    from_domain(ROWS, choice([3.0, 5.0, -7.0]), floating, "exact", exact=True),
    from_domain(ROWS, choice([1 + 2j, -3j, 2 - 1j]), complexes, "exact", exact=True),
    from_domain(COLUMNS, choice([inf, nan, -inf, *[0.5, -2.0, 4.0, 1.0] * 6]), floating, "infinite"),
    from_domain(COLUMNS, choice([0.0, -0.0, *[0.5, -2.0, 4.0] * 4]), floating, "zeros", exact=True),
    from_domain(axes_template("", (5, 18), (1,)), _balanced, (F16,), "partial-overflow", exact=True),
)


@cases_for("diopiProd")
def prod(prototype: Prototype) -> Iterator[Case]:
    return reductions(prototype, (*ordered(prototype, MULTIPLIED), *PRODUCTS))


# Running sums

RUNNING = (*ONE_AXIS, axes_template("empty-slices", (3, 0), (1,), all_dtypes=True))


@cases_for("diopiCumsum", "diopiCumsumBackward")
def cumsum(prototype: Prototype) -> Iterator[Case]:
    templates = (
        *ordered(prototype, ADDED, ORDERED.sizes.shape),
        *patterns_from_domain(
            RUNNING, by_type(lambda dtype: normal() if category(dtype) > 1 else full_range), prototype.dtypes
        ),
        from_domain(LONG, integer_values(0, 9), (*INEXACT, Dtype.bool), "exact", exact=True),
        from_domain(COLUMNS, choice([nan, inf, -inf, *[1.0, -2.0, 0.5] * 9]), floating, "infinite"),
    )
    return reductions(prototype, templates, lambda sizes: sizes.shape)
