"""The errors of float64 numbers that are emulated by pairs of float32 numbers.

The sum of two float32 numbers represents 48 significant bits, with the range of float32 (T. J. Dekker, "A
floating-point technique for extending the available precision", 1971).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from diopi_proto.types import Dtype
from diopi_test.oracle.arithmetic.array import Array
from diopi_test.oracle.arithmetic.products import move_unrepresentable, spacing
from diopi_test.oracle.arithmetic.signs import Signs
from lib_rt.formats import FORMATS, FloatArray, Format

PAIR = Format(48, -126, 127)
"""The format of a pair of float32 numbers: 48 significant bits.

Near the smallest normal number, a pair has fewer bits, because both numbers are multiples of the smallest subnormal
number of float32. The format does not describe this.
"""

SINGLE = FORMATS[Dtype.float32]
"""The format of float32. A pair has the same range."""


def move_unrepresentable_by_pairs(value: Any, signs: Signs) -> Any:
    """Move the numbers of an argument that no pair of float32 numbers represents by half an ulp of a pair.

    Args:
        value: A float64 or complex128 array, or a list of arguments. Other values are returned unchanged.
        signs: Draws the direction in which each number moves.

    Returns:
        The argument with moved numbers, in new arrays.
    """
    if isinstance(value, list):
        return [move_unrepresentable_by_pairs(entry, signs) for entry in value]
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fc":
        return value
    if value.dtype.kind == "f":
        return move_unrepresentable(value, PAIR, signs.draw(value.shape))
    moved = value.copy()
    moved.real = move_unrepresentable(value.real, PAIR, signs.draw(value.shape))
    moved.imag = move_unrepresentable(value.imag, PAIR, signs.draw(value.shape))
    return moved


def emulation_error(exact: Array, terms: Array) -> FloatArray:
    """Return the errors of results that rounding causes within the computation, not by moved inputs.

    Args:
        exact: The exact results.
        terms: The sizes of the rounding errors of intermediate values, in units of eps; they broadcast to `exact`.

    Returns:
        One ulp of a pair plus the eps of a pair times `terms`, for each result; 0 where `exact` is not finite.
    """
    with np.errstate(all="ignore"):
        rounding = np.maximum(spacing(np.abs(exact), PAIR), SINGLE.subnormal)
        error = rounding + PAIR.epsilon * np.nan_to_num(np.asarray(terms, np.float64), posinf=0.0)
    return np.where(np.isfinite(exact), error, 0.0)


def leaves_range(exact: Array) -> Array:
    """Return a mask of the finite numbers that are too large for float32."""
    return np.asarray(np.isfinite(exact) & (np.abs(exact) >= SINGLE.overflow))
