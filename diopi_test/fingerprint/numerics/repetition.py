"""Whether equal calls give equal bits, by family of functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from diopi_proto.types import Dtype
from diopi_test.fingerprint.numerics.operators import Operators, random_normal
from diopi_test.fingerprint.probe import ProbeFailedError
from lib_rt.dtypes import Array

REPETITIONS = 4
"""Calls with equal arguments."""


def _call_softmax(operators: Operators) -> Array:
    x = random_normal(9, 16, 4096)
    return operators["diopiSoftmax"](x, 1, shape=x.shape, dtype=Dtype.float32)


PROBES: Mapping[str, Callable[[Operators], Array]] = {
    "activation": _call_softmax,
    "attention": lambda operators: operators.attend(*(random_normal(seed, 1, 32, 2, 64) for seed in range(3)))[0],
    "conv": lambda operators: operators.convolve(random_normal(6, 2, 64, 12, 12), random_normal(7, 32, 64, 3, 3)),
    "linalg": lambda operators: operators.multiply(random_normal(6, 32, 2048), random_normal(7, 2048, 32)),
    "reduction": lambda operators: operators.sum_rows(random_normal(8, 16, 4096)),
}
"""For each family a call that sums many numbers."""


def measure_repetition(operators: Operators) -> dict[str, bool]:
    """Return by family whether equal calls give equal bits; families that the vendor lacks are missing."""
    found = {}
    for family, call in PROBES.items():
        try:
            first, *repeated = (call(operators) for _ in range(REPETITIONS))
        except ProbeFailedError:
            continue
        found[family] = all(np.array_equal(first, result, equal_nan=True) for result in repeated)
    return found
