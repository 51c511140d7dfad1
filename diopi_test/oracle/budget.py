"""The error budget of a result element, derived only from the reference: K · (s + ulp(ref) + eps · m).

s is the amplification of rounding by the problem itself: the largest change of the reference when its floating-point
inputs are perturbed by half an ulp, in eight rounds. m is the sum of the element's *terms*: the sizes of the rounding
errors of intermediate values, in units of eps. The reference declares the terms; without a declaration, m is 0.
docs/budgets.md explains the choice of K and m.

The *unit* of an element is s + ulp(ref) + eps · m, an absolute number. The error of the element may be at most K units.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from lib_rt.formats import FloatArray, format_of, ulp

Mask = NDArray[np.bool_]
"""A bool array that is true for the elements that have a property, which the user of the type states."""

K = 8.0
"""The largest accepted error of an element, in units."""

EXACT = 2.0**-10
"""The unit, in ulps, of an element that must be exact in a result whose other elements may be rounded.

It is so small that no other number of the element type is within K units of the expected number.
"""

NEAR = 2.0**-20
"""Two squared distances are tied if their relative difference is smaller: rounding may decide which point is nearer."""


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
            amplified: s, an array of the shape of the result.
            terms: The terms of values that are rounded to float32 or to a finer type. They are multiplied by the eps of
                float32 if the result has half precision, and by the eps of `dtype` otherwise. They broadcast to the
                result.
            stored: The terms of values that are rounded to `dtype`, whose eps multiplies them. They broadcast to the
                result.
            exact: A mask of elements that must be exact although others may be rounded; it broadcasts to the result.
            is_sum: Whether the result is a sum. A zero of either sign is then accepted where the reference is 0.

        Returns:
            The budget. The unit is at least an ulp of the reference, except for exact elements. It is an ulp where s or
            a term is NaN, and NaN where the reference is not finite.
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
        """Return the budget whose unit is `ulps` ulps of `values`, per element; NaN where a value is not finite."""
        with np.errstate(all="ignore"):
            return cls(np.asarray(ulp(values, dtype) * ulps))

    def to_ulps(self, values: NDArray[Any], dtype: Dtype) -> FloatArray:
        """Return the unit of each element in ulps of `values`; 1 where a value is not finite, ∞ on overflow.

        The quotient can overflow at a float64 value of 0: an ulp of 0 is the smallest subnormal number.
        """
        with np.errstate(all="ignore"):
            ulps = self.unit / ulp(values, dtype)
        return np.where(np.isnan(ulps), 1.0, ulps)

    @property
    def limit(self) -> FloatArray:
        """Return K units: the largest error that each element may have; ∞ beyond the range of float64."""
        with np.errstate(over="ignore"):
            return K * self.unit

    def in_units(self, error: NDArray[Any]) -> FloatArray:
        """Return an absolute error of each element, divided by its unit."""
        return np.asarray(error / self.unit)

    def select(self, elements: slice | NDArray[Any]) -> Budget:
        """Return the budget of the elements that a mask, an array of indices or a slice selects."""
        return Budget(self.unit[elements])

    def rescale(self, values: NDArray[Any], target: NDArray[Any], dtype: Dtype) -> Budget:
        """Return a budget with the same units in ulps: ulps of `target` instead of ulps of `values`."""
        return Budget.from_ulps(self.to_ulps(values, dtype), target, dtype)

    def widen(self, amount: NDArray[Any]) -> Budget:
        """Return the budget with `amount`, an absolute number for each element, added to the units."""
        return Budget(self.unit + amount)

    def with_unsigned_zeros(self, reference: NDArray[Any], dtype: Dtype) -> Budget:
        """Return the budget with units that also allow a zero of the other sign where the reference is 0."""
        return Budget(_allow_subnormals(reference, self.unit, dtype))

    def covers_subnormals(self, dtype: Dtype) -> Mask:
        """Return a mask of the elements whose largest error exceeds all subnormal numbers; their zeros have no sign."""
        return np.asarray(self.limit >= format_of(dtype).tiny)

    def is_exact(self, values: NDArray[Any], dtype: Dtype) -> Mask:
        """Return a mask of the elements that must be exact: their unit is about `EXACT` ulps of `values`."""
        return np.asarray(self.unit <= 2 * EXACT * ulp(values, dtype))


def _allow_subnormals(reference: NDArray[Any], unit: FloatArray, dtype: Dtype) -> FloatArray:
    """Return the unit, increased where the reference is 0 until it allows an error of any subnormal number.

    `Budget.covers_subnormals` is then true for such an element: a zero of either sign is accepted. The sign of a sum of
    zeros depends on the order of additions, and on whether an accumulator starts at +0.
    """
    return np.where(reference == 0, np.maximum(unit, 2 / K * format_of(dtype).tiny), unit)
