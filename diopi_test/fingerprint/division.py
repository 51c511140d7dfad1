"""Probes of division: correctly rounded, multiplication by the inverse, or something else."""

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
"""Numbers by which tensors are divided."""


def _quotient(x: Array, y: Array) -> Any:
    """Return the number nearest to x / y.

    Rounding the float64 quotient of narrower numbers again changes nothing: S. A. Figueroa, "When is double rounding
    innocuous?", SIGNUM Newsletter 30(3), 1995.

    Returns:
        The quotient in the type of `x`.
    """
    return (x.astype(np.float64) / y.astype(np.float64)).astype(x.dtype)


def _by_inverse(x: Array, y: Array) -> Any:
    return x * _quotient(np.ones_like(y), y)


METHODS: dict[str, Callable[[Array, Array], Any]] = {
    "correctly rounded": _quotient,
    "multiplied with the rounded inverse": _by_inverse,
}


def quotients(x: Array, y: Array, result: Array, dtype: Dtype) -> Observations:
    """Return the method by which `result` was computed from x / y; if none matches, return the errors."""
    for name, method in METHODS.items():
        if np.array_equal(method(x, y), result):
            return {"quotients": name}
    mismatches = np.count_nonzero(_quotient(x, y) != result)
    errors = error(result.astype(np.float64), x.astype(np.float64) / y.astype(np.float64), dtype)
    return {"quotients": f"{mismatches} of {x.size} not the nearest, up to {errors.max():.3f} ulp off"}


def measure(operator: ProbedOperator, dtype: Dtype) -> Observations:
    """Probe quotients of tensors."""
    x, y = significands(dtype, 0), significands(dtype, 1)
    return quotients(x, y, operator(x, y, RoundMode.none, shape=(SIZE,), dtype=dtype), dtype)


def measure_numbers(operator: ProbedOperator, dtype: Dtype) -> Observations:
    """Probe quotients of a tensor by a number."""
    x = significands(dtype, 0)
    divisors = np.array(DIVISORS, to_numpy(dtype))
    results = [operator(x, float(y), RoundMode.none, shape=(SIZE,), dtype=dtype) for y in divisors]
    return quotients(np.tile(x, len(DIVISORS)), np.repeat(divisors, SIZE), np.concatenate(results), dtype)


def measure_inverses(operator: ProbedOperator, dtype: Dtype) -> Observations:
    """Probe inverses of the elements of a tensor."""
    y = significands(dtype, 1)
    return quotients(np.ones_like(y), y, operator(y, shape=(SIZE,), dtype=dtype), dtype)


PROBES = (
    Probe(function="diopiDiv", measure=measure, variants=single_variants(*floating)),
    Probe(function="diopiDivScalar", measure=measure_numbers, variants=single_variants(*floating)),
    Probe(function="diopiReciprocal", measure=measure_inverses, variants=single_variants(*floating)),
)
