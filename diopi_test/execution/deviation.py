"""`Deviation`: how the wrong elements of a tensor differ from the expected ones, in a form that programs compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import final

_OPTIONAL = {"omit_default": True}


class DeviationKind(StrEnum):
    """The way in which an element differs from its expected value."""

    wrong_value = "wrong_value"
    """A number of another size or sign, or a wrong integer, truth value or index."""
    rounding = "rounding"
    """A number whose leading digits are correct."""
    lost_nan = "lost_nan"
    """A number or an infinity where NaN is expected."""
    invented_nan = "invented_nan"
    """NaN where a number or an infinity is expected."""
    lost_infinity = "lost_infinity"
    """A finite number where an infinity is expected."""
    invented_infinity = "invented_infinity"
    """An infinity where a finite number is expected."""
    sign_of_zero = "sign_of_zero"
    """A zero with the opposite sign."""
    flushed = "flushed"
    """A zero where a subnormal number is expected."""


class ValueRelation(StrEnum):
    """A relation that holds between every wrong element and its expected value."""

    unchanged = "unchanged"
    """The tensor has its values from before the call."""
    zero = "zero"
    """The element is zero."""
    saturated = "saturated"
    """All wrong elements are the largest or smallest number of the type."""
    constant = "constant"
    """All wrong elements have the same value although several values are expected."""
    negated = "negated"
    """The element is the negated expected value."""
    scaled = "scaled"
    """The element is a constant multiple of the expected value."""
    shifted = "shifted"
    """The element is the expected value plus a constant."""
    misplaced = "misplaced"
    """The element is the expected value of another element."""
    bfloat16 = "bfloat16"
    """Every element of the tensor is a number of bfloat16, which is narrower than the tensor's type."""
    float16 = "float16"
    """Every element of the tensor is a number of float16, which is narrower than the tensor's type."""
    float32 = "float32"
    """Every element of the tensor is a number of float32, which is narrower than the tensor's type."""
    through_float32 = "through_float32"
    """The integer was converted to float32 and back."""
    through_float64 = "through_float64"
    """The integer was converted to float64 and back."""
    in_32_bits = "in_32_bits"
    """The integer has the lowest 32 bits of the expected one."""
    integral = "integral"
    """The element is the expected value without its fraction, or rounded to an integer."""


NARROWER_TYPES = (ValueRelation.bfloat16, ValueRelation.float16, ValueRelation.float32)
"""The relations that name a floating-point type."""


@final
@dataclass(frozen=True, kw_only=True)
class Region:
    """A set of inputs to which all wrong elements belong.

    Attributes:
        parameter: the input, or `expected` for the expected result.
        condition: a class of special values such as `NaN`; or `below`, `above`, `far_from_zero` or `near_zero`.
        inside: for a range, the value of a wrong element that is nearest to the bound of the range.
        outside: for a range, the value of a correct element beyond the bound that is nearest to it; None if no element
            is correct, or if the range contains correct elements, too.
    """

    parameter: str
    condition: str
    inside: float | None = field(default=None, metadata=_OPTIONAL)
    outside: float | None = field(default=None, metadata=_OPTIONAL)


@final
@dataclass(frozen=True, kw_only=True)
class Deviation:
    """How the wrong elements of a tensor differ from the expected ones.

    Attributes:
        kinds: the number of wrong elements of each kind, by the kind's name.
        units: the root mean square of error / unit over wrong elements of the kind `rounding`; None without budgets.
        relation: the relation that holds for all wrong elements; None if there is none.
        value: of the relation: the factor, the difference, or the value that all wrong elements have.
        regions: the sets of inputs to which all wrong elements belong, the most specific one of each parameter.
    """

    kinds: Mapping[str, int]
    units: float | None = field(default=None, metadata=_OPTIONAL)
    relation: ValueRelation | None = field(default=None, metadata=_OPTIONAL)
    value: float | None = field(default=None, metadata=_OPTIONAL)
    regions: Sequence[Region] = field(default=(), metadata=_OPTIONAL)

    def has(self, kind: DeviationKind) -> bool:
        """Return whether an element differs in this way."""
        return bool(self.kinds.get(kind.value))
