"""Cases of functions that bound numbers: clamp, clamp-min, clamp-max, maximum and minimum.

A pattern is a template that has only the shapes and layouts of operands. A domain is a set of values from which the
elements of a tensor are drawn. A case is non-discriminating if an implementation with a coarse error passes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf, nan
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.dtypes import floating, is_floating
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.arithmetic.values import (
    CALLERS,
    CUBE_PATTERN,
    HALF_PRECISION_INTEGERS,
    TERNARY_PATTERNS,
    WIDE_NUMBERS,
    argument_by_category,
    domain_by_kind,
    draw_truth_values_or,
    draw_wide_integers,
    number_wrapping_to,
    special_value_templates,
)
from diopi_test.cases.case import Case, cases_for
from diopi_test.cases.domains import Domain, choice, full_range, integer_values, normal, special_values, uniform
from diopi_test.cases.elementwise import ROW, Elementwise, Operands, pattern_template, vary_argument
from diopi_test.cases.facts import CaseFacts, NumberChoice
from diopi_test.cases.layouts import strided, transposed
from diopi_test.cases.template import Arguments, ByDtype, CaseTemplate

F16, BF16, F32 = Dtype.float16, Dtype.bfloat16, Dtype.float32
"""The element types of some templates."""


def without_negative_zero(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Return the special values of the type in order, repeated, with 0 in place of −0.0.

    If a maximum or minimum has to choose between two zeros of different signs, either is a valid result.
    """
    values = special_values(dtype)
    return np.resize(np.where(values == 0, 0, values), count)


def with_single_number_near_zero(domain: Domain) -> Domain:
    """Return a domain like `domain`, except that a single floating-point number is between −0.5 and 0.5.

    A tensor with one element then is a bound that lies in the middle of the other operand's values.
    """

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        return (uniform(-0.5, 0.5) if count == 1 and is_floating(dtype) else domain)(rng, count, dtype)

    return draw


def _domains_around_bounds(prototype: Prototype) -> Mapping[str, Domain]:
    """Return the domains of the tensor arguments by name, such that the bounds change some values and keep others.

    Floating-point values spread around 0 more widely than the bounds. Integers come from the whole range of the type.
    """
    is_upper = prototype.base in ("diopiClampMax", "diopiMinimum")
    domains = {"input": normal(3), "min": uniform(-2, 1), "max": uniform(0, 2), "other": normal(3)}
    integers = draw_truth_values_or(is_upper, full_range)
    names = Elementwise(prototype).tensor_names()
    return {name: domain_by_kind(with_single_number_near_zero(domains[name]), integers) for name in names}


def middle_bound(of_bool: int, of_uint8: int, of_integers: int, of_floats: float) -> ByDtype:
    """Return a bound that depends on the element type under test.

    Args:
        of_bool: The bound for bool.
        of_uint8: The bound for uint8.
        of_integers: The bound for the other integer types.
        of_floats: The bound for floating-point types.

    Returns:
        The argument of a template.
    """
    other_dtypes = argument_by_category(of_bool, of_integers, of_floats)
    return ByDtype(lambda dtype: of_uint8 if dtype is Dtype.uint8 else other_dtypes.resolve(dtype))


NAN_BOUND_REASON = "if a bound is NaN, every result is NaN"
"""The reason why cases with a NaN bound are non-discriminating."""

CROSSED_REASON = "if the lower bound exceeds the upper bound, every result is the upper bound"
"""The reason why cases whose lower bound exceeds the upper bound are non-discriminating."""


@cases_for("diopiClamp", non_discriminating={"crossed": CROSSED_REASON, "nan-min|nan-max": NAN_BOUND_REASON})
def clamp_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of clamping to a lower and an upper bound."""
    domains = _domains_around_bounds(prototype)
    usual = Elementwise(prototype).distribute(
        domains, {"min": middle_bound(0, 60, 2, -0.3), "max": middle_bound(1, 180, 90, 1.1)}
    )
    make_cases = _clamp_by_tensors if "min" in domains else _clamp_by_numbers
    templates = [*usual, *make_cases(prototype, domains)]
    return Elementwise(prototype).cases(templates)


def _clamp_by_tensors(prototype: Prototype, domains: Mapping[str, Domain]) -> Iterator[CaseTemplate[Operands]]:
    """Yield the templates of `diopiClamp` whose bounds are tensors, with the domains of these tensors by name."""
    exchangeable_domains = {**domains, "min": domains["max"]}
    for pattern in (ROW, pattern_template("matrix", (3, 4), layouts=[transposed, strided])):
        yield pattern.with_domains(exchangeable_domains, "no-min", {"min": None}, [F32, BF16, Dtype.int16])
        yield pattern.with_domains(exchangeable_domains, "no-max", {"max": None}, [F32, BF16, Dtype.int16])
    for pattern in TERNARY_PATTERNS:
        yield pattern.with_domains(domains)
    ends = choice([0.0, 1.5, inf, -inf, nan, -2.0])
    yield CUBE_PATTERN.with_domains(dict.fromkeys(domains, ends), "special", dtypes=floating)
    yield ROW.with_domains({**domains, "min": uniform(0.5, 1), "max": uniform(-1, 0)}, "crossed")
    yield ROW.with_domains(dict.fromkeys(domains, draw_wide_integers), "wide", dtypes=[Dtype.int64])
    yield from Elementwise(prototype).mixed_types(dict.fromkeys(domains, HALF_PRECISION_INTEGERS))


FLOAT_BOUNDS: Mapping[str, Arguments] = {
    "no-min": {"min": None, "max": 0.5},
    "no-max": {"min": 0.5, "max": None},
    "ints": {"min": -1, "max": 2},
    "crossed": {"min": 1.5, "max": -0.5},
    "third": {"min": -1 / 3, "max": 1 / 3},
    "infinite": {"min": -inf, "max": inf},
    "nan-min": {"min": nan, "max": 1.0},
    "nan-max": {"min": -1.0, "max": nan},
}
"""Bounds of floating-point tensors as numbers, by the label of the template. None omits a bound."""

SIGNED_ZEROS = {"input": choice([0.0, -0.0, 1.5, -1.5])}
"""Inputs with zeros of both signs. A bound of 0 must not change the sign of a zero, because 0.0 and −0.0 are equal."""

ZERO_BOUNDS: Mapping[str, Arguments] = {
    "zero-min": {"min": 0.0, "max": None},
    "minus-zero-min": {"min": -0.0, "max": 1},
    "zero-max": {"min": None, "max": 0.0},
    "minus-zero-max": {"min": -1, "max": -0.0},
}
"""Bounds that are 0.0 or −0.0, by the label of the template."""

MIDDLE_BOUND = middle_bound(0, 100, 3, 0)
"""A bound for `INTEGER_BOUNDS` that changes some values of an integer type and keeps others."""

INTEGER_BOUNDS: Mapping[str, Arguments] = {
    "no-min": {"min": None, "max": MIDDLE_BOUND},
    "no-max": {"min": MIDDLE_BOUND, "max": None},
    "crossed": {"min": 9, "max": 4},
}
"""Bounds of integer tensors, by the label of the template. None omits a bound."""

FRACTIONAL_BOUNDS = vary_argument("", "max", {"float-bounds": 2.5, "float-min": None}, min=-1.5)
"""Bounds for integer tensors that are not integers, by the label of the template."""

FRACTIONAL_BOUND_TEMPLATES = ROW.variants(
    {"input": integer_values(-5, 5)}, FRACTIONAL_BOUNDS, [Dtype.int32], inplace=False
)
"""Templates of an int32 input with bounds that are not integers; the result has a floating-point type."""


def _clamp_by_numbers(prototype: Prototype, domains: Mapping[str, Domain]) -> Iterator[CaseTemplate[Operands]]:
    """Yield the templates of `diopiClamp` whose bounds are numbers, with the domain of the input by name."""
    yield from ROW.variants(domains, FLOAT_BOUNDS, [F32, F16])
    yield from ROW.variants(SIGNED_ZEROS, ZERO_BOUNDS, [F32, F16])
    yield from ROW.variants(domains, INTEGER_BOUNDS, [Dtype.int32, Dtype.uint8])
    yield ROW.with_domains({"input": draw_wide_integers}, "wide", {"min": 2**62 - 1, "max": 2**62 + 1}, [Dtype.int64])
    yield ROW.with_domains(
        domains, "wrapped-number", {"min": number_wrapping_to(90), "max": number_wrapping_to(170)}, [Dtype.uint8]
    )
    yield from special_value_templates(prototype, {"min": -1.5, "max": 2.5}, floating)
    yield from FRACTIONAL_BOUND_TEMPLATES
    yield from (template.to_dtype(Dtype.int32).replace(case_class=CALLERS) for template in FRACTIONAL_BOUND_TEMPLATES)
    yield ROW.with_domains(
        {"input": integer_values(-5, 5)}, "truth-max", {"min": -3, "max": True}, [Dtype.int32, F32], case_class=CALLERS
    )


TRIVIAL_BOUND_REASONS = {"at-(minus-)?inf": "no element exceeds an infinite bound", "at-nan": NAN_BOUND_REASON}
"""The reasons why cases with a bound of infinity or NaN are non-discriminating, by a pattern of labels."""

SINGLE_BOUNDS = {"0": 0.0, "inf": inf, "minus-inf": -inf, "nan": nan, "third": -1 / 3, "int": 1}
"""Bounds of `diopiClampMin` and `diopiClampMax` by the end of the label."""

SPECIAL_PAIRS = pattern_template("square", (19, 19), (19, 1), smoke=[F32], dtypes=[*floating, Dtype.int8])
"""A pattern that combines all pairs of the 19 special values of a floating-point type."""


@cases_for("diopiClampMin", "diopiClampMax", "diopiMaximum", "diopiMinimum", non_discriminating=TRIVIAL_BOUND_REASONS)
def bound_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of clamping a tensor to one bound, and of the maximum or minimum of two tensors."""
    name = prototype.arguments[1].name
    domains = _domains_around_bounds(prototype)
    templates = [
        *Elementwise(prototype).distribute(
            domains, {name: middle_bound(int(prototype.base == "diopiClampMax"), 90, 7, 0.3)}
        ),
        ROW.with_domains(dict.fromkeys(domains, draw_wide_integers), "wide", {name: 2**62 + 1}, [Dtype.int64]),
    ]
    if name in domains:
        templates.append(SPECIAL_PAIRS.with_domains(dict.fromkeys(domains, without_negative_zero), "special"))
        templates += Elementwise(prototype).mixed_types({"input": HALF_PRECISION_INTEGERS, name: WIDE_NUMBERS})
    else:
        templates += ROW.variants(domains, vary_argument("at", name, SINGLE_BOUNDS), [F32, F16])
        templates.append(ROW.with_domains(domains, "wrapped-number", {name: number_wrapping_to(120)}, [Dtype.uint8]))
        templates += ROW.variants(
            SIGNED_ZEROS, vary_argument("at", name, {"zero": 0.0, "minus-zero": -0.0}), [F32, F16]
        )
        templates += special_value_templates(prototype, {name: -1.5}, floating)
        few_values = {"input": integer_values(-3, 3)}
        templates.append(
            ROW.with_domains(few_values, "float-number", {name: 0.5}, [Dtype.int32, Dtype.bool], inplace=False)
        )
        truncated = ROW.with_domains(few_values, "float-number", {name: -1.5}, [Dtype.int32], case_class=CALLERS)
        templates.append(truncated.to_dtype(Dtype.int32))
    return Elementwise(prototype).cases(templates)


CaseFacts(number_choices=[NumberChoice("min", "bool", False)]).declare("diopiClamp", "diopiClampMin")
CaseFacts(huge_form="scalar").declare("diopiClamp")
