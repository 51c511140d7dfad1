"""Integers beside floating numbers that can't hold them: what meets in one call is converted to the common type first.

Each number that is rounded stands beside others with which an exact result tells whether it was: all are near
`first_gap`, from which on the format holds every second whole number only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.domains import Domain, choice
from diopi_test.cases.elementwise import Arguments, Domains, operands_of_two_types, tensor_arguments, with_domains
from diopi_test.cases.formats import format_of
from diopi_test.cases.template import CaseTemplate

PROMOTED_PAIRS = (
    (Dtype.int32, Dtype.float16),
    (Dtype.int16, Dtype.bfloat16),
    (Dtype.int32, Dtype.float32),
    (Dtype.int64, Dtype.float64),
)
"""Integer types with the floating one that they are converted to."""

ABOVE_FLOAT16 = 70000
"""Infinite in float16."""


def first_gap(dtype: Dtype) -> int:
    """The first whole number that a floating type holds while it doesn't hold the next."""
    return 1 << format_of(dtype).precision


def unrepresentable_integers(dtype: Dtype, signs: Sequence[int] = (1, -1)) -> Domain:
    """Whole numbers that a floating type can't hold: those next to them that it can are two more and one less."""
    gap = first_gap(dtype)
    numbers = [gap + 1, gap + 3, *([ABOVE_FLOAT16] if dtype is Dtype.float16 else [])]
    return choice([sign * number for number in numbers for sign in signs])


def representable_neighbors(dtype: Dtype) -> Domain:
    """What numbers of `unrepresentable_integers` become, and others whose sums with them the type holds too."""
    gap = first_gap(dtype)
    return choice([gap, gap + 4, -gap, -gap - 4])


def prime_factor(dtype: Dtype) -> int:
    """A prime factor of `first_gap` + 4."""
    return 3 if format_of(dtype).precision % 2 else 5


def promotion_templates(
    prototype: Prototype,
    domains: Callable[[Dtype], Domains],
    arguments: Arguments | None = None,
    floats_first: bool | None = None,
) -> Iterator[CaseTemplate]:
    """The first tensor holds integers and the others floating numbers, or the other way round; all exact.

    There are none of forms without other tensors.

    Args:
        domains: from a floating type to the domains of the tensors that meet in it.
        floats_first: which way; by default that of a result that the first tensor can hold.
    """
    turned = prototype.is_inplace if floats_first is None else floats_first
    for whole, floating in PROMOTED_PAIRS if len(tensor_arguments(prototype)) > 1 else ():
        one, other = (floating, whole) if turned else (whole, floating)
        yield with_domains(operands_of_two_types("meets", one, other, 20), domains(floating), "", arguments, exact=True)
