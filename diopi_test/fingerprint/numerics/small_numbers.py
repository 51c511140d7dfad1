"""Subnormal numbers and signed zeros of float32, and whether float64 is absent or emulated."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from diopi_proto.types import Dtype, RoundMode
from diopi_test.fingerprint import subnormals
from diopi_test.fingerprint.numerics.operators import Operators
from diopi_test.fingerprint.probe import ProbeFailedError
from diopi_test.fingerprint.samples import significands
from lib_rt.dtypes import Array

ARITHMETIC = ("diopiAdd", "diopiMul", "diopiDiv", "diopiSqrt", "diopiExp", "diopiLog", "diopiSum", "diopiMm")
"""The functions that are probed with subnormal numbers."""


def measure_subnormals(operators: Operators) -> dict[str, dict[str, str]]:
    """Return what becomes of subnormal arguments and results by function; functions that the vendor lacks are missing.

    The values are those of the fingerprint: `kept`, or they begin with `flushed`.
    """
    found = {}
    for function in ARITHMETIC:
        try:
            probe = subnormals.PROBED_FUNCTIONS[function]
            found[function] = dict(subnormals.measure(operators[function], Dtype.float32, probe=probe))
        except ProbeFailedError:
            continue
    return found


def measure_signed_zeros(operators: Operators) -> dict[str, bool]:
    """Return by function whether it returns −0 where IEEE 754 demands it; functions the vendor lacks are missing."""
    found = {}
    for function, arguments in _NEGATIVE_ZEROS.items():
        try:
            result = operators[function](*arguments, shape=(1,), dtype=Dtype.float32)
        except ProbeFailedError:
            continue
        found[function] = bool(np.signbit(result).all())
    return found


def _number(value: float) -> Array:
    return np.full(1, value, np.float32)


_NEGATIVE_ZEROS: Mapping[str, tuple[object, ...]] = {
    "diopiNeg": (_number(0.0),),
    "diopiAdd": (_number(-0.0), _number(-0.0), 1),
    "diopiMul": (_number(-0.0), _number(2.0)),
    "diopiDiv": (_number(-0.0), _number(2.0), RoundMode.none),
    "diopiSqrt": (_number(-0.0),),
    "diopiTanh": (_number(-0.0),),
    "diopiSin": (_number(-0.0),),
}
"""Calls that have the result −0."""


def measure_float64(operators: Operators) -> int | None:
    """Return the significant bits of sums and products of float64; None if float64 is absent.

    Returns:
        The bits of the least precise operator. A range that is smaller than that of float64 counts as 0 bits.

    Raises:
        ProbeFailedError: if the vendor has none of the functions, so that nothing is known.
    """
    x, y = (significands(Dtype.float64, seed)[:4096] for seed in (0, 1))
    calls: Mapping[str, tuple[tuple[object, ...], Array]] = {
        "diopiAdd": ((x, y, 1), x + y),
        "diopiMul": ((x, y), x * y),
        "diopiDiv": ((x, y, RoundMode.none), x / y),
    }
    implemented = [function for function in calls if operators.vendor.has(function)]
    if not implemented:
        raise ProbeFailedError("not implemented")
    bits = []
    for function in implemented:
        arguments, exact = calls[function]
        try:
            result = operators[function](*arguments, shape=exact.shape, dtype=Dtype.float64)
        except ProbeFailedError as failure:
            if str(failure) in ("unsupported type", "not implemented"):
                continue
            raise
        error = float(np.abs(result / exact - 1).max())
        bits.append(53 if error < 2.0**-52 else int(-np.log2(error)) if error < 1 else 0)
    return min(bits) if bits else None
