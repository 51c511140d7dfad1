"""Find out whether elements are read or written at offsets that wrap around because they have too few bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

LIMITS: Sequence[int] = (2**15, 2**16)
"""The first offsets that signed and unsigned 16-bit integers can't represent."""

MIN_WRAPPED = 32
"""The minimum number of wrong elements for which it is not considered chance that they are at wrapped offsets."""

TOLERANCE = 64
"""The largest difference of equal results, in units of the relative precision of the element type."""


@np.errstate(all="ignore")
def are_places_wrapped(
    actual: NDArray[Any], expected: NDArray[Any], is_wrong: NDArray[np.bool_], tolerance: float
) -> bool:
    """Return whether wrong elements are explained by offsets that wrap around at 2^15 or 2^16.

    If a kernel reads at wrapped offsets, the elements beyond the limit repeat the first elements. If it writes at
    wrapped offsets, the last elements replace the first ones.

    Args:
        actual: the actual elements.
        expected: the expected elements, in the same shape.
        is_wrong: which elements are wrong.
        tolerance: the relative precision of the element type.

    Returns:
        Whether this holds for one of the limits.
    """
    actual, expected, is_wrong = actual.reshape(-1), expected.reshape(-1), is_wrong.reshape(-1)
    total = len(expected)
    for limit in LIMITS:
        if total <= limit:
            return False
        late, early = np.arange(limit, total), np.arange(min(limit, total - limit))
        last = early + (total - 1 - early) // limit * limit
        for places, sources in ((late, late % limit), (early, last)):
            is_enough = is_wrong[places].sum() >= MIN_WRAPPED
            if is_enough and _are_close(actual[places], expected[sources], tolerance):
                return True
    return False


def _are_close(actual: NDArray[Any], expected: NDArray[Any], tolerance: float) -> bool:
    """Return whether the elements are equal but for rounding; NaN equals NaN."""
    return bool(np.isclose(actual, expected, rtol=TOLERANCE * tolerance, atol=0, equal_nan=True).all())
