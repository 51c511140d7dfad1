"""The units of a result as a file keeps them: in ulps, which compress well, or as they are.

Beside an expected 0 a float64 unit may be more ulps than float64 can count, as the smallest number is one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.baseline.records import Expected
from diopi_test.cases.formats import FloatArray, ulp


def to_ulps(expected: Expected) -> FloatArray:
    """The unit of each element of a rounded result in ulps; 1 where its value is not finite, ∞ beyond float64."""
    assert expected.unit is not None
    with np.errstate(all="ignore"):
        ulps = expected.unit / ulp(expected.values, expected.dtype)
    return np.where(np.isnan(ulps), 1.0, ulps)


def to_float32_ulps(expected: Expected) -> NDArray[np.float32] | None:
    """The same in float32, which is precise enough; None where one is beyond its range."""
    with np.errstate(over="ignore"):
        short = to_ulps(expected).astype(np.float32)
    return short if np.isfinite(short).all() else None


def from_ulps(ulps: NDArray[Any], values: NDArray[Any], dtype: Dtype) -> FloatArray:
    """Units of elements of which these are the values; NaN where a value is not finite."""
    with np.errstate(all="ignore"):
        return np.asarray(ulp(values, dtype) * ulps)
