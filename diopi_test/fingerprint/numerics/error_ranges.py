"""Summarize the measured errors of an elementary function as a few ranges of arguments, each with one error bound.

Errors are measured for each *binade* of the argument: the range between two neighboring powers of two. An error has
three measures: units in the last place (ulp) of the exact result, the error relative to the exact result, and the
absolute error.

Neighboring binades are joined to a range if one bound describes their errors within the factor `MAX_RATIO`. Bounds in
ulp are rounded up to a value of `ULP_BOUNDS`. Other bounds are enlarged by `MARGIN` and rounded up to two significant
digits. The largest error of all arguments can exceed the largest error of the sample by some percent. This causes no
failures in runs, because the suite accepts a single element with several times the declared error.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from diopi_impl.numerics import ErrorBound
from diopi_impl.numerics.validation import FLOAT32_EPSILON, MAX_RELATIVE_ERROR

MARGIN = 1.02
"""The factor by which measured relative and absolute errors are enlarged before they are rounded up."""

TOLERANCE = 0.01
"""The possible error of a measured error, in ulp; it exists because the float64 reference is not exact."""

MAX_CORRECT_ULP = 1.0
"""Functions with errors up to this bound, in ulp, need no declaration."""

ULP_BOUNDS = (2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0, 96.0, 128.0)
"""The bounds in ulp that are declared; larger errors are declared as relative or absolute errors."""

MAX_RATIO = 3.0
"""The largest ratio between the errors of two binades that share a declared range."""

MEASURES = ("ulp", "relative", "absolute")
"""The measures of errors, in the order of preference."""


@final
@dataclass(frozen=True, kw_only=True)
class ErrorRange:
    """The errors for arguments in a range, which consists of one or several binades.

    Attributes:
        minimum, maximum: the limits of the range.
        errors: the largest error of each binade in the range, by measure.
        result: the largest magnitude of an exact result in the range.
    """

    minimum: float
    maximum: float
    errors: Mapping[str, Sequence[float]]
    result: float

    def largest(self, measure: str) -> float:
        """Return the largest error of the range in one of `MEASURES`."""
        return max(self.errors[measure])

    def can_declare(self, measure: str) -> bool:
        """Return whether one bound in this measure describes the errors of all binades.

        The largest error must not exceed `MAX_RATIO` times the smallest one, nor the largest bound that a declaration
        accepts. For an absolute bound, that limit is relative to the largest result of the range.

        Args:
            measure: one of `MEASURES`.
        """
        limit = ULP_BOUNDS[-1] if measure == "ulp" else MAX_RELATIVE_ERROR / 2
        if measure == "absolute":
            limit *= min(1.0, self.result)
        least = 1.0 if measure == "ulp" else 0.0
        sizes = [max(size, least) for size in self.errors[measure]]
        return max(sizes) <= min(limit, MAX_RATIO * min(sizes))

    @property
    def is_correct(self) -> bool:
        """Whether the errors are so small that no declaration is needed."""
        return self.largest("ulp") <= MAX_CORRECT_ULP + TOLERANCE

    @property
    def is_undeclarable(self) -> bool:
        """Whether the errors need a declaration, but no measure can declare them."""
        return not self.is_correct and not any(map(self.can_declare, MEASURES))

    @property
    def bound(self) -> ErrorBound | None:
        """The bound that permits the errors; None if no declaration is needed or possible."""
        measure = next(filter(self.can_declare, MEASURES), None)
        if self.is_correct or measure is None:
            return None
        size = round_up_ulp(self.largest("ulp")) if measure == "ulp" else round_up(self.largest(measure))
        return ErrorBound(minimum=self.minimum, maximum=self.maximum, **{measure: size})

    def join(self, neighbor: ErrorRange) -> ErrorRange:
        """Return the range that spans this range and its neighbor, with the errors of both."""
        return ErrorRange(
            minimum=min(self.minimum, neighbor.minimum),
            maximum=max(self.maximum, neighbor.maximum),
            errors={measure: [*self.errors[measure], *neighbor.errors[measure]] for measure in MEASURES},
            result=max(self.result, neighbor.result),
        )

    def is_permitted(self, bound: ErrorBound) -> bool:
        """Return whether a bound permits the largest absolute error, for the largest result of the range.

        The result that has the largest error is not known. It is assumed to be the largest result, for which the bound
        permits the largest error.
        """
        relative = bound.relative + bound.ulp * FLOAT32_EPSILON
        return self.largest("absolute") <= bound.absolute + relative * self.result

    def can_join(self, neighbor: ErrorRange) -> bool:
        """Return whether both ranges can share a bound, need none, or can't be declared."""
        if self.is_correct or neighbor.is_correct:
            return self.is_correct == neighbor.is_correct
        both_undeclarable = self.is_undeclarable and neighbor.is_undeclarable
        return both_undeclarable or any(map(self.join(neighbor).can_declare, MEASURES))


def round_up_ulp(error_in_ulp: float) -> float:
    """Return the smallest of `ULP_BOUNDS` that permits an error, which must not exceed the largest of them."""
    return next(bound for bound in ULP_BOUNDS if bound >= error_in_ulp - TOLERANCE)


def round_up(value: float) -> float:
    """Return a value enlarged by `MARGIN` and rounded up to two significant digits."""
    digits = 1 - math.floor(math.log10(value * MARGIN))
    return float(f"{math.ceil(value * MARGIN * 10.0**digits)}e{-digits}")


def merge_ranges(binades: Sequence[ErrorRange]) -> list[ErrorRange]:
    """Return the ranges that result if neighboring binades that can share a bound are joined.

    Args:
        binades: the errors of binades, sorted by their position on the number line or in the opposite order.
    """
    merged: list[ErrorRange] = []
    for binade in binades:
        if merged and merged[-1].can_join(binade):
            merged[-1] = merged[-1].join(binade)
        else:
            merged.append(binade)
    return merged


def join_signs(bounds: tuple[ErrorBound, ...]) -> tuple[ErrorBound, ...]:
    """Return the bounds after the bound for a range that ends at 0 is joined with that for the range that begins at 0.

    Args:
        bounds: the bounds of a function for disjoint ranges.

    Returns:
        The bounds; unchanged if these two bounds do not exist or have different measures.
    """
    negative = next((bound for bound in bounds if bound.maximum == 0), None)
    positive = next((bound for bound in bounds if bound.minimum == 0), None)
    if negative is None or positive is None or _measure_of(negative) != _measure_of(positive):
        return bounds
    measure = _measure_of(negative)
    size = max(getattr(negative, measure), getattr(positive, measure))
    joined = ErrorBound(minimum=negative.minimum, maximum=positive.maximum, **{measure: size})
    return (*(bound for bound in bounds if bound not in (negative, positive)), joined)


def _measure_of(bound: ErrorBound) -> str:
    """Return the name of the measure in which a bound is stated, one of `MEASURES`."""
    return next(measure for measure in MEASURES if getattr(bound, measure))
