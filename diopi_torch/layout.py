"""Element type, shape and strides of tensors for PyTorch, the standard and DLPack.

Source: dlpack.h, version 0.8.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any, final

import cffi
import torch

from diopi_proto.types import Dtype

DTYPES: dict[torch.dtype, Dtype] = {
    getattr(torch, dtype.name): dtype for dtype in Dtype if isinstance(getattr(torch, dtype.name, None), torch.dtype)
}
"""The element types that PyTorch and the standard have in common."""

TORCH_DTYPES = {dtype: torch_dtype for torch_dtype, dtype in DTYPES.items()}
"""The same element types, by the type of the standard."""

EXTERNAL, CPU = 12, 1
"""Types of devices in DLPack; the first, `kDLExtDev`, is PyTorch's `PrivateUse1`."""

_INT, _UINT, _FLOAT, _BFLOAT, _COMPLEX, _BOOL = 0, 1, 2, 4, 5, 6
"""DLPack's codes of kinds of element types."""

dlpack: Any = cffi.FFI()
dlpack.cdef("""
    typedef struct {
        struct { int32_t type, number; } device;
        int32_t rank;
        struct { uint8_t code, bits; uint16_t lanes; } dtype;
        int64_t *shape, *strides;
        uint64_t byte_offset;
    } Description;
    typedef struct {
        void* data;
        Description description;
    } DLTensor;
""")
DESCRIPTION = dlpack.typeof("Description*")
"""The type of pointers to descriptions; looking it up takes time."""


def _type_code(dtype: torch.dtype) -> int:
    """Return DLPack's type code of an element type."""
    if dtype.is_complex:
        return _COMPLEX
    if dtype.is_floating_point:
        return _BFLOAT if dtype is torch.bfloat16 else _FLOAT
    if dtype is torch.bool:
        return _BOOL
    return _INT if dtype.is_signed else _UINT


@lru_cache(maxsize=2**12)
def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of a row-major tensor, in elements; axes of size 0 count as 1."""
    return tuple(prod(max(size, 1) for size in shape[axis + 1 :]) for axis in range(len(shape)))


def span_size(shape: Sequence[int], strides: Sequence[int]) -> int:
    """Return the number of elements that the memory from the first to the last element, inclusive, can hold."""
    return 0 if 0 in shape else 1 + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))


@final
class TensorLayout:
    """The shape, strides and element type of a tensor; `layout_of` returns the same instance for equal arguments.

    Attributes:
        shape: the number of elements along each axis.
        strides: the distance between neighbors along each axis, in elements.
        torch_dtype: the element type in PyTorch.
        dtype: the element type in the standard, or `unsupported`.
        nbytes: the number of bytes from the first element to the last, inclusive.
        description: the DLTensor of such a tensor on the device without its address.
    """

    __slots__ = ("_sizes", "description", "dtype", "nbytes", "shape", "strides", "torch_dtype")

    def __init__(self, shape: tuple[int, ...], strides: tuple[int, ...], torch_dtype: torch.dtype) -> None:
        self.shape = shape
        self.strides = strides
        self.torch_dtype = torch_dtype
        self.dtype = DTYPES.get(torch_dtype, Dtype.unsupported)
        self.nbytes = span_size(shape, strides) * torch_dtype.itemsize
        self._sizes = dlpack.new("int64_t[]", [*shape, *strides])
        self.description = self._make_description()

    def _make_description(self) -> Any:
        """Return the DLTensor of such a tensor on the device, with an unset address."""
        description = dlpack.new(DESCRIPTION)
        description.device.type = EXTERNAL
        description.rank = len(self.shape)
        description.dtype = _type_code(self.torch_dtype), 8 * self.torch_dtype.itemsize, 1
        description.shape, description.strides = self._sizes, self._sizes + len(self.shape)
        return description


layout_of = lru_cache(maxsize=2**14)(TensorLayout)
"""Return the layout for a shape, strides and an element type."""
