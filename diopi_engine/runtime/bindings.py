"""The bindings of an execution: map addresses and handles to arrays that the engine reads and writes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import prod
from typing import Any

import numpy as np

from diopi_engine.manifest import Binding
from diopi_engine.proto.hgrt import MemFlags, Result
from diopi_engine.runtime.errors import InterfaceError
from diopi_engine.runtime.execution import binding_shape
from diopi_engine.runtime.ffi import ffi
from diopi_engine.runtime.handles import Handles
from diopi_engine.runtime.objects import ExecutionContext, RuntimeTensor
from diopi_engine.sizes import Array, numpy_type


def map_arrays(
    handles: Handles, context: ExecutionContext, batch: int, bindings: Any, info: Any
) -> tuple[list[Array], list[Array]]:
    """Return the inputs and outputs of an execution as arrays over their memory, without copies.

    Raises InterfaceError with HG_ERROR_BINDING or the errors of handles.

    Args:
        handles: the handles of the runtime.
        context: the execution context.
        batch: the batch size.
        bindings: `void**`, one entry per binding.
        info: `const hgHostTensorDesc*`, one description of all bindings, or NULL.

    Returns:
        The inputs and the outputs.
    """
    described = context.owner.engine.manifest.bindings
    arrays = [
        _binding_array(
            handles, context, binding, batch, int(ffi.cast("uintptr_t", bindings[n])), info[0] if info else None
        )
        for n, binding in enumerate(described)
    ]
    _check_overlap(described, arrays)
    inputs = [array for array, binding in zip(arrays, described, strict=True) if binding.is_input]
    return inputs, [array for array, binding in zip(arrays, described, strict=True) if not binding.is_input]


def _binding_array(
    handles: Handles, context: ExecutionContext, binding: Binding, batch: int, address_or_handle: int, info: Any
) -> Array:
    """Return the memory of a binding as an array.

    Args:
        handles: The handles of the library.
        context: The execution context.
        binding: The input or output.
        batch: The size of the batch.
        address_or_handle: The address of the memory, or the handle of a mapped tensor.
        info: The hgHostTensorDesc that states which of the two it is; None for an address.

    Raises:
        InterfaceError: The memory is too small, or the address or handle is invalid.
    """
    if not address_or_handle:
        raise InterfaceError(Result.ERROR_BINDING, f"binding {binding.name} is NULL")
    shape, dtype = binding_shape(binding, batch), numpy_type(binding.dtype)
    size = prod(shape) * dtype.itemsize
    location = info.location if info is not None else MemFlags.SYSTEM
    if location == MemFlags.HOST:
        memory = _tensor_bytes(handles.find(RuntimeTensor, address_or_handle), context, binding, batch)
    elif location == MemFlags.SYSTEM:
        if info is not None and info.size and info.size < size:
            raise InterfaceError(Result.ERROR_BINDING, f"binding {binding.name} has {info.size} bytes, expected {size}")
        memory = np.frombuffer(memoryview(ffi.buffer(ffi.cast("char*", address_or_handle), size)), np.uint8)
    else:
        raise InterfaceError(Result.ERROR_INVALID_ARGUMENT, f"binding {binding.name} is at location {location}")
    return memory[:size].view(dtype).reshape(shape)


def _tensor_bytes(tensor: RuntimeTensor, context: ExecutionContext, binding: Binding, batch: int) -> Array:
    """Return the bytes of a tensor used as a binding; raise InterfaceError if its device, type or shape differs."""
    if tensor.device is not context.device:
        raise InterfaceError(
            Result.ERROR_WRONG_DEVICE, f"binding {binding.name} is a tensor of device {tensor.device.number}"
        )
    dtype, _, shape = tensor.description
    fits = len(shape) == len(binding.shape) and all(
        length >= batch if expected_length is None else length == expected_length
        for length, expected_length in zip(shape, binding.shape, strict=True)
    )
    if dtype.name.lower() != binding.dtype or not fits:
        raise InterfaceError(
            Result.ERROR_BINDING,
            f"binding {binding.name} is a tensor of {dtype.name.lower()}{list(shape)}, expected {binding.dtype}"
            f"{list(binding_shape(binding, batch))}",
        )
    return tensor.bytes


def _check_overlap(bindings: Sequence[Binding], arrays: Sequence[Array]) -> None:
    """Raise HG_ERROR_BINDING if an output overlaps another binding."""
    places = [(array.ctypes.data, array.ctypes.data + array.nbytes) for array in arrays]
    for (binding, (start, end)), (second, (second_start, second_end)) in combinations(
        zip(bindings, places, strict=True), 2
    ):
        if start < second_end and second_start < end and not (binding.is_input and second.is_input):
            raise InterfaceError(
                Result.ERROR_BINDING, f"bindings {binding.name} and {second.name} overlap, one is an output"
            )
