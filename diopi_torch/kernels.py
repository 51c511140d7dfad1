"""Kernels of PyTorch operators that create, inspect or copy memory, and of a few others.

A kernel is the function that PyTorch calls for an operator on the device. `KERNELS` lists these kernels by operator;
the backend registers them. They call a function of the vendor only to copy and to fill memory. The kernels of all other
operators are derived from the functions of the vendor (`operators.py`).

The parameters of a kernel are those of its operator in ATen; a keyword that PyTorch resolves before is ignored.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import torch

from diopi_torch.backend import backend
from diopi_torch.fallback import count_fallback, fall_back
from diopi_torch.functions import UnsupportedCallError
from diopi_torch.layout import contiguous_strides, span_size
from diopi_torch.operators import COPY
from diopi_torch.overlap import share_elements
from diopi_torch.sdpa import choose_backend
from diopi_torch.settings import NAME
from diopi_torch.tensors import (
    CPU_KEYS,
    allocate_on_current_stream,
    copy_bytes,
    copy_bytes_between_devices,
    is_dense,
    is_on_device,
    read_to_host,
    stored_elements,
)

aten = torch.ops.aten

Kernel = Callable[..., Any]
"""A function with the arguments of an operator."""

KERNELS: dict[str, Kernel] = {}
"""The kernels by operator name."""


def kernel(name: str) -> Callable[[Kernel], Kernel]:
    """Return a decorator that enters a function in `KERNELS` as the kernel of the operator `name`."""

    def register(function: Kernel) -> Kernel:
        """Add the function to `KERNELS` and return it."""
        KERNELS[name] = function
        return function

    return register


METADATA_OPERATORS = (
    aten.as_strided.default,
    aten.view.default,
    aten._reshape_alias.default,
    aten.view_as_real.default,
    aten.view_as_complex.default,
    aten.set_.source_Storage,
    aten.set_.source_Storage_storage_offset,
    aten.set_.source_Tensor,
    aten.is_set_to.default,
)
"""Operators that use only shapes, strides and storages, so PyTorch's CPU kernels also work for the device."""


for _operator in METADATA_OPERATORS:
    KERNELS[_operator._schema.name.removeprefix("aten::") + f".{_operator._overloadname}".removesuffix(".default")] = (
        partial(_operator.redispatch, CPU_KEYS)
    )


@kernel("unfold")
def _unfold(self: torch.Tensor, dimension: int, size: int, step: int) -> torch.Tensor:
    """Return a view of all windows of `size` elements along an axis; a meta tensor determines its shape and strides."""
    meta = torch.empty_strided(self.shape, self.stride(), device="meta").unfold(dimension, size, step)
    return self.as_strided(meta.shape, meta.stride(), self.storage_offset())


@kernel("empty.memory_format")
def _empty(
    size: Sequence[int],
    *,
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
    memory_format: torch.memory_format | None = None,
) -> torch.Tensor:
    """Return an allocated tensor without initial values; raise RuntimeError, as PyTorch does, if the size overflows."""
    _check_device_and_pinning(device, pin_memory)
    strides = None
    if memory_format not in (None, torch.contiguous_format, torch.preserve_format):
        strides = torch.empty(size, device="meta", memory_format=memory_format).stride()
    try:
        allocated = allocate_on_current_stream(size, dtype or torch.get_default_dtype(), strides)
    except OverflowError:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(size)}") from None
    return _fill_if_deterministic(allocated)


@kernel("empty_strided")
def _empty_strided(
    size: Sequence[int],
    stride: Sequence[int],
    *,
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
) -> torch.Tensor:
    """Return an allocated tensor with these strides; raise RuntimeError for invalid sizes or strides."""
    _check_device_and_pinning(device, pin_memory)
    if len(size) != len(stride):
        raise RuntimeError(
            f"dimensionality of sizes ({len(size)}) must match dimensionality of strides ({len(stride)})"
        )
    try:
        if stride and min(stride) < 0:
            raise OverflowError
        allocated = allocate_on_current_stream(size, dtype or torch.get_default_dtype(), stride)
    except OverflowError:
        arguments = f"sizes={list(size)} and strides={list(stride)}"
        raise RuntimeError(f"Storage size calculation overflowed with {arguments}") from None
    return _fill_if_deterministic(allocated)


def _fill_if_deterministic(tensor: torch.Tensor) -> torch.Tensor:
    """Return a new tensor; fill it with NaN, the largest integer or True for deterministic algorithms."""
    if torch._C._get_deterministic_algorithms() and torch._C._get_deterministic_fill_uninitialized_memory():
        is_integer = not (tensor.is_floating_point() or tensor.is_complex() or tensor.dtype is torch.bool)
        tensor.fill_(torch.iinfo(tensor.dtype).max if is_integer else torch.nan)
    return tensor


def _check_device_and_pinning(device: torch.device | None, pin_memory: bool | None) -> None:
    """Raise RuntimeError if pinned memory or a device index other than 0 is requested."""
    if pin_memory:
        raise RuntimeError("Only dense CPU tensors can be pinned")
    if device is not None and device.index and device.index != backend().index:
        raise RuntimeError(f"there is no device '{device}': the only one is {NAME}:0")


@kernel("set_")
def _set(self: torch.Tensor) -> torch.Tensor:
    """Make `self` an empty tensor with a new storage, and return it."""
    return _set_contiguous(self, allocate_on_current_stream([0], self.dtype).untyped_storage(), 0, [0])


@kernel("resize_")
def _resize(
    self: torch.Tensor, size: Sequence[int], *, memory_format: torch.memory_format | None = None
) -> torch.Tensor:
    """Resize a tensor in place, and return it; its storage grows if it is too small, and never shrinks."""
    if list(self.shape) == list(size) and memory_format is None:
        return self
    offset, storage = int(self.storage_offset()), self.untyped_storage()
    required_bytes = (offset + prod(size)) * self.dtype.itemsize if prod(size) else 0
    if required_bytes > storage.nbytes():
        storage.resize_(required_bytes)
    _set_contiguous(self, storage, offset, size)
    if memory_format not in (None, torch.contiguous_format, torch.preserve_format):
        strides = torch.empty(size, device="meta", memory_format=memory_format).stride()
        aten.set_.source_Storage_storage_offset.redispatch(CPU_KEYS, self, storage, offset, list(size), list(strides))
    return self


@kernel("_resize_output_")
def _resize_output(self: torch.Tensor, size: Sequence[int], device: torch.device) -> torch.Tensor:
    """Resize an output tensor, and return it; issue PyTorch's warning if it is not empty."""
    if list(self.shape) == list(size):
        return self
    if self.numel():
        warnings.warn(
            f"An output with one or more elements was resized since it had shape {list(self.shape)}, which does not "
            f"match the required output shape {list(size)}.",
            stacklevel=2,
        )
    return self.resize_(size)


def _set_contiguous(
    tensor: torch.Tensor, storage: torch.UntypedStorage, offset: int, size: Sequence[int]
) -> torch.Tensor:
    """Point a tensor at elements of a storage, with contiguous strides, and return the tensor."""
    strides = contiguous_strides(tuple(size))
    return aten.set_.source_Storage_storage_offset.redispatch(CPU_KEYS, tensor, storage, offset, list(size), strides)


@kernel("_efficientzerotensor")
def _zeros(
    size: Sequence[int],
    *,
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: torch.device | None = None,
    pin_memory: bool | None = None,
) -> torch.Tensor:
    """Return zeros in allocated memory; PyTorch's own devices represent zero gradients without memory."""
    return allocate_on_current_stream(size, dtype or torch.get_default_dtype()).zero_()


@kernel("_to_copy")
def _to_copy(self: torch.Tensor, *, non_blocking: bool = False, **options: Any) -> torch.Tensor:
    """Return a copy with another type or on another device; copies to new CPU tensors always block.

    For them, PyTorch's kernel would allocate pinned memory in compiled code.
    """
    target = options.get("device") or self.device
    blocks = not non_blocking or target.type == "cpu"
    return aten._to_copy.default.redispatch(CPU_KEYS, self, non_blocking=not blocks, **options)


@kernel("native_dropout_backward")
def _native_dropout_backward(grad_output: torch.Tensor, mask: torch.Tensor, scale: float) -> torch.Tensor:
    """Return the gradient of dropout: zero for dropped elements, `scale` times `grad_output` for the others."""
    return grad_output * mask * scale


@kernel("_local_scalar_dense")
def _local_scalar_dense(self: torch.Tensor) -> Any:
    """Return the only element of a tensor as a Python number (`Tensor.item`)."""
    return read_to_host(self).item()


@kernel("is_pinned")
def _is_pinned(self: torch.Tensor, device: torch.device | None = None) -> bool:
    """Return False: memory of the device is never pinned CPU memory."""
    return False


KERNELS["_fused_sdp_choice"] = choose_backend


@kernel("_copy_from")
def _copy_from(self: torch.Tensor, dst: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    """Copy `self` to `dst`, and return `dst`.

    Each may be on the host or the device, and lazily conjugated or negated.

    Args:
        self: the source, or a number.
        dst: the target, which keeps its type and layout.
        non_blocking: whether the call may return before the copy is complete.

    Returns:
        The target.
    """
    # PyTorch passes a number if the program copies a number
    self = self if isinstance(self, torch.Tensor) else torch.tensor(self, dtype=dst.dtype)
    source, target = stored_elements(self), stored_elements(dst)
    source = source if source.shape == target.shape else source.expand(target.shape)
    if is_on_device(source) and is_on_device(target):
        (_copy_on_device if source.device == target.device else _copy_between_devices)(source, target)
    elif is_on_device(target):
        _copy_to_device(source, target, non_blocking)
    else:
        _copy_to_host(source, target, non_blocking)
    if target.is_complex() and self.is_conj() != dst.is_conj():
        torch.view_as_real(target).select(-1, 1).neg_()
    if self.is_neg() != dst.is_neg():
        target.neg_()
    return dst


COPIES_BETWEEN_DEVICES = frozenset({"_copy_from", "_copy_from_and_resize", "_to_copy"})
"""The kernels whose tensors may be on different devices."""

FALLTHROUGH = {"_copy_from": ("Conjugate", "Negative")}
"""The dispatch keys that a kernel handles itself: PyTorch does not first resolve a lazy conjugation or negation."""


@kernel("histc")
def _histc(self: torch.Tensor, bins: int = 100, min: float = 0, max: float = 0) -> torch.Tensor:
    """Return the counts of the elements in equal intervals, computed on the CPU.

    The CPU needs floating-point elements; others are converted.
    """
    elements = self if self.dtype.is_floating_point else self.double()
    return fall_back(aten.histc.default, elements, bins, min, max).to(self.dtype)


@kernel("_lazy_clone")
def _lazy_clone(self: torch.Tensor) -> torch.Tensor:
    """Return a copy at once: PyTorch can defer the copy only for memory that its own allocators have allocated."""
    return self.clone()


@kernel("_copy_from_and_resize")
def _copy_from_and_resize(self: torch.Tensor, dst: torch.Tensor) -> torch.Tensor:
    """Copy `self` to `dst`, which is first resized to the shape of `self`, and return `dst`."""
    return _copy_from(self, dst.resize_(self.shape))


def _is_plain_copy(source: torch.Tensor, target: torch.Tensor) -> bool:
    """Return whether both tensors have one type and layout, so that their bytes can be copied as one block."""
    return source.dtype == target.dtype and source.stride() == target.stride() and is_dense(source)


def _copy_on_device(source: torch.Tensor, target: torch.Tensor) -> None:
    """Copy between two tensors on the device: as bytes, with the vendor's copy function, or through the host."""
    if not target.numel():
        return
    if _is_plain_copy(source, target) and not share_elements(source, target):
        copy_bytes(target, source)
        return
    try:
        COPY.run_with_functions((target, source), {})
    except UnsupportedCallError:
        count_fallback("copy_")
        _copy_through_host(read_to_host(source), target)


def _copy_between_devices(source: torch.Tensor, target: torch.Tensor) -> None:
    """Copy to a tensor on another device: convert the elements on the source's device, then copy their bytes."""
    if not target.numel():
        return
    if _is_plain_copy(source, target):
        copy_bytes_between_devices(target, source)
        return
    strides = target.stride() if is_dense(target) else contiguous_strides(tuple(target.shape))
    converted, received = (
        torch.empty_strided(target.shape, strides, dtype=target.dtype, device=tensor.device)
        for tensor in (source, target)
    )
    converted.copy_(source)
    copy_bytes_between_devices(received, converted)
    _copy_on_device(received, target)


def _copy_through_host(source: torch.Tensor, target: torch.Tensor) -> None:
    """Copy a CPU tensor to the device: read the target to the host, change it there, and write it back."""
    host_array = read_to_host(target)
    host_array.copy_(source)
    if host_array.data_ptr() != target.data_ptr():
        span = [span_size(target.shape, target.stride())]
        copy_bytes(target.as_strided(span, [1]), host_array.as_strided(span, [1]))


def _copy_to_device(source: torch.Tensor, target: torch.Tensor, non_blocking: bool) -> None:
    """Copy a CPU tensor to the device, converted to the type and strides of the target."""
    if not is_dense(target):
        dense = allocate_on_current_stream(target.shape, target.dtype)
        _copy_to_device(source, dense, non_blocking)
        _copy_on_device(dense, target)
        return
    if not _is_plain_copy(source, target):
        source = torch.empty_strided(target.shape, target.stride(), dtype=target.dtype).copy_(source)
    copy_bytes(target, source, non_blocking)


def _copy_to_host(source: torch.Tensor, target: torch.Tensor, non_blocking: bool) -> None:
    """Copy a tensor on the device to a CPU tensor, converted to the type and strides of the target."""
    if not is_dense(source):
        dense = allocate_on_current_stream(source.shape, source.dtype)
        _copy_on_device(source, dense)
        source = dense
    if _is_plain_copy(source, target):
        copy_bytes(target, source, non_blocking)
        return
    staged = torch.empty_strided(source.shape, source.stride(), dtype=source.dtype)
    copy_bytes(staged, source)
    target.copy_(staged)
