"""PyTorch tensors over memory of the vendor, without copies and without compiled code.

PyTorch creates a tensor from any DLPack capsule; device type 12, `kDLExtDev`, is `PrivateUse1`. The capsule comes from
a NumPy array over the memory and is modified before PyTorch consumes it. The storage therefore owns the array, and the
memory is released when the array is deleted. Source: dlpack.h, version 0.8; torch.utils.dlpack.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np
import torch

from diopi_proto.types import Dtype
from diopi_torch.backend import Backend, backend
from diopi_torch.layout import CPU, DTYPES, TensorLayout, contiguous_strides, dlpack, layout_of, span_size
from diopi_torch.memory import DeviceMemoryError
from diopi_torch.pools import MemoryBlock
from diopi_torch.settings import NAME

CPU_KEYS = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
"""The dispatch keys for operators that only inspect memory; the CPU's kernels do not access it."""

# Global names are found faster than attributes; each new tensor needs these.
_UNSUPPORTED = Dtype.unsupported

_CAPSULE = dlpack.typeof("DLTensor**")

_cast = dlpack.cast

_from_dlpack = torch._C._from_dlpack

_HEADER = object.__basicsize__
"""Size of the header of a Python object in bytes; in a capsule, the pointer to its contents follows."""


@final
class _BlockBytes(np.ndarray[Any, Any]):
    """The bytes of a memory block as an array; deleting the array releases the block."""

    __slots__ = ("block", "give_back")

    block: MemoryBlock
    give_back: Callable[[MemoryBlock], None]

    def __del__(self) -> None:
        self.give_back(self.block)


def _dltensor_of(capsule: object) -> Any:
    """Return the DLTensor in a DLPack capsule, so that the caller can modify it."""
    return _cast(_CAPSULE, id(capsule) + _HEADER)[0]


def allocate(layout: TensorLayout, device: Backend, stream: int) -> torch.Tensor:
    """Allocate an uninitialized tensor.

    Args:
        layout: the layout of the tensor.
        device: the device.
        stream: the number of the stream that uses the tensor first.

    Returns:
        The tensor.

    Raises:
        OutOfMemoryError: if there is not enough memory.
        TypeError: if the standard does not have the element type.
    """
    if layout.dtype is _UNSUPPORTED:
        supported = ", ".join(map(str, DTYPES))
        raise TypeError(f"{layout.torch_dtype} is not an element type of the standard, which has {supported}")
    try:
        block = device.allocator.allocate(layout.nbytes, stream)
    except DeviceMemoryError as error:
        raise torch.OutOfMemoryError(f"{NAME} out of memory: {error}") from None
    block_array = _BlockBytes(block.nbytes, np.uint8, block.buffer)
    block_array.block, block_array.give_back = block, device.allocator.give_back
    capsule = block_array.__dlpack__()
    tensor = _dltensor_of(capsule)
    tensor.description = layout.description[0]
    tensor.description.device.number = device.index
    return _from_dlpack(capsule)


def allocate_on_current_stream(
    shape: Sequence[int], dtype: torch.dtype, strides: Sequence[int] | None = None
) -> torch.Tensor:
    """Return a new uninitialized tensor for the current stream; it is contiguous unless strides are passed."""
    sizes, device = tuple(shape), backend()
    layout = layout_of(sizes, contiguous_strides(sizes) if strides is None else tuple(strides), dtype)
    return allocate(layout, device, device.stream.stream_id)


def is_on_device(value: object) -> bool:
    """Return whether a value is a tensor of the device."""
    return isinstance(value, torch.Tensor) and value.device.type == NAME


def read_to_host(tensor: torch.Tensor) -> torch.Tensor:
    """Return a CPU tensor with the elements and strides of a tensor of the device, after waiting for the stream.

    The CPU tensor uses the same memory if the host can address it, otherwise a copy. It is lazily conjugated or negated
    if `tensor` is.

    Args:
        tensor: a tensor of the device.

    Returns:
        The CPU tensor.
    """
    device = backend()
    device.stream.synchronize()
    host = _share_memory(tensor) if device.device.host_addressable else _download(tensor, device)
    host = torch._conj(host) if tensor.is_conj() else host
    return torch._neg_view(host) if tensor.is_neg() else host


def _share_memory(tensor: torch.Tensor) -> torch.Tensor:
    """Return a CPU tensor over the stored elements of a tensor of the device."""
    capsule = torch._C._to_dlpack(tensor)
    description = _dltensor_of(capsule).description
    description.device.type, description.device.number = CPU, 0
    return _from_dlpack(capsule)


def _download(tensor: torch.Tensor, device: Backend) -> torch.Tensor:
    """Return a CPU tensor with a copy of the stored elements of a tensor of the device."""
    elements = span_size(tensor.shape, tensor.stride())
    span = torch.empty(elements, dtype=tensor.dtype)
    if elements:
        device.stream.native.d2h(span.data_ptr(), tensor.data_ptr(), elements * tensor.dtype.itemsize)
        device.stream.synchronize()
    return span.as_strided(tensor.shape, tensor.stride())


def has_lazy_bits(value: object) -> bool:
    """Return whether a value is a tensor whose elements PyTorch has yet to conjugate or negate."""
    return isinstance(value, torch.Tensor) and (value.is_conj() or value.is_neg())


def materialize(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor that stores its elements as they are; `tensor` itself unless PyTorch has deferred a change."""
    return tensor.resolve_conj().resolve_neg()


def stored_elements(tensor: torch.Tensor) -> torch.Tensor:
    """Return a view of the stored elements, without the conjugation or negation that PyTorch has deferred."""
    stored = torch._conj(tensor) if tensor.is_conj() else tensor
    return torch._neg_view(stored) if stored.is_neg() else stored


def is_dense(tensor: torch.Tensor) -> bool:
    """Return whether the elements fill a span of memory without gaps or overlaps, for any order of the axes."""
    if not tensor.numel():
        return True
    expected = 1
    for step, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size != 1:
            if step != expected:
                return False
            expected *= size
    return True


def copy_bytes(target: torch.Tensor, source: torch.Tensor, non_blocking: bool = False) -> None:
    """Copy the bytes between dense tensors of equal type, shape and strides.

    If one of them is on the host, the call waits for the copy. With `non_blocking`, it does not wait if the runtime has
    events and the host memory is pinned; the memory is not reused before the copy is complete.

    Args:
        target: the tensor to write.
        source: the tensor to read; on the same device, or on the host.
        non_blocking: whether the copy may still be running when the call returns.
    """
    device = backend()
    stream = device.stream
    native, nbytes = stream.native, source.numel() * source.dtype.itemsize
    if not nbytes:
        return
    addresses = target.data_ptr(), source.data_ptr()
    if is_on_device(target) and is_on_device(source):
        native.d2d(*addresses, nbytes)
        return
    host = source if is_on_device(target) else target
    (native.d2h if host is target else native.h2d)(*addresses, nbytes)
    if non_blocking and device.runtime.has_events and (block := pinned_block(host)) is not None:
        device.host_allocator.record_use(block, stream)
    else:
        stream.synchronize()


def copy_bytes_between_devices(target: torch.Tensor, source: torch.Tensor) -> None:
    """Copy the bytes between dense tensors of equal type, shape and strides on different devices.

    The copy comes after the work on the current streams of both devices, and later work on both streams comes after it.
    """
    target_device, source_device = (backend().device_at(tensor.device.index) for tensor in (target, source))
    target_device.stream.wait_stream(source_device.stream)
    target_device.runtime.copy_between_devices(
        target_device.stream,
        (target_device.index, target.data_ptr()),
        (source_device.index, source.data_ptr()),
        source.numel() * source.dtype.itemsize,
    )
    source_device.stream.wait_stream(target_device.stream)


pinned_addresses: set[int] = set()
"""The addresses of all blocks of pinned memory that are in use."""


def pinned_block(tensor: torch.Tensor) -> int | None:
    """Return the address of the block of pinned memory that contains a CPU tensor; None if its memory is not pinned."""
    address = tensor.untyped_storage().data_ptr()
    return address if address in pinned_addresses else None


def upload(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy of a CPU tensor on the device; it has the same strides if the tensor is dense."""
    plain = materialize(tensor)
    dense = plain if is_dense(plain) else plain.contiguous()
    uploaded = allocate_on_current_stream(dense.shape, dense.dtype, dense.stride())
    copy_bytes(uploaded, dense)
    return uploaded
