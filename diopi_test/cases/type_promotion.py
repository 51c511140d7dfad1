"""Integers at the precision of a floating type, with which type promotion shows.

An operator converts its operands to the common type first. Each number that is rounded occurs together with other
numbers, with which an exact result reveals whether it was rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from diopi_proto.types import Dtype
from diopi_test.cases.domains import Domain, choice
from lib_rt.formats import format_of


@dataclass(frozen=True)
class IntegerGap:
    """Integers near the first one from which on a floating type represents only every second integer.

    Attributes:
        dtype: The floating type.
    """

    dtype: Dtype

    ABOVE_FLOAT16: ClassVar = 70_000
    """A number that rounds to infinity in float16."""

    @property
    def first(self) -> int:
        """Return the first integer that the type represents while it does not represent the next one."""
        return 1 << format_of(self.dtype).precision

    @property
    def prime_factor(self) -> int:
        """Return a prime factor of `first` + 4."""
        return 3 if format_of(self.dtype).precision % 2 else 5

    def unrepresentable_integers(self, signs: Sequence[int] = (1, -1)) -> Domain:
        """Return a domain of integers that the type cannot represent, between representable neighbors."""
        numbers = [self.first + 1, self.first + 3, *([self.ABOVE_FLOAT16] if self.dtype is Dtype.float16 else [])]
        return choice([sign * number for number in numbers for sign in signs])

    def representable_neighbors(self) -> Domain:
        """Return a domain of what `unrepresentable_integers` round to, and of others with representable sums."""
        return choice([self.first, self.first + 4, -self.first, -self.first - 4])
