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

BASIC_ROW = ROW.replace(smoke=True)
"""The pattern of a 4 × 5 matrix and a row, for smoke cases (the small set of cases that every run contains)."""

TABLE = pattern_template("table", (9, 11), (9, 1))
"""A pattern of a 9 × 11 matrix, each row of which is combined with one element of a column."""

CUBE = pattern_template("cube", (6, 6, 6), (6, 1), (6,))
"""A pattern of a 6 × 6 × 6 tensor, a column and a row, so that all triples of six values can occur."""

TERNARY = (
    pattern_template("three-shapes", (4, 1, 5), (3, 1), (5,), smoke=True),
    pattern_template("three-layouts", (4, 6), layouts=[contiguous, transposed, strided], result_layout=transposed),
)
"""Patterns for functions of three tensors: different shapes, which are broadcast, or different layouts."""


def by_dtype(choose_domain: Callable[[Dtype], Domain]) -> Domain:
    """Return a domain that depends on the element type.

    Args:
        choose_domain: Returns the domain for an element type.

    Returns:
        The domain.
    """

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        return choose_domain(dtype)(rng, count, dtype)

    return draw


def by_kind(of_floats: Domain, of_integers: Domain) -> Domain:
    """Return a domain that depends on the kind of the element type.

    Args:
        of_floats: The domain for floating-point and complex types.
        of_integers: The domain for integer types and bool.

    Returns:
        The domain.
    """
    return by_dtype(lambda dtype: of_floats if category(dtype) >= 2 else of_integers)


def by_category(of_bool: Any, of_integers: Any, of_floats: Any) -> ByDtype:
    """Return an argument that depends on the element type under test.

    Args:
        of_bool: The value for bool.
        of_integers: The value for integer types.
        of_floats: The value for floating-point and complex types.

    Returns:
        The argument of a template.
    """
    return ByDtype(lambda dtype: (of_bool, of_integers, of_floats)[min(category(dtype), 2)])


def nonzero(domain: Domain) -> Domain:
    """Return a domain like `domain` with 1 in place of every 0."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        values = domain(rng, count, dtype)
        return np.where(values == 0, 1, values)

    return draw


def truth_values_or(first: bool, other_domain: Domain) -> Domain:
    """Return a domain that draws truth values for bool, and from `other_domain` for other types.

    If only one truth value is drawn, it is `first`.
    """
    return by_dtype(lambda dtype: choice([first, not first]) if dtype is Dtype.bool else other_domain)


def for_both_operands(domain: Domain) -> Mapping[str, Domain]:
    """Return `domain` as the domain of both operands, `input` and `other`."""
    return {"input": domain, "other": domain}


def wide_integers(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Return integers within 3 of 2⁶² for int64, and within 3 of 100 for other types.

    Integers near 2⁶² become equal if a kernel converts them to float64.
    """
    top = 2**62 if dtype is Dtype.int64 else 100
    return top + rng.integers(-3, 3, count, endpoint=True)


def _wide_floats(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Draw integers in [−16000, 16000], with every second one divided by 1024."""
    return integer_values(-16000, 16000)(rng, count, dtype) / np.where(np.arange(count) % 2 == 0, 1, 1024)


SMALL = integer_values(-250, 250)
"""A domain of integers in [−250, 250], all of which float16 and bfloat16 represent."""

WIDE = by_kind(_wide_floats, integer_values(-3000, 3000))
"""A domain of numbers that float16 and bfloat16 cannot all represent.

In float32, their sums and products with `SMALL` are exact. A kernel that computes in a narrower type makes errors.
"""

SMALL_BY_WIDE: Mapping[str, Domain] = {"input": SMALL, "other": WIDE}
"""Domains of two operands: `SMALL` for `input`, and `WIDE` for `other`."""

ENDS = choice([0.0, -0.0, 1.0, -1.5, 7.0, inf, -inf, nan, 2.0, -7.0])
"""A domain of zeros of both signs, small numbers, infinities and NaN."""

SPECIAL_AND_FINITE = choice([0.0, -0.0, 1.5, inf, -inf, nan])
"""A domain of six values, zeros, infinities, NaN and 1.5, for functions of three tensors."""


def rounded_in_one_operand(dtype: Dtype) -> Mapping[str, Domain]:
    """Return domains of an integer operand and a floating-point operand that are equal only after type promotion.

    Args:
        dtype: The floating-point type, to which both operands are promoted. It cannot represent the values of the
            integer operand, and rounds them to values of the floating-point operand.

    Returns:
        The domains of `input` and `other`. Both have the same domain, which depends on the type of the operand.
    """
    return for_both_operands(
        by_kind(IntegerGap(dtype).representable_neighbors(), IntegerGap(dtype).unrepresentable_integers())
    )


INTEGERS = (Dtype.uint8, Dtype.int8, Dtype.int16, Dtype.int32)
"""Integer types that cannot represent every number argument, because number arguments are 64 bits wide."""


def number_wrapping_to(value: int) -> ByDtype:
    """Return a number argument outside the range of the integer type under test that wraps around to `value`.

    Args:
        value: The number after the conversion to the integer type.

    Returns:
        The argument: `value` plus the number of values of the type; for uint8 minus this number, so that it is
        negative.
    """

    def number(dtype: Dtype) -> int:
        low, high = integer_range(dtype)
        return value + (high - low + 1) * (1 if low else -1)

    return ByDtype(number)


def special_value_templates(
    prototype: Prototype, arguments: Arguments | None = None, dtypes: Sequence[Dtype] = (*floating, Dtype.int8)
) -> Iterator[CaseTemplate[Operands]]:
    """Return one template per element type, in which all combinations of the operands' special values occur.

    Args:
        prototype: The prototype of the function or form.
        arguments: Other arguments by name, such as numbers.
        dtypes: The element types. Only one of them, float32 if possible, has a smoke case, because the cases are large.

    Returns:
        The templates.
    """
    return Elementwise(prototype).special_value_pairs(arguments, dtypes, smoke=[leading_dtype(dtypes)])
