"""Measure whether repeated calls with equal arguments return the same bits, by family of functions.

The bits differ if a vendor adds the terms of a sum in an order that changes from call to call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from diopi_proto.types import Dtype
from diopi_test.fingerprint.numerics.operators import Operators, random_normal
from diopi_test.fingerprint.probe import ProbeFailedError
from lib_rt.dtypes import Array

REPETITIONS = 4
"""The number of calls with equal arguments."""


def _call_softmax(operators: Operators) -> Array:
    """Return softmax of a matrix with 16 rows of 4096 random numbers, along the rows."""
    x = random_normal(9, 16, 4096)
    return operators["diopiSoftmax"](x, 1, shape=x.shape, dtype=Dtype.float32)


PROBES: Mapping[str, Callable[[Operators], Array]] = {
    "activation": _call_softmax,
    "attention": lambda operators: operators.attend(*(random_normal(seed, 1, 32, 2, 64) for seed in range(3)))[0],
    "conv": lambda operators: operators.convolve(random_normal(6, 2, 64, 12, 12), random_normal(7, 32, 64, 3, 3)),
    "linalg": lambda operators: operators.multiply(random_normal(6, 32, 2048), random_normal(7, 2048, 32)),
    "reduction": lambda operators: operators.sum_rows(random_normal(8, 16, 4096)),
}
"""For each family, a function that calls an operator of the family which sums many numbers, and returns the result."""


def measure_repetition(operators: Operators) -> dict[str, bool]:
    """Return for each family in `PROBES` whether equal calls return equal bits; NaNs are equal.

    Families whose operator the vendor lacks are left out.
    """
    is_equal_by_family = {}
    for family, call in PROBES.items():
        try:
            first, *repeated = (call(operators) for _ in range(REPETITIONS))
        except ProbeFailedError:
            continue
        is_equal_by_family[family] = all(np.array_equal(first, result, equal_nan=True) for result in repeated)
    return is_equal_by_family
