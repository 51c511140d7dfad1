"""Domains, patterns and numbers that several modules of arithmetic cases share.

A pattern is a template that has only the shapes and layouts of operands (`diopi_test.cases.elementwise`). A domain is a
set or distribution of values from which the elements of a tensor are drawn (`diopi_test.cases.domains`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf, nan
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.dtypes import category, floating, leading_dtype
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.case import CaseClass
from diopi_test.cases.domains import Domain, choice, integer_values
from diopi_test.cases.elementwise import ROW, Elementwise, Operands, pattern_template
from diopi_test.cases.layouts import contiguous, strided, transposed
from diopi_test.cases.template import Arguments, ByDtype, CaseTemplate
from diopi_test.cases.type_promotion import IntegerGap
from lib_rt.dtypes import integer_range

CALLERS = CaseClass.callers
"""The class of cases with unusual arguments that callers pass, such as truth values in place of numbers."""

SMOKE_ROW_PATTERN = ROW.replace(smoke=True)
"""The pattern of a 4 × 5 matrix and a row, as a smoke case. Smoke cases are the small set that every run contains."""

TABLE_PATTERN = pattern_template("table", (9, 11), (9, 1))
"""A pattern of a 9 × 11 matrix, each row of which is combined with one element of a column."""

CUBE_PATTERN = pattern_template("cube", (6, 6, 6), (6, 1), (6,))
"""A pattern of a 6 × 6 × 6 tensor, a column and a row: all triples of six values can occur."""

TERNARY_PATTERNS = (
    pattern_template("three-shapes", (4, 1, 5), (3, 1), (5,), smoke=True),
    pattern_template("three-layouts", (4, 6), layouts=[contiguous, transposed, strided], result_layout=transposed),
)
"""Patterns for functions of three tensors: different shapes, which are broadcast, or different layouts."""


def domain_by_dtype(choose_domain: Callable[[Dtype], Domain]) -> Domain:
    """Return a domain that depends on the element type.

    Args:
        choose_domain: Returns the domain for an element type.

    Returns:
        The domain.
    """

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        return choose_domain(dtype)(rng, count, dtype)

    return draw


def domain_by_kind(of_floats: Domain, of_integers: Domain) -> Domain:
    """Return a domain that depends on the kind of the element type.

    Args:
        of_floats: The domain for floating-point and complex types.
        of_integers: The domain for integer types and bool.

    Returns:
        The domain.
    """
    return domain_by_dtype(lambda dtype: of_floats if category(dtype) >= 2 else of_integers)


def argument_by_category(of_bool: Any, of_integers: Any, of_floats: Any) -> ByDtype:
    """Return an argument that depends on the element type under test.

    Args:
        of_bool: The value for bool.
        of_integers: The value for integer types.
        of_floats: The value for floating-point and complex types.

    Returns:
        The argument of a template.
    """
    return ByDtype(lambda dtype: (of_bool, of_integers, of_floats)[min(category(dtype), 2)])


def replace_zeros(domain: Domain) -> Domain:
    """Return a domain that draws from `domain` and replaces every 0 by 1."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        values = domain(rng, count, dtype)
        return np.where(values == 0, 1, values)

    return draw


def draw_truth_values_or(first: bool, other_domain: Domain) -> Domain:
    """Return a domain of truth values for bool and of `other_domain` for all other types.

    Args:
        first: The truth value of a tensor with one element. Larger tensors contain both truth values.
        other_domain: The domain for all types except bool.

    Returns:
        The domain.
    """
    return domain_by_dtype(lambda dtype: choice([first, not first]) if dtype is Dtype.bool else other_domain)


def for_both_operands(domain: Domain) -> Mapping[str, Domain]:
    """Return `domain` as the domain of both operands, `input` and `other`."""
    return {"input": domain, "other": domain}


def draw_wide_integers(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Return random integers from 2⁶² − 3 to 2⁶² + 3 for int64, and from 97 to 103 for other types.

    Integers near 2⁶² become equal if a kernel converts them to float64.
    """
    top = 2**62 if dtype is Dtype.int64 else 100
    return top + rng.integers(-3, 3, count, endpoint=True)


def _draw_wide_floats(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Return random integers in [−16000, 16000]; every second one is divided by 1024."""
    return integer_values(-16000, 16000)(rng, count, dtype) / np.where(np.arange(count) % 2 == 0, 1, 1024)


HALF_PRECISION_INTEGERS = integer_values(-250, 250)
"""A domain of integers in [−250, 250], all of which float16 and bfloat16 represent."""

WIDE_NUMBERS = domain_by_kind(_draw_wide_floats, integer_values(-3000, 3000))
"""A domain of numbers that float16 and bfloat16 cannot all represent.

In float32, their sums and products with `HALF_PRECISION_INTEGERS` are exact. A kernel that computes in a narrower type
rounds these sums and products.
"""

SMALL_AND_WIDE_DOMAINS: Mapping[str, Domain] = {"input": HALF_PRECISION_INTEGERS, "other": WIDE_NUMBERS}
"""Domains of two operands: `HALF_PRECISION_INTEGERS` for `input`, and `WIDE_NUMBERS` for `other`."""

SMALL_AND_SPECIAL = choice([0.0, -0.0, 1.0, -1.5, 7.0, inf, -inf, nan, 2.0, -7.0])
"""A domain of zeros of both signs, small numbers, infinities and NaN."""

SIX_SPECIAL_VALUES = choice([0.0, -0.0, 1.5, inf, -inf, nan])
"""A domain of six values for functions of three tensors: zeros and infinities of both signs, NaN and 1.5."""


def rounded_in_one_operand(dtype: Dtype) -> Mapping[str, Domain]:
    """Return domains of an integer operand and a floating-point operand that are equal only after type promotion.

    Args:
        dtype: The floating-point type, to which both operands are promoted. It cannot represent the values of the
            integer operand, and rounds them to values of the floating-point operand.

    Returns:
        The domains of `input` and `other`. They are the same object, which draws different values for a floating-point
        operand and for an integer operand.
    """
    return for_both_operands(
        domain_by_kind(IntegerGap(dtype).representable_neighbors(), IntegerGap(dtype).unrepresentable_integers())
    )


INTEGERS_BELOW_64_BITS = (Dtype.uint8, Dtype.int8, Dtype.int16, Dtype.int32)
"""Integer types that are narrower than a number argument, which has 64 bits."""


def number_wrapping_to(value: int) -> ByDtype:
    """Return a number argument outside the range of the integer type under test that wraps around to `value`.

    Args:
        value: The number after the conversion to the integer type.

    Returns:
        The argument: for signed types, `value` plus the number of values of the type; for uint8, `value` minus this
        number, which is negative.
    """

    def number(dtype: Dtype) -> int:
        low, high = integer_range(dtype)
        return value + (high - low + 1) * (1 if low else -1)

    return ByDtype(number)


def special_value_templates(
    prototype: Prototype, arguments: Arguments | None = None, dtypes: Sequence[Dtype] = (*floating, Dtype.int8)
) -> Iterator[CaseTemplate[Operands]]:
    """Return one template per element type; its operands contain all pairs of special values.

    Args:
        prototype: The prototype of the function or form.
        arguments: Other arguments by name, such as numbers.
        dtypes: The element types. Only one of them, float32 if possible, has a smoke case, because the cases are large.

    Returns:
        The templates.
    """
    return Elementwise(prototype).special_value_pairs(arguments, dtypes, smoke=[leading_dtype(dtypes)])
