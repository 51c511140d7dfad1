"""The limit of the root mean square of the errors of a result, or of all results of a function.

Errors are measured in units (`budget.py`). Two elements are *distinct* if their expected values differ. The limit
follows from a model of a correct vendor, in which the errors of distinct elements are independent:

- A half-precision result is computed in float32 and rounded once. Its errors are smaller than a unit, so a vendor of
  this model never exceeds the limit `HALF_LIMIT`, for any number of elements.
- The errors of other results are uniformly distributed within ±`FUNCTION_ERROR` units. Bernstein's inequality for the
  squares of the errors gives a limit that a vendor of this model exceeds with a probability of at most `FALSE_FAILURE`.
  This limit decreases with the number of elements.
"""

from __future__ import annotations

import math

from diopi_proto.types import Dtype
from lib_rt.formats import format_of

MIN_ELEMENTS = 20
"""The root mean square of a single result's errors is tested if at least so many distinct elements may be rounded."""

HALF_LIMIT = 1.0
"""The largest accepted root mean square of the errors of half-precision results, in units."""

FUNCTION_ERROR = 4.0
"""The largest error that the model allows in float32 and wider types, in units.

A unit is at least an ulp. 4 ulps is the largest error that CUDA documents for a float32 function, for example `powf`.
"""

FALSE_FAILURE = 1e-12
"""The largest probability that a vendor of the model fails one test. A full run has fewer than 10⁶ tests."""


def rms_limit(dtype: Dtype, elements: int) -> float:
    """Return the largest accepted root mean square of the errors of distinct rounded elements.

    Args:
        dtype: The element type of the results.
        elements: The number of distinct rounded elements, at least 1.

    Returns:
        The limit in units.
    """
    if format_of(dtype).precision < format_of(Dtype.float32).precision:
        return HALF_LIMIT
    largest = FUNCTION_ERROR**2
    mean, variance = largest / 3, 4 / 45 * largest**2  # of the square of a uniform error
    weight = -math.log(FALSE_FAILURE) / elements
    linear = weight * (largest - mean) / 3
    excess = linear + math.sqrt(linear**2 + 2 * weight * variance)  # Bernstein's inequality, solved for the excess
    return math.sqrt(min(mean + excess, largest))
