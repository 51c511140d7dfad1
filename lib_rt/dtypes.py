"""NumPy types of the element types, and the poison pattern that marks unwritten memory."""

from __future__ import annotations

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from diopi_proto.dtypes import COMPONENT
from diopi_proto.types import Dtype

Array = npt.NDArray[Any]
"""A NumPy array of any element type."""

_COMPLEX32 = np.dtype([("real", np.float16), ("imag", np.float16)])
"""The NumPy type that represents complex32."""

NUMPY: dict[Dtype, np.dtype[Any]] = {
    **{dtype: np.dtype(dtype.name) for dtype in Dtype if hasattr(np, dtype.name)},
    Dtype.bfloat16: np.dtype(ml_dtypes.bfloat16),
    Dtype.tfloat32: np.dtype(np.float32),
    Dtype.complex32: _COMPLEX32,
}
"""NumPy type by element type. NumPy does not have complex32; a pair of float16 represents it."""

_DTYPES = {numpy_type: dtype for dtype, numpy_type in NUMPY.items() if dtype is not Dtype.tfloat32}
"""The element type by NumPy type."""

_POISON_BITS = {
    Dtype.float16: 0x7D5A,
    Dtype.bfloat16: 0x7FA5,
    Dtype.float32: 0x7FA5A5A5,
    Dtype.tfloat32: 0x7FA5A5A5,
    Dtype.float64: 0x7FF5A5A5A5A5A5A5,
}
"""The bits of the signaling NaN that marks unwritten elements, by real floating-point type.

Each part of a complex number has the pattern of its own type. Integers and bool are filled with bytes 0xA5.
"""


def to_numpy(dtype: Dtype) -> np.dtype[Any]:
    """Return the NumPy type of `dtype`.

    Raises:
        TypeError: `NUMPY` has no representation of the type.
    """
    try:
        return NUMPY[dtype]
    except KeyError:
        raise TypeError(f"NumPy does not have the element type {dtype.name}") from None


def from_numpy(numpy_type: np.dtype[Any]) -> Dtype:
    """Return the element type of arrays of `numpy_type`.

    Raises:
        TypeError: The interface does not have the type.
    """
    try:
        return _DTYPES[numpy_type]
    except KeyError:
        raise TypeError(
            f"arrays of {numpy_type} can't become tensors; the interface has {', '.join(map(str, _DTYPES))}"
        ) from None


def integer_range(dtype: Dtype) -> tuple[int, int]:
    """Return the smallest and largest value of an integer type; 0 and 1 for bool."""
    if dtype is Dtype.bool:
        return 0, 1
    limits = np.iinfo(to_numpy(dtype))
    return int(limits.min), int(limits.max)


_LARGEST_WORD = 8
"""Size in bytes of the largest integers that are compared at once; a complex128 consists of two of them."""


@cache
def poison_of(dtype: Dtype) -> bytes:
    """Return the bytes of an unwritten element.

    They are a signaling NaN for a real floating-point type, two for a complex type, and bytes 0xA5 for all other types.
    """
    part = COMPONENT.get(dtype, dtype)
    size = to_numpy(part).itemsize
    pattern = _POISON_BITS[part].to_bytes(size, "little") if part in _POISON_BITS else b"\xa5" * size
    return pattern * (to_numpy(dtype).itemsize // size)


def poisoned_array(elements: int, dtype: Dtype) -> Array:
    """Return an array of `elements` poisoned elements."""
    return np.frombuffer(bytearray(poison_of(dtype) * elements), to_numpy(dtype))


def is_poison(array: Array) -> npt.NDArray[np.bool]:
    """Return a mask of the elements that contain the poison pattern; an integer can have this value by chance."""
    elements = np.ascontiguousarray(array).reshape(-1)
    pattern = poison_of(from_numpy(array.dtype))
    words = elements.view(f"u{min(len(pattern), _LARGEST_WORD)}")
    matching: npt.NDArray[np.bool] = words == np.frombuffer(pattern, words.dtype)[0]
    if words.size > elements.size:
        matching = matching[::2] & matching[1::2]
    return matching.reshape(array.shape)
