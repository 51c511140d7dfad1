"""The error budget of a result element, derived only from the reference: K · (s + ulp(ref) + eps · m).

s is the amplification of rounding by the problem itself: the largest change of the reference when its floating-point
inputs are perturbed by half an ulp, in eight rounds. m is the size of intermediate terms that a sound algorithm may
cancel. The reference declares m, which is zero for most functions. docs/budgets.md explains the choice of K and m.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from lib_rt.formats import FloatArray, format_of, ulp

Mask = NDArray[np.bool_]
"""An array that is true for the elements that a property applies to."""

K = 8.0
"""Largest accepted ratio of an element's error to s + ulp + eps · m."""

EXACT = 2.0**-10
"""The unit, in ulps, of an element that must be exact in a result with rounded elements.

It is so small that no other number is within K units of the expected one.
"""

NEAR = 2.0**-20
"""If two squared distances differ by less than this part of them, rounding may decide which point is the nearest."""


@final
@dataclass(frozen=True)
class Budget:
    """The error budget of the elements of a rounded result: an element's error may be at most K units.

    Attributes:
        unit: s + ulp + eps · m for each element; NaN where the reference is not finite.
    """

    unit: FloatArray

    @classmethod
    def derive(
        cls,
        reference: NDArray[Any],
        dtype: Dtype,
        amplified: FloatArray,
        *,
        terms: Any = 0.0,
        stored: Any = 0.0,
        exact: Any = False,
        is_sum: bool = False,
    ) -> Budget:
        """Derive the budget of a result.

        Args:
            reference: The reference's result.
            dtype: The element type of the result.
            amplified: s, of the shape of the result.
            terms: Intermediate terms that are rounded to float32 or to a finer type; broadcasts to the result. Where
                they are NaN, the unit is an ulp.
            stored: Intermediate terms that are rounded to the result's type; broadcasts to the result.
            exact: Which elements must be exact although others may be rounded.
            is_sum: Whether the result is a sum, whose zeros have no sign.

        Returns:
            The budget. The unit is at least an ulp, except for exact elements.
        """
        if is_sum:
            amplified = _allow_subnormals(reference, amplified, dtype)
        spacing, epsilon = ulp(reference, dtype), format_of(dtype).epsilon
        finer = min(epsilon, format_of(Dtype.float32).epsilon)
        with np.errstate(all="ignore"):
            units = amplified + spacing + finer * np.asarray(terms) + epsilon * np.asarray(stored)
            unit = np.where(np.isnan(units), spacing, np.minimum(units, np.finfo(np.float64).max))
        return cls(np.where(exact, EXACT * spacing, unit) if np.any(exact) else unit)

    @classmethod
    def from_ulps(cls, ulps: NDArray[Any], values: NDArray[Any], dtype: Dtype) -> Budget:
        """Return the budget of a result from its units in ulps of `values`; NaN where a value is not finite."""
        with np.errstate(all="ignore"):
            return cls(np.asarray(ulp(values, dtype) * ulps))

    def to_ulps(self, values: NDArray[Any], dtype: Dtype) -> FloatArray:
        """Return the unit of each element in ulps of `values`; 1 where a value is not finite, ∞ on overflow.

        Next to an expected 0, where an ulp is the smallest number, a float64 unit may be more ulps than float64 can
        represent.
        """
        with np.errstate(all="ignore"):
            ulps = self.unit / ulp(values, dtype)
        return np.where(np.isnan(ulps), 1.0, ulps)

    @property
    def limit(self) -> FloatArray:
        """Return the largest error that each element may have; ∞ beyond the range of float64."""
        with np.errstate(over="ignore"):
            return K * self.unit

    def in_units(self, error: NDArray[Any]) -> FloatArray:
        """Return the error of each element in units."""
        return np.asarray(error / self.unit)

    def select(self, elements: slice | NDArray[Any]) -> Budget:
        """Return the budget of the elements that a mask, an array of indices or a slice selects."""
        return Budget(self.unit[elements])

    def rescale(self, values: NDArray[Any], target: NDArray[Any], dtype: Dtype) -> Budget:
        """Return the budget that has as many ulps of `target` as this budget has of `values`."""
        return Budget.from_ulps(self.to_ulps(values, dtype), target, dtype)

    def widen(self, amount: NDArray[Any]) -> Budget:
        """Return the budget with larger units."""
        return Budget(self.unit + amount)

    def with_unsigned_zeros(self, reference: NDArray[Any], dtype: Dtype) -> Budget:
        """Return the budget with units that allow a zero of either sign where the reference is 0."""
        return Budget(_allow_subnormals(reference, self.unit, dtype))

    def covers_subnormals(self, dtype: Dtype) -> Mask:
        """Return which elements may be off by any subnormal number, so that a zero may have either sign."""
        return np.asarray(self.limit >= format_of(dtype).tiny)

    def is_exact(self, values: NDArray[Any], dtype: Dtype) -> Mask:
        """Return which elements must be exact."""
        return np.asarray(self.unit <= 2 * EXACT * ulp(values, dtype))


def _allow_subnormals(reference: NDArray[Any], unit: FloatArray, dtype: Dtype) -> FloatArray:
    """Return the unit, large enough for an error of any subnormal number, and so for a 0 of either sign, next to 0.

    The sign of a sum of zeros depends on the order of additions, and on whether an accumulator starts at +0.
    """
    return np.where(reference == 0, np.maximum(unit, 2 / K * format_of(dtype).tiny), unit)
