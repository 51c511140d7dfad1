"""Domains, patterns and numbers that several modules of arithmetic cases share.

A pattern is a template that has only the shapes and layouts of operands (`diopi_test.cases.elementwise`).
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
"""The class of calls that programs make with unusual arguments."""

BASIC_ROW = ROW.replace(smoke=True)
"""The pattern of a matrix and a row, for smoke cases."""

TABLE = pattern_template("table", (9, 11), (9, 1))
"""A pattern in which each row of the first operand is combined with one element of the second operand."""

CUBE = pattern_template("cube", (6, 6, 6), (6, 1), (6,))
"""A pattern of a cube, a column and a row, which are broadcast to a cube."""

TERNARY = (
    pattern_template("three-shapes", (4, 1, 5), (3, 1), (5,), smoke=True),
    pattern_template("three-layouts", (4, 6), layouts=[contiguous, transposed, strided], result_layout=transposed),
)
"""Patterns for functions with three tensors."""


def by_dtype(chosen: Callable[[Dtype], Domain]) -> Domain:
    """Return a domain that draws from the domain `chosen(dtype)` for the element type `dtype`."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        return chosen(dtype)(rng, count, dtype)

    return draw


def by_kind(of_floats: Domain, of_integers: Domain) -> Domain:
    """Return a domain that draws floating and complex numbers from one domain, integers and bool from another."""
    return by_dtype(lambda dtype: of_floats if category(dtype) >= 2 else of_integers)


def by_category(of_bool: Any, of_integers: Any, of_floats: Any) -> ByDtype:
    """Return an argument that depends on the element type: one value each for bool, integers, and all other types."""
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
    """Draw integers within 3 of 2⁶² for int64, which float64 cannot tell apart, and within 3 of 100 for other types."""
    top = 2**62 if dtype is Dtype.int64 else 100
    return top + rng.integers(-3, 3, count, endpoint=True)


def _wide_floats(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Draw integers in [−16000, 16000], and divide every second one by 1024."""
    return integer_values(-16000, 16000)(rng, count, dtype) / np.where(np.arange(count) % 2 == 0, 1, 1024)


SMALL = integer_values(-250, 250)
"""Integers in [−250, 250], which half precision represents."""

WIDE = by_kind(_wide_floats, integer_values(-3000, 3000))
"""Numbers whose sums and products with `SMALL` are exact in float32, while half precision can't hold them all."""
SMALL_BY_WIDE: Mapping[str, Domain] = {"input": SMALL, "other": WIDE}
"""Domains of the operands: `SMALL` for `input`, and `WIDE` for `other`."""

ENDS = choice([0.0, -0.0, 1.0, -1.5, 7.0, inf, -inf, nan, 2.0, -7.0])
"""Zeros, small numbers, infinities and NaN."""

SPECIAL_AND_FINITE = choice([0.0, -0.0, 1.5, inf, -inf, nan])
"""Special values and one ordinary number, for sums and products of three tensors."""


def rounded_in_one_operand(dtype: Dtype) -> Mapping[str, Domain]:
    """Return domains of integers for an operand of an integer type and an operand of a floating-point type.

    Args:
        dtype: The common type. It rounds the numbers of the integer operand, and represents the others exactly.

    Returns:
        The domains of `input` and `other`.
    """
    return for_both_operands(
        by_kind(IntegerGap(dtype).representable_neighbors(), IntegerGap(dtype).unrepresentable_integers())
    )


INTEGERS = (Dtype.uint8, Dtype.int8, Dtype.int16, Dtype.int32)
"""Integer types that cannot represent each integer of a `diopiScalar_t`."""


def number_wrapping_to(value: int) -> ByDtype:
    """Return the nearest number outside an integer type's range that wraps around to `value`; negative for uint8."""

    def number(dtype: Dtype) -> int:
        low, high = integer_range(dtype)
        return value + (high - low + 1) * (1 if low else -1)

    return ByDtype(number)


def special_value_templates(
    prototype: Prototype, arguments: Arguments | None = None, dtypes: Sequence[Dtype] = (*floating, Dtype.int8)
) -> Iterator[CaseTemplate[Operands]]:
    """Yield cases of special values in these types; because they are large, only one type has a smoke case."""
    return Elementwise(prototype).special_value_pairs(arguments, dtypes, smoke=[leading_dtype(dtypes)])
