"""Integers near the precision of a floating-point type, which reveal the common type in which an operator computes.

An operator converts its operands to the common type first, which rounds some of these integers. The exact result of the
operator shows whether an operand was rounded.
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
    """Integers near the point from which on a floating-point type represents only every second integer.

    For float32, this point is 2²⁴: the type does not represent 2²⁴ + 1.

    Attributes:
        dtype: The floating type.
    """

    dtype: Dtype

    ABOVE_FLOAT16: ClassVar = 70_000
    """A number that rounds to infinity in float16."""

    @property
    def first(self) -> int:
        """Return the smallest positive integer n such that the type represents n, but not n + 1."""
        return 1 << format_of(self.dtype).precision

    @property
    def prime_factor(self) -> int:
        """Return a prime factor of `first` + 4."""
        return 3 if format_of(self.dtype).precision % 2 else 5

    def unrepresentable_integers(self, signs: Sequence[int] = (1, -1)) -> Domain:
        """Return a domain of integers that the type cannot represent, but whose neighbors it represents.

        For float16, the domain also contains `ABOVE_FLOAT16`.

        Args:
            signs: The signs of the integers.

        Returns:
            The domain.
        """
        numbers = [self.first + 1, self.first + 3, *([self.ABOVE_FLOAT16] if self.dtype is Dtype.float16 else [])]
        return choice([sign * number for number in numbers for sign in signs])

    def representable_neighbors(self) -> Domain:
        """Return a domain of the numbers to which `unrepresentable_integers` are rounded, except infinities."""
        return choice([self.first, self.first + 4, -self.first, -self.first - 4])
