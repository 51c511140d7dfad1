"""The limit of the root mean square of the errors of a result, or of all results of a function.

The model of a correct vendor is: distinct elements have independent errors, in units of s + ulp + eps · m.

- A half-precision result is computed in float32 and rounded once. Its errors stay below a unit, so no correct vendor
  exceeds the limit `HALF_LIMIT`, however many elements there are.
- The errors of other results are those of elementary functions, uniform within `FUNCTION_ERROR` units. Bernstein's
  inequality for the squares of the errors gives the limit that a correct vendor exceeds with the probability
  `FALSE_FAILURE`. It decreases with the number of elements.
"""

from __future__ import annotations

import math

from diopi_proto.types import Dtype
from lib_rt.formats import format_of

MIN_ELEMENTS = 20
"""The least number of distinct rounded elements of a result whose root mean square is tested."""

HALF_LIMIT = 1.0
"""The largest accepted root mean square of the errors of half-precision results, in units of s + ulp + eps · m."""

FUNCTION_ERROR = 4.0
"""Largest error of an elementary function of float32 and wider types, in ulps. CUDA documents 4 ulps for `powf`."""

FALSE_FAILURE = 1e-12
"""Largest probability that a correct vendor fails one test. A full run has fewer than 10⁶ tests."""


def rms_limit(dtype: Dtype, elements: int) -> float:
    """Return the largest accepted root mean square of the errors of distinct rounded elements.

    Args:
        dtype: The element type of the results.
        elements: The number of distinct rounded elements, at least 1.

    Returns:
        The limit in units of s + ulp + eps · m.
    """
    if format_of(dtype).precision < format_of(Dtype.float32).precision:
        return HALF_LIMIT
    largest = FUNCTION_ERROR**2
    mean, variance = largest / 3, 4 / 45 * largest**2  # of the square of a uniform error
    weight = -math.log(FALSE_FAILURE) / elements
    linear = weight * (largest - mean) / 3
    excess = linear + math.sqrt(linear**2 + 2 * weight * variance)  # Bernstein's inequality, solved for the excess
    return math.sqrt(min(mean + excess, largest))
