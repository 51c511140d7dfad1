"""Cases of maxima and minima (extrema), of their positions, and of `diopiAny` and `diopiAll`.

A template describes cases that differ only in their element type (`diopi_test.cases.template`). A pattern is a template
with a shape and axes, but without a domain of the input; `with_domain` adds the domain.

A domain draws the values of a tensor (`diopi_test.cases.domains`). Large cases belong to a level with the sizes of real
models. `Case.non_discriminating` is the reason why a wrong result can pass a case.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import inf, nan
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.dtypes import category, floating, half, integral
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.axes import ONE_AXIS, Axes
from diopi_test.cases.case import Case, ResultOverride, cases_for
from diopi_test.cases.domains import (
    Domain,
    choice,
    distinct,
    full_range,
    integer_values,
    special_except,
    subnormal,
    uniform,
    with_value_in_middle,
)
from diopi_test.cases.facts import CaseFacts
from diopi_test.cases.layouts import strides, transposed
from diopi_test.cases.reduction.patterns import (
    ALL_AXES,
    ALL_ELEMENTS,
    COLUMNS,
    F16,
    F32,
    FAR_ROWS,
    KEEPDIM_TEMPLATES,
    KEPT_COLUMNS,
    LONG,
    LONG_COLUMNS,
    LONG_ROWS,
    ONE_OR_ALL_AXES_TEMPLATES,
    ROWS,
    SEVERAL_AXES,
    SIX_AXES,
    domain_by_type,
    patterns_from_domain,
    reduction_cases,
    result_type,
    with_domain,
)
from diopi_test.cases.template import CaseTemplate, DtypeSelection
from lib_rt.formats import format_of

EXTREME_DOMAINS = {
    "infinite": choice([nan, inf, -inf, *[2.0, -1.0, 0.5] * 7]),
    "all-high": choice([inf]),
    "all-low": choice([-inf]),
}
"""Domains by label: numbers among which a function may fail to find an extremum.

"all-high" and "all-low" contain only ∞ or −∞, which some functions use as the initial value of a search.
"""

NAN_OF_MANY = with_value_in_middle(nan, choice([0.0, 1.0, 2.0, 3.0]))
"""A domain of the numbers 0, 1, 2 and 3 in random order, with NaN as the middle element."""

MANY_ROWS = Axes.template("one-nan-of-many", (5, 1031), (1,))
"""A pattern of rows of 1,031 elements. Vendors use vector instructions or a library for them, which may lose a NaN."""

REASONS = {
    "length-one": "a single element is the extremum, at position 0",
    "first-of-equals-long-columns": "the case tests the position of the extremum and not its value",
    "all-high|all-low": "no element exceeds the initial value of a search for the extremum",
}
"""Why many wrong results can pass some cases (`Case.non_discriminating`), by a regular expression for labels."""

NEIGHBORING_INTEGERS = choice([2**62 + i for i in range(-20, 20)])
"""A domain of different int64 numbers that are equal after a conversion to float64."""


LARGE_AXES = (
    Axes.template("long-rows", (5, 65_537), (1,), large=True),
    Axes.template("many-rows", (70_001, 3), (1,), large=True),
    Axes.template("long-columns", (32_003, 7), (0,), large=True),
    Axes.template("long-rows-compared", (17, 50_021), (0,), large=True),
    Axes.template("five-axes", (11, 7, 67, 3, 17), (2,), large=True),
)
"""Large patterns with one axis. They are not for float16, which has too few different numbers."""


def _draw_adjacent(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Return neighboring numbers of the type from 1 on, in random order. Many are equal in a narrower type."""
    return 1 + rng.permutation(count) * format_of(dtype).epsilon


def _draw_peaks(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Return numbers from the standard normal distribution, with about one in 512 replaced by ±8 to ±2000."""
    return np.where(
        rng.random(count) < 1 / 512,
        rng.choice([-1.0, 1.0], count) * rng.uniform(8, 2000, count),
        rng.normal(0, 1, count),
    )


def position_templates(prototype: Prototype, patterns: Sequence[CaseTemplate[Axes]]) -> Iterator[CaseTemplate[Axes]]:
    """Yield templates of the positions of extrema.

    Args:
        prototype: The prototype of the function.
        patterns: The patterns, each with different numbers, except for bool.

    Yields:
        Templates of the patterns, and templates with equal, infinite, subnormal or neighboring numbers.
    """
    mixed_bools = [0, 1, 0, 0, 0, 0] if "max" in prototype.name.lower() else [1, 0, 1, 1, 1, 1]
    yield from patterns_from_domain(
        (*patterns, *LARGE_AXES), distinct, [dtype for dtype in prototype.dtypes if dtype is not Dtype.bool]
    )
    yield with_domain(FAR_ROWS, _draw_peaks, (F16,))
    yield from patterns_from_domain(patterns, choice(mixed_bools), (Dtype.bool,))
    yield with_domain(ROWS, choice([0, 1, 1, 1, 2]), DtypeSelection.all, "first-of-equals")
    for pattern in (LONG, LONG_COLUMNS):
        yield with_domain(pattern, integer_values(0, 9), (*half, F32, Dtype.int64), f"first-of-equals-{pattern.label}")
    yield with_domain(COLUMNS, EXTREME_DOMAINS["infinite"], floating, "infinite")
    for label in ("all-high", "all-low"):
        yield with_domain(KEPT_COLUMNS, EXTREME_DOMAINS[label], label=label)
    yield with_domain(COLUMNS, subnormal, floating, "subnormal")
    yield with_domain(COLUMNS, _draw_adjacent, floating, "adjacent")
    yield with_domain(MANY_ROWS, NAN_OF_MANY, floating)
    yield with_domain(KEPT_COLUMNS, full_range, integral, "whole-range")
    yield with_domain(ROWS, NEIGHBORING_INTEGERS, (Dtype.int64,), "neighbors")
    yield with_domain(
        ROWS,
        distinct,
        (F32, Dtype.int64),
        "int32-positions",
        results=result_type(Dtype.int32, ROWS.sizes.reduced_shape),
    )


@cases_for("diopiMax", "diopiMin", non_discriminating=REASONS)
def extremum_and_position_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of `diopiMax` and `diopiMin`, which compute extrema along an axis and their positions."""
    return reduction_cases(prototype, position_templates(prototype, (*ONE_AXIS, *KEEPDIM_TEMPLATES)))


@cases_for("diopiArgmax", "diopiArgmin", non_discriminating=REASONS)
def position_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of `diopiArgmax` and `diopiArgmin`: positions along an axis or in the flattened tensor."""
    further_templates = (
        with_domain(
            ALL_ELEMENTS,
            distinct,
            (F32, F16, Dtype.int64),
            "all-to-vector",
            results={"out": ResultOverride(shape=(1,))},
        ),
        with_domain(ALL_ELEMENTS, integer_values(0, 2), label="first-of-all"),
        with_domain(ALL_ELEMENTS, EXTREME_DOMAINS["infinite"], label="infinite-of-all"),
    )
    return reduction_cases(
        prototype, (*position_templates(prototype, (*ONE_AXIS, *KEEPDIM_TEMPLATES, *ALL_AXES)), *further_templates)
    )


def extremum_templates(
    prototype: Prototype, patterns: Iterable[CaseTemplate[Axes]], special_pattern: CaseTemplate[Axes]
) -> Iterator[CaseTemplate[Axes]]:
    """Yield templates of the values of extrema, without zeros of both signs in a slice.

    Args:
        prototype: The prototype of the function.
        patterns: The patterns for numbers from the full range.
        special_pattern: The pattern for infinite, special, subnormal, negative, positive and neighboring numbers.

    Yields:
        The templates.
    """
    yield from patterns_from_domain(patterns, full_range, prototype.dtypes)
    ranges = {
        "special": special_except(0.0, -0.0, nan),
        "subnormal": subnormal,
        "negative": uniform(-9, -1),
        "positive": uniform(1, 9),
    }
    for label, domain in {**EXTREME_DOMAINS, **ranges}.items():
        yield with_domain(special_pattern, domain, floating, label)
    yield with_domain(special_pattern, NEIGHBORING_INTEGERS, (Dtype.int64,), "neighbors")


LARGE_SIX_AXES = Axes.template("six-axes", SIX_AXES, (1, 3, 4), large=True)
"""A pattern of a large tensor with six axes. Three of them are reduced."""


@cases_for("diopiAmax", non_discriminating=REASONS)
def amax_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of `diopiAmax`, the maximum along one or several axes."""
    patterns = (*ONE_AXIS, *KEEPDIM_TEMPLATES, *SEVERAL_AXES, *ALL_AXES, *LARGE_AXES[:2], LARGE_SIX_AXES)
    further_templates = with_domain(MANY_ROWS, NAN_OF_MANY, floating), with_domain(FAR_ROWS, _draw_peaks, (F16,))
    return reduction_cases(prototype, (*extremum_templates(prototype, patterns, COLUMNS), *further_templates))


def _draw_ascending(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Return different numbers in ascending order. The extrema are the first and the last element."""
    return np.sort(distinct(rng, count, dtype))


def _draw_descending(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Return different numbers in descending order. The extrema are the first and the last element."""
    return _draw_ascending(rng, count, dtype)[::-1]


ALL_ELEMENTS_TEMPLATES = (
    Axes.template("matrix", (7, 5), (), all_dtypes=True, smoke=True),
    *(pattern for pattern in ALL_AXES if not pattern.sizes.keepdim),
    Axes.template("rank5", (2, 1, 3, 2, 2), ()),
    Axes.template("one", (1,), ()),
    Axes.template("long", (1031,), ()),
    Axes.template("all", (263, 257), (), large=True),
    Axes.template("six-axes", SIX_AXES, (), layout=transposed, large=True),
)
"""Patterns that reduce all elements of a tensor."""

FAR_APART = Axes.template("half-far-apart", (70_001,), (), layout=strides(31), large=True)
"""A pattern of a large vector with gaps between all elements, for float16."""


@cases_for(
    "diopiMaxAll",
    "diopiMinAll",
    non_discriminating={"infinite|one-nan-of-many": "a NaN is the extremum of all elements"},
)
def extremum_of_all_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of `diopiMaxAll` and `diopiMinAll`, which compute the extremum of all elements."""
    further_templates = (
        with_domain(LONG, domain, (F16, F32, Dtype.int32), label)
        for label, domain in {"ascending": _draw_ascending, "descending": _draw_descending}.items()
    )
    one_nan = with_domain(Axes.template("one-nan-of-many", (5, 1031), ()), NAN_OF_MANY, floating)
    return reduction_cases(
        prototype,
        (
            *extremum_templates(prototype, ALL_ELEMENTS_TEMPLATES, Axes.template("", (19,), ())),
            *further_templates,
            one_nan,
            with_domain(FAR_APART, full_range, (F16,)),
        ),
    )


TRUE_ELEMENTS: dict[int, list[complex]] = {
    0: [1],
    1: [1, 2, -1, 2, 4],
    2: [1.0, 0.25, -0.5, nan, inf],
    3: [1.0, 1j, -0.25j, complex(0, nan)],
}
"""Elements that count as true, by category of the element type: 0 bool, 1 integer, 2 floating, 3 complex.

Some elements are fractions or have only an imaginary part. A conversion to integers or to real numbers loses them.
"""


def _with_rare_numbers(rare: Sequence[complex], frequent: Sequence[complex], ratio: int = 6) -> Domain:
    """Return a domain in which some numbers are rare.

    Args:
        rare: The rare numbers.
        frequent: The other numbers.
        ratio: The ratio of the counts of all frequent numbers and all rare numbers.

    Returns:
        The domain.
    """
    return choice([*rare, *(frequent[i % len(frequent)] for i in range(ratio * len(rare)))])


HIGH_BITS = {Dtype.int16: 2**8, Dtype.int32: 2**16, Dtype.int64: 2**32}
"""By integer type, a number that becomes 0 if only the lower half of its bits is used."""


def _true_numbers(dtype: Dtype) -> Sequence[complex]:
    """Return numbers of the type that count as true."""
    return TRUE_ELEMENTS[category(dtype)]


def _false_numbers(dtype: Dtype) -> Sequence[complex]:
    """Return numbers of the type that count as false: zeros, with both signs in floating and complex types."""
    return [0.0, -0.0] if category(dtype) > 1 else [0]


def _with_rare_probability(rare: float, frequent: float, count: int) -> Domain:
    """Return a domain of two numbers, one of which is rare.

    Args:
        rare: The rare number.
        frequent: The other number.
        count: The inverse of the probability of the rare number.

    Returns:
        The domain.
    """

    def draw(rng: Generator, size: int, dtype: Dtype) -> NDArray[Any]:
        """Return `size` random elements."""
        return np.where(rng.random(size) * count < 1, rare, frequent)

    return draw


LARGE_TRUTH_TEMPLATES = (
    Axes.template("long-rows", (67, 4097), (1,), large=True),
    Axes.template("many-rows", (70_001, 3), (1,), large=True),
    Axes.template("long-columns", (32_003, 7), (0,), large=True),
    Axes.template("five-axes", (11, 7, 67, 3, 17), (2,), large=True),
)
"""Large patterns of `diopiAny` and `diopiAll`."""


def _large_truth_templates(is_any: bool) -> Iterator[CaseTemplate[Axes]]:
    """Yield large templates of `diopiAny` or `diopiAll`.

    On average, a slice contains one element that decides the result: true for `diopiAny`, false for `diopiAll`.

    Args:
        is_any: Whether the function is `diopiAny`.

    Yields:
        The templates.
    """
    values = (0.25, 0.0) if is_any else (0.0, 0.25)
    for pattern in LARGE_TRUTH_TEMPLATES:
        yield with_domain(pattern, _with_rare_probability(*values, pattern.sizes.shape[pattern.sizes.axes[0]]))
    yield with_domain(FAR_ROWS, _with_rare_probability(*values, 4097), (F16,))


@cases_for("diopiAny", "diopiAll")
def truth_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of `diopiAny` or `diopiAll`. The element that decides the result is rare in each slice."""
    is_any = prototype.base == "diopiAny"
    rare, frequent = (_true_numbers, _false_numbers) if is_any else (_false_numbers, _true_numbers)
    short = [pattern for pattern in ONE_OR_ALL_AXES_TEMPLATES if pattern.label != "long-rows"]
    templates = (
        *patterns_from_domain(
            short, domain_by_type(lambda dtype: _with_rare_numbers(rare(dtype), frequent(dtype))), prototype.dtypes
        ),
        with_domain(LONG_ROWS, domain_by_type(lambda dtype: _with_rare_numbers(rare(dtype), frequent(dtype), 200))),
        with_domain(ROWS, domain_by_type(lambda dtype: choice(_false_numbers(dtype))), DtypeSelection.all, "false"),
        with_domain(ROWS, domain_by_type(lambda dtype: choice(_true_numbers(dtype))), DtypeSelection.all, "true"),
        *(
            with_domain(ROWS, choice([high, *[0] * (6 * is_any)]), (dtype,), "high-bits")
            for dtype, high in HIGH_BITS.items()
        ),
        *_large_truth_templates(is_any),
    )
    return reduction_cases(prototype, templates)


CaseFacts(finds_extremes=True).declare("diopiMaxAll", "diopiMinAll", "diopiAmax")
