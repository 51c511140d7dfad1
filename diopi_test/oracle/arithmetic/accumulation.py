"""Sums of half-precision numbers that are accumulated in half precision.

The terms that a reference declares (`WithTerms`) are the standard deviation of the error of its sums in units of eps,
averaged over all orders of addition. If partial sums are rounded to half precision, the eps is that of the half type.
"""

from __future__ import annotations

import numpy as np

from diopi_test.oracle.arithmetic.array import Array
from lib_rt.formats import FloatArray, Format


def accumulation_error(terms: Array, half: Format) -> FloatArray:
    """Return the error of each result element if sums are accumulated in a half type; 0 where terms are not finite."""
    with np.errstate(all="ignore"):
        error = half.epsilon * terms
    return np.where(np.isfinite(error), error, 0.0)
