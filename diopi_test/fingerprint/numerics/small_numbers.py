"""Measure whether a vendor keeps subnormal numbers and signed zeros of float32, and the precision of its float64."""

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
    """Measure for each function of `ARITHMETIC` whether subnormal numbers are replaced by zero.

    Args:
        operators: the operators of the vendor.

    Returns:
        For each function that the vendor has, texts by aspect (`arguments` or `results`). A text that begins with
        `flushed` means that such numbers are replaced by zero, and `kept` that they are not.
    """
    fates_by_function = {}
    for function in ARITHMETIC:
        try:
            probe = subnormals.PROBED_FUNCTIONS[function]
            fates_by_function[function] = dict(subnormals.measure(operators[function], Dtype.float32, probe=probe))
        except ProbeFailedError:
            continue
    return fates_by_function


def measure_signed_zeros(operators: Operators) -> dict[str, bool]:
    """Return for each function whether it returns −0 where IEEE 754 requires it; absent functions are left out."""
    is_negative_by_function = {}
    for function, arguments in _NEGATIVE_ZEROS.items():
        try:
            result = operators[function](*arguments, shape=(1,), dtype=Dtype.float32)
        except ProbeFailedError:
            continue
        is_negative_by_function[function] = bool(np.signbit(result).all())
    return is_negative_by_function


def _number(value: float) -> Array:
    """Return a float32 array with one element."""
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
"""For each function, the arguments of a call whose correct result is −0."""


def measure_float64(operators: Operators) -> int | None:
    """Measure the significant bits of float64 sums, products and quotients.

    Args:
        operators: the operators of the vendor.

    Returns:
        The bits of the least precise operator, 0 if results are entirely wrong, and None if float64 is absent.

    Raises:
        ProbeFailedError: if the vendor has none of the functions, or if a call fails for another reason than a missing
            function or element type.
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
