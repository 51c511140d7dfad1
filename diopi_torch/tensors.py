"""Tensors of PyTorch over memory of the vendor's, without copies and without compiled code.

PyTorch makes a tensor of whatever a DLPack capsule describes; device type 12, `kDLExtDev`, is its `PrivateUse1`. The
capsule is one that PyTorch itself made of a NumPy array over the memory, described anew before it is consumed: so the
storage owns the array, and the array's end gives the memory back. Source: dlpack.h, version 0.8; torch.utils.dlpack.
"""

from __future__ import annotations

import ctypes
import struct
import weakref
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, final

import numpy as np
import torch

from diopi_proto.types import Dtype
from diopi_torch.backend import backend
from diopi_torch.memory import Block, DeviceMemoryError
from diopi_torch.settings import NAME
from lib_rt.library import ffi

CPU_KEYS = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
"""With which operators that only look at memory are called: those of the CPU never touch it."""

DTYPES: dict[torch.dtype, Dtype] = {
    getattr(torch, dtype.name): dtype for dtype in Dtype if isinstance(getattr(torch, dtype.name, None), torch.dtype)
}
"""The element types that PyTorch and the standard share."""

TORCH_DTYPES = {dtype: torch_dtype for torch_dtype, dtype in DTYPES.items()}

_EXTERNAL, _CPU = 12, 1
_DEVICE_TYPE_OFFSET = 8
_INT, _UINT, _FLOAT, _BFLOAT, _COMPLEX, _BOOL = 0, 1, 2, 4, 5, 6


def _type_code(dtype: torch.dtype) -> int:
    if dtype.is_complex:
        return _COMPLEX
    if dtype.is_floating_point:
        return _BFLOAT if dtype is torch.bfloat16 else _FLOAT
    if dtype is torch.bool:
        return _BOOL
    return _INT if dtype.is_signed else _UINT


_DLPACK_TYPES = {dtype: struct.pack("=BBH", _type_code(dtype), 8 * dtype.itemsize, 1) for dtype in DTYPES}

_HEADER = struct.Struct("=QiiI4sQQQ")
"""A DLTensor: data, device type and number, rank, element type, addresses of shape and strides, offset in bytes."""

_pointer_in = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_in.restype = ctypes.c_void_p
_pointer_in.argtypes = [ctypes.py_object, ctypes.c_char_p]


@final
class _Lease(weakref.ref["np.ndarray[Any, Any]"]):
    """Gives a block back when the array over it ends."""

    __slots__ = ("block", "give_back")
    block: Block
    give_back: Callable[[Block], None]


_leases: dict[int, _Lease] = {}


def _end(lease: _Lease) -> None:
    del _leases[id(lease)]
    lease.give_back(lease.block)


def _lent(nbytes: int) -> tuple[Block, np.ndarray[Any, Any]]:
    """A block for work on the current stream, and an array of `nbytes` over it with which it ends."""
    device = backend()
    try:
        block = device.allocator.allocate(nbytes, device.stream.stream_id)
    except DeviceMemoryError as error:
        raise torch.OutOfMemoryError(f"{NAME} out of memory: {error}") from None
    memory = ffi.buffer(ffi.cast("char*", block.address), max(nbytes, 1))
    array: np.ndarray[Any, Any] = np.frombuffer(memory, np.uint8)
    lease = _Lease(array, _end)
    lease.block, lease.give_back = block, device.allocator.give_back
    _leases[id(lease)] = lease
    return block, array


def contiguous_strides(shape: Sequence[int]) -> list[int]:
    """The strides, in elements, of a row-major tensor; axes of size 0 count as 1."""
    return [prod(max(size, 1) for size in shape[axis + 1 :]) for axis in range(len(shape))]


def extent(shape: Sequence[int], strides: Sequence[int]) -> int:
    """Elements from the first to the last in memory, both counted."""
    return 0 if 0 in shape else 1 + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))


def new(shape: Sequence[int], dtype: torch.dtype, strides: Sequence[int] | None = None) -> torch.Tensor:
    """A tensor of the device in fresh memory, which is not written; contiguous if no strides are given.

    torch.OutOfMemoryError if there is not enough; TypeError for an element type that the standard does not have.
    """
    if dtype not in _DLPACK_TYPES:
        raise TypeError(f"{dtype} is no element type of the standard, which has {', '.join(map(str, DTYPES))}")
    steps = contiguous_strides(shape) if strides is None else strides
    block, array = _lent(extent(shape, steps) * dtype.itemsize)
    capsule = torch._C._to_dlpack(torch.from_numpy(array))
    rank = len(shape)
    sizes = (ctypes.c_int64 * (2 * rank))(*shape, *steps)
    where = ctypes.addressof(sizes)
    described = _HEADER.pack(
        *(block.address, _EXTERNAL, 0, rank, _DLPACK_TYPES[dtype]), *(where, where + 8 * rank if rank else 0, 0)
    )
    ctypes.memmove(_pointer_in(capsule, b"dltensor"), described, len(described))
    return torch._C._from_dlpack(capsule)


def is_ours(value: object) -> bool:
    """Whether a value is a tensor of the device."""
    return isinstance(value, torch.Tensor) and value.device.type == NAME


def on_host(tensor: torch.Tensor) -> torch.Tensor:
    """The elements of a tensor of the device on the CPU, strides and all, after waiting for the stream.

    The memory itself where the host can address it, else a copy.
    """
    device = backend()
    device.stream.synchronize()
    if device.device.host_addressable:
        capsule = torch._C._to_dlpack(tensor)
        address = _pointer_in(capsule, b"dltensor")
        assert address is not None
        ctypes.c_int32.from_address(address + _DEVICE_TYPE_OFFSET).value = _CPU
        return torch._C._from_dlpack(capsule)
    elements = extent(tensor.shape, tensor.stride())
    span = torch.empty(elements, dtype=tensor.dtype)
    if elements:
        device.stream.native.d2h(span.data_ptr(), tensor.data_ptr(), elements * tensor.dtype.itemsize)
        device.stream.synchronize()
    return span.as_strided(tensor.shape, tensor.stride())


def is_dense(tensor: torch.Tensor) -> bool:
    """Whether the elements fill a span of memory, each place once, in whatever order of the axes."""
    if not tensor.numel():
        return True
    expected = 1
    for step, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size != 1:
            if step != expected:
                return False
            expected *= size
    return True


def copy_bytes(target: torch.Tensor, source: torch.Tensor) -> None:
    """Copy the elements between two dense tensors with the same element type, shape and strides; to or from the host.

    Waits where the host is one side of it.
    """
    stream = backend().stream
    native, nbytes = stream.native, source.numel() * source.dtype.itemsize
    if not nbytes:
        return
    addresses = target.data_ptr(), source.data_ptr()
    if is_ours(target) and is_ours(source):
        native.d2d(*addresses, nbytes)
        return
    (native.h2d if is_ours(target) else native.d2h)(*addresses, nbytes)
    stream.synchronize()


def upload(tensor: torch.Tensor) -> torch.Tensor:
    """A copy of a CPU tensor on the device, with its strides if it is dense."""
    dense = tensor if is_dense(tensor) else tensor.contiguous()
    uploaded = new(dense.shape, dense.dtype, dense.stride())
    copy_bytes(uploaded, dense)
    return uploaded
