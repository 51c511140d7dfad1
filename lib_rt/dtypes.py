"""Element types in NumPy's terms, and the poison that marks memory not yet written."""

from __future__ import annotations

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from diopi_proto.dtypes import COMPONENT
from diopi_proto.types import Dtype

Array = npt.NDArray[Any]

_COMPLEX32 = np.dtype([("real", np.float16), ("imag", np.float16)])

NUMPY: dict[Dtype, np.dtype[Any]] = {
    **{dtype: np.dtype(dtype.name) for dtype in Dtype if hasattr(np, dtype.name)},
    Dtype.bfloat16: np.dtype(ml_dtypes.bfloat16),
    Dtype.tfloat32: np.dtype(np.float32),
    Dtype.complex32: _COMPLEX32,
}
"""The NumPy type of each element type that has one; complex32, which NumPy lacks, is a pair of float16."""

_DTYPE = {numpy_type: dtype for dtype, numpy_type in NUMPY.items() if dtype is not Dtype.tfloat32}

_POISON_BITS = {
    Dtype.float16: 0x7D5A,
    Dtype.bfloat16: 0x7FA5,
    Dtype.float32: 0x7FA5A5A5,
    Dtype.tfloat32: 0x7FA5A5A5,
    Dtype.float64: 0x7FF5A5A5A5A5A5A5,
}
"""Signalling NaNs; elements of every other type are bytes 0xA5."""


def to_numpy(dtype: Dtype) -> np.dtype[Any]:
    """The NumPy type of `dtype`; TypeError if it has none."""
    try:
        return NUMPY[dtype]
    except KeyError:
        raise TypeError(f"{dtype.name} has no NumPy type") from None


def from_numpy(numpy_type: np.dtype[Any]) -> Dtype:
    """The element type of arrays of `numpy_type`; TypeError if the interface has none."""
    try:
        return _DTYPE[numpy_type]
    except KeyError:
        raise TypeError(f"arrays of {numpy_type} can't become tensors") from None


_LARGEST_WORD = 8
"""Bytes of the largest integers that are compared as one; complex128, which is longer, is two of them."""


@cache
def poison_of(dtype: Dtype) -> bytes:
    """What each element of fresh memory holds: a signalling NaN for floating types, else bytes 0xA5."""
    part = COMPONENT.get(dtype, dtype)
    size = to_numpy(part).itemsize
    pattern = _POISON_BITS[part].to_bytes(size, "little") if part in _POISON_BITS else b"\xa5" * size
    return pattern * (to_numpy(dtype).itemsize // size)


def poisoned(elements: int, dtype: Dtype) -> Array:
    """An array of `elements` poisoned elements."""
    return np.frombuffer(bytearray(poison_of(dtype) * elements), to_numpy(dtype))


def is_poison(array: Array) -> npt.NDArray[np.bool]:
    """Where `array`'s elements are bit for bit poison; integers may look like it by chance."""
    elements = np.ascontiguousarray(array).reshape(-1)
    pattern = poison_of(from_numpy(array.dtype))
    words = elements.view(f"u{min(len(pattern), _LARGEST_WORD)}")
    matching: npt.NDArray[np.bool] = words == np.frombuffer(pattern, words.dtype)[0]
    if words.size > elements.size:
        matching = matching[::2] & matching[1::2]
    return matching.reshape(array.shape)
