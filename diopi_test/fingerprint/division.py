"""Probes of division: whether quotients are correctly rounded, or computed as products with a rounded inverse.

Each function `measure…` receives the operator and an element type, and returns the observations in words, by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from diopi_proto.dtypes import floating
from diopi_proto.types import Dtype, RoundMode
from diopi_test.fingerprint.elementary import error
from diopi_test.fingerprint.probe import Observations, Probe, ProbedOperator, single_variants
from diopi_test.fingerprint.samples import SIZE, significands
from lib_rt.dtypes import Array, to_numpy

DIVISORS = (3.0, 10.0)
"""Numbers by which tensors are divided. Their inverses are not exact, so that the methods of division differ."""


def _correct_quotient(x: Array, y: Array) -> Any:
    """Return the numbers nearest to x / y in the type of `x`.

    The quotients are rounded twice, to float64 and to the type of `x`. The result is the same as after one rounding: S.
    A. Figueroa, "When is double rounding innocuous?", SIGNUM Newsletter 30(3), 1995.
    """
    return (x.astype(np.float64) / y.astype(np.float64)).astype(x.dtype)


def _multiply_by_inverse(x: Array, y: Array) -> Any:
    """Return x times the correctly rounded inverse of y, in the type of `x`."""
    return x * _correct_quotient(np.ones_like(y), y)


METHODS: dict[str, Callable[[Array, Array], Any]] = {
    "correctly rounded": _correct_quotient,
    "multiplied with the rounded inverse": _multiply_by_inverse,
}
"""The methods of division that the probes recognize, by the name in the fingerprint."""


def describe_quotients(x: Array, y: Array, result: Array, dtype: Dtype) -> Observations:
    """Return the name of the method in `METHODS` whose quotients equal the results of a vendor.

    If there is none, state how many results are not the nearest number, and the largest error.

    Args:
        x: the dividends.
        y: the divisors.
        result: the quotients that the vendor returned.
        dtype: the element type of all three arrays.

    Returns:
        The observation, under the name `quotients`.
    """
    for name, method in METHODS.items():
        if np.array_equal(method(x, y), result):
            return {"quotients": name}
    mismatches = np.count_nonzero(_correct_quotient(x, y) != result)
    errors = error(result.astype(np.float64), x.astype(np.float64) / y.astype(np.float64), dtype)
    return {"quotients": f"{mismatches} of {x.size} not the nearest, up to {errors.max():.3f} ulp off"}


def measure(operator: ProbedOperator, dtype: Dtype) -> Observations:
    """Observe the quotients of two tensors by diopiDiv."""
    x, y = significands(dtype, 0), significands(dtype, 1)
    return describe_quotients(x, y, operator(x, y, RoundMode.none, shape=(SIZE,), dtype=dtype), dtype)


def measure_numbers(operator: ProbedOperator, dtype: Dtype) -> Observations:
    """Observe the quotients of a tensor and each of the numbers `DIVISORS` by diopiDivScalar."""
    x = significands(dtype, 0)
    divisors = np.array(DIVISORS, to_numpy(dtype))
    results = [operator(x, float(y), RoundMode.none, shape=(SIZE,), dtype=dtype) for y in divisors]
    return describe_quotients(np.tile(x, len(DIVISORS)), np.repeat(divisors, SIZE), np.concatenate(results), dtype)


def measure_inverses(operator: ProbedOperator, dtype: Dtype) -> Observations:
    """Observe the inverses of the elements of a tensor by diopiReciprocal."""
    y = significands(dtype, 1)
    return describe_quotients(np.ones_like(y), y, operator(y, shape=(SIZE,), dtype=dtype), dtype)


PROBES = (
    Probe(function="diopiDiv", measure=measure, variants=single_variants(*floating)),
    Probe(function="diopiDivScalar", measure=measure_numbers, variants=single_variants(*floating)),
    Probe(function="diopiReciprocal", measure=measure_inverses, variants=single_variants(*floating)),
)
