"""Type promotion: integers with floating numbers that cannot represent them.

An operator converts its operands to the common type first.

Each number that is rounded stands beside others with which an exact result reveals whether it was rounded. All numbers
are near `first_gap`, from which on the format represents only every second integer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.domains import Domain, choice
from diopi_test.cases.elementwise import Domains, operands_of_two_types, tensor_arguments, with_domains
from diopi_test.cases.formats import format_of
from diopi_test.cases.template import Arguments, CaseTemplate

PROMOTED_PAIRS = (
    (Dtype.int32, Dtype.float16),
    (Dtype.int16, Dtype.bfloat16),
    (Dtype.int32, Dtype.float32),
    (Dtype.int64, Dtype.float64),
)
"""Integer types with the floating type that they are promoted to."""

ABOVE_FLOAT16 = 70000
"""A number that rounds to infinity in float16."""


def first_gap(dtype: Dtype) -> int:
    """Return the first integer that a floating type represents while it doesn't represent the next."""
    return 1 << format_of(dtype).precision


def unrepresentable_integers(dtype: Dtype, signs: Sequence[int] = (1, -1)) -> Domain:
    """Return a domain of integers that a floating type cannot represent, between representable neighbors."""
    gap = first_gap(dtype)
    numbers = [gap + 1, gap + 3, *([ABOVE_FLOAT16] if dtype is Dtype.float16 else [])]
    return choice([sign * number for number in numbers for sign in signs])


def representable_neighbors(dtype: Dtype) -> Domain:
    """Return a domain of what `unrepresentable_integers` round to, and of others with representable sums with them."""
    gap = first_gap(dtype)
    return choice([gap, gap + 4, -gap, -gap - 4])


def prime_factor(dtype: Dtype) -> int:
    """Return a prime factor of `first_gap` + 4."""
    return 3 if format_of(dtype).precision % 2 else 5


def promotion_templates(
    prototype: Prototype,
    domains: Callable[[Dtype], Domains],
    arguments: Arguments | None = None,
    floats_first: bool | None = None,
) -> Iterator[CaseTemplate[Any]]:
    """Yield exact templates in which the first tensor holds integers and the others floating numbers, or the reverse.

    Forms without other tensors have none.

    Args:
        prototype: The prototype of the function.
        domains: Returns the domains of the tensors for the floating type that they are promoted to.
        arguments: Other arguments by name.
        floats_first: Whether the first tensor holds floating numbers; None for the order in which the first tensor can
            hold the result.

    Yields:
        One template per pair of types.
    """
    floats_first_now = prototype.is_inplace if floats_first is None else floats_first
    for whole, floating in PROMOTED_PAIRS if len(tensor_arguments(prototype)) > 1 else ():
        first_dtype, second_dtype = (floating, whole) if floats_first_now else (whole, floating)
        yield with_domains(
            operands_of_two_types("meets", first_dtype, second_dtype, 20), domains(floating), "", arguments, exact=True
        )
