"""The stored form of the error units of a result: in ulps, which compress well, or unchanged.

Next to an expected 0, where an ulp is the smallest number, a float64 unit may be more ulps than float64 can represent.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.cases.formats import FloatArray, ulp
from diopi_test.oracle.records import Expected


def to_ulps(expected: Expected) -> FloatArray:
    """Return the unit of each element of a rounded result in ulps; 1 if its value is not finite, ∞ on overflow."""
    assert expected.unit is not None
    with np.errstate(all="ignore"):
        ulps = expected.unit / ulp(expected.values, expected.dtype)
    return np.where(np.isnan(ulps), 1.0, ulps)


def to_float32_ulps(expected: Expected) -> NDArray[np.float32] | None:
    """Return `to_ulps` in float32, which is precise enough; None if a unit exceeds the range of float32."""
    with np.errstate(over="ignore"):
        short = to_ulps(expected).astype(np.float32)
    return short if np.isfinite(short).all() else None


def from_ulps(ulps: NDArray[Any], values: NDArray[Any], dtype: Dtype) -> FloatArray:
    """Return units from units in ulps of the elements' values; NaN if a value is not finite."""
    with np.errstate(all="ignore"):
        return np.asarray(ulp(values, dtype) * ulps)
