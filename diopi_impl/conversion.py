"""Conversion of floating numbers to integers, as PyTorch's CPU kernels convert them."""

from __future__ import annotations

from typing import Any

import numpy as np

_VIA_INT32 = tuple(np.dtype(name) for name in ("int8", "int16", "int32"))
"""The types to which floating numbers are converted via int32; all other integer types are converted via int64."""


def convert_to_integers(values: Any, dtype: np.dtype[Any], xp: Any = np) -> Any:
    """Return floating numbers truncated to integers.

    The standard does not specify the conversion of numbers out of range. They are converted as on an x86 processor:
    first to int32 (for signed types of up to 32 bits) or int64 (for all others), then modulo 2^bits. Numbers that the
    wider type can't represent, NaN and infinities included, become its smallest number. torch.Tensor.to does the same.

    Args:
        values: an array of a floating type.
        dtype: the integer type.
        xp: the module of the array, NumPy or jax.numpy.

    Returns:
        An array of the same shape.
    """
    wider = np.dtype(np.int32 if dtype in _VIA_INT32 else np.int64)
    limit = 2.0 ** (8 * wider.itemsize - 1)
    numbers = values.astype(np.float64)
    in_range = (numbers >= -limit) & (numbers < limit)
    return xp.where(in_range, numbers, -limit).astype(wider).astype(dtype)


def convert_array(array: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return `array` converted to `dtype`.

    Complex numbers keep only the real part if `dtype` is an integer or a real floating type. In bool, a complex number
    is false only if both parts are 0.
    """
    if array.dtype == dtype:
        return array
    if np.iscomplexobj(array) and dtype.kind not in "cb":
        array = array.real
    with np.errstate(all="ignore"):
        if dtype.kind in "iu" and array.dtype.kind not in "iub":
            array = convert_to_integers(array, dtype)
        return array.astype(dtype, copy=False)
