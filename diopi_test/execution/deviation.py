"""`Deviation`: how the wrong elements of a tensor differ from the expected ones, in a form that programs compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import final

_OPTIONAL = {"omit_default": True}
"""Metadata of fields that JSON omits if they have their default."""


class DeviationKind(StrEnum):
    """The way in which an element differs from the expected value."""

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
    """A property that all wrong elements share, which hints at the cause."""

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
    wrapped = "wrapped"
    """The element is the expected value of an element that is a multiple of 32,768 or 65,536 places away."""
    partly_unchanged = "partly_unchanged"
    """The element has its value from before the call, while other elements of the tensor have changed."""
    rearranged = "rearranged"
    """The tensor has the expected elements in reverse or transposed order, or each of the first half twice."""
    misplaced = "misplaced"
    """The element is the expected value of another element."""
    bfloat16 = "bfloat16"
    """Every element is exactly representable in bfloat16, although the tensor's type is wider."""
    float16 = "float16"
    """Every element is exactly representable in float16, although the tensor's type is wider."""
    float32 = "float32"
    """Every element is exactly representable in float32, although the tensor's type is wider."""
    through_float32 = "through_float32"
    """The integer, or an integer from which it is computed, was converted to float32 and back."""
    through_float64 = "through_float64"
    """The integer, or an integer from which it is computed, was converted to float64 and back."""
    in_32_bits = "in_32_bits"
    """The integer is the expected one truncated to 32 bits."""
    integral = "integral"
    """The element is the expected value without its fraction, or rounded to an integer."""


NARROWER_TYPES = (ValueRelation.bfloat16, ValueRelation.float16, ValueRelation.float32)
"""The relations that name a floating-point type narrower than the tensor's type, in the order of precision."""


@final
@dataclass(frozen=True, kw_only=True)
class Region:
    """A condition on the values of one parameter that holds at every wrong element.

    The value of an input at an element is the value from which the element is computed. For the conditions
    `far_from_zero` and `near_zero`, `inside` and `outside` are absolute values.

    Attributes:
        parameter: the name of the input, or `expected` for the expected result.
        condition: a class of special values such as `NaN`; or a range: `below`, `above`, `far_from_zero` or
            `near_zero`.
        inside: for a range, the value at a wrong element that is nearest to the end of the range; all wrong elements
            have this value or one further inside the range. None for special values.
        outside: for a range, the nearest value at a correct element outside the range; None if there is none, or if
            the range contains correct elements, too.
    """

    parameter: str
    condition: str
    inside: float | None = field(default=None, metadata=_OPTIONAL)
    outside: float | None = field(default=None, metadata=_OPTIONAL)


@final
@dataclass(frozen=True, kw_only=True)
class Deviation:
    """The way in which the wrong elements of a tensor differ from the expected elements.

    Attributes:
        kinds: the number of wrong elements of each kind, by the kind's name.
        units: the root mean square of the error divided by the unit of the budget, over the wrong elements of the kind
            `rounding`; None without a budget, or if no element has this kind.
        relation: the most specific property that all wrong elements share; None if there is none.
        value: depends on the relation. For `scaled` and `negated`, the factor; for `shifted`, the difference. For
            `zero`, `constant` and `saturated`, the value of the first wrong element. None for other relations.
        is_whole: for the relation `zero`, whether the correct elements are zero, too.
        regions: the most specific condition of each parameter that has a condition.
    """

    kinds: Mapping[str, int]
    units: float | None = field(default=None, metadata=_OPTIONAL)
    relation: ValueRelation | None = field(default=None, metadata=_OPTIONAL)
    value: float | None = field(default=None, metadata=_OPTIONAL)
    is_whole: bool = field(default=False, metadata=_OPTIONAL)
    regions: Sequence[Region] = field(default=(), metadata=_OPTIONAL)

    def has(self, kind: DeviationKind) -> bool:
        """Return whether an element differs in this way."""
        return bool(self.kinds.get(kind.value))
