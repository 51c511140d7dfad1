"""Floating numbers as integers, whatever they are: as PyTorch's kernels on a CPU convert them."""

from __future__ import annotations

from typing import Any

import numpy as np

_BY_INT32 = tuple(np.dtype(name) for name in ("int8", "int16", "int32"))


def to_integers(values: Any, dtype: np.dtype[Any], xp: Any = np) -> Any:
    """Floating `values` as integers of `dtype`, without their fractions.

    Numbers out of range, which the standard leaves open, become what an x86 processor and then a C cast make of them:
    signed types of up to 32 bits are made of int32, all others of int64, modulo 2^bits; what the wider type can't hold
    either, NaN and the infinities included, gives its smallest number there. Source: measured of torch.Tensor.to.

    Args:
        xp: NumPy or jax.numpy, whichever the array is of.
    """
    wider = np.dtype(np.int32 if dtype in _BY_INT32 else np.int64)
    limit = 2.0 ** (8 * wider.itemsize - 1)
    numbers = values.astype(np.float64)
    inside = (numbers >= -limit) & (numbers < limit)
    return xp.where(inside, numbers, -limit).astype(wider).astype(dtype)


def converted(array: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """`array` in the element type of a tensor; of complex numbers the real part where that is a real one."""
    if array.dtype == dtype:
        return array
    if np.iscomplexobj(array) and dtype.kind not in "cb":
        array = array.real
    with np.errstate(all="ignore"):
        if dtype.kind in "iu" and array.dtype.kind not in "iub":
            array = to_integers(array, dtype)
        return array.astype(dtype, copy=False)
