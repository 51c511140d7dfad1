"""Tensors of PyTorch over memory of the vendor's, without copies and without compiled code.

PyTorch makes a tensor of whatever a DLPack capsule describes; device type 12, `kDLExtDev`, is its `PrivateUse1`. The
capsule is one that NumPy made of an array over the memory, described anew before it is consumed: so the storage owns
the array, and the array's end gives the memory back. Source: dlpack.h, version 0.8; torch.utils.dlpack.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np
import torch

from diopi_proto.types import Dtype
from diopi_torch.backend import Backend, backend
from diopi_torch.layout import CPU, DTYPES, Layout, contiguous_strides, dlpack, extent, layout_of
from diopi_torch.memory import Block, DeviceMemoryError
from diopi_torch.settings import NAME

CPU_KEYS = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
"""With which operators that only look at memory are called: those of the CPU never touch it."""

_UNSUPPORTED = Dtype.unsupported

_CAPSULE = dlpack.typeof("DLTensor**")

_cast = dlpack.cast

_from_dlpack = torch._C._from_dlpack

_HEADER = object.__basicsize__
"""Bytes that all objects of Python begin with. In a capsule the pointer that it holds follows."""


@final
class _Lent(np.ndarray[Any, Any]):
    """The bytes of a block, which is given back when they end."""

    __slots__ = ("block", "give_back")

    block: Block
    give_back: Callable[[Block], None]

    def __del__(self) -> None:
        self.give_back(self.block)


def _tensor_in(capsule: object) -> Any:
    """The DLTensor of a capsule, to be changed."""
    return _cast(_CAPSULE, id(capsule) + _HEADER)[0]


def allocate(layout: Layout, device: Backend, stream: int) -> torch.Tensor:
    """A tensor in fresh memory, which is not written, for work on the stream of this number.

    torch.OutOfMemoryError if there is not enough; TypeError for an element type that the standard does not have.
    """
    if layout.dtype is _UNSUPPORTED:
        known = ", ".join(map(str, DTYPES))
        raise TypeError(f"{layout.torch_dtype} is no element type of the standard, which has {known}")
    try:
        block = device.allocator.allocate(layout.nbytes, stream)
    except DeviceMemoryError as error:
        raise torch.OutOfMemoryError(f"{NAME} out of memory: {error}") from None
    lent = _Lent(block.nbytes, np.uint8, block.buffer)
    lent.block, lent.give_back = block, device.allocator.give_back
    capsule = lent.__dlpack__()
    _tensor_in(capsule).description = layout.description[0]
    return _from_dlpack(capsule)


def new(shape: Sequence[int], dtype: torch.dtype, strides: Sequence[int] | None = None) -> torch.Tensor:
    """A tensor in fresh memory, as `made` gives it, for the current stream; contiguous if no strides are given."""
    sizes, device = tuple(shape), backend()
    layout = layout_of(sizes, contiguous_strides(sizes) if strides is None else tuple(strides), dtype)
    return allocate(layout, device, device.stream.stream_id)


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
        _tensor_in(capsule).description.device.type = CPU
        return _from_dlpack(capsule)
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
