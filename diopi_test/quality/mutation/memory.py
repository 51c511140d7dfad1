"""Memory mutants: they write at the wrong place or time, or leak memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import numpy as np

from diopi_test.quality.mutation.mutant import Effect, Mutant, changed_if
from lib_rt import Tensor

Tensors = Sequence[Tensor]
"""The input tensors or the result tensors of a call. A mutant corrupts their memory after the results are written."""


def memory_mutants() -> tuple[Mutant, ...]:
    """Return the memory mutants, which apply to every function."""
    return (
        Mutant(
            name="input overwritten", corrupt_memory=lambda inputs, results: _flip_bit(inputs, lambda t: t.data_ptr)
        ),
        Mutant(name="input changed by one ulp", corrupt_memory=lambda inputs, results: _change_by_one_ulp(inputs)),
        Mutant(
            name="byte after the end written", corrupt_memory=lambda inputs, results: _flip_bit(results, _storage_end)
        ),
        Mutant(
            name="byte before the start written",
            corrupt_memory=lambda inputs, results: _flip_bit(results, lambda t: t.storage_ptr - 1),
        ),
        Mutant(
            name="gap in the storage written",
            corrupt_memory=lambda inputs, results: _flip_bit(_tensors_with_offset(results), lambda t: t.storage_ptr),
        ),
        Mutant(
            name="strides of the result ignored", corrupt_memory=lambda inputs, results: _write_contiguously(results)
        ),
        Mutant(name="result written after return", writes_late=True),
        Mutant(name="memory leaked", corrupt_memory=_leak_memory()),
    )


def _storage_end(tensor: Tensor) -> int:
    """Return the address after the last byte of a tensor's storage."""
    return tensor.storage_ptr + tensor.storage_nbytes


def _tensors_with_offset(tensors: Tensors) -> Tensors:
    """Return the tensors whose first element is not at the beginning of the storage."""
    return [tensor for tensor in tensors if tensor.storage_offset > 0]


def _flip_bit(tensors: Tensors, address: Callable[[Tensor], int]) -> Effect:
    """Flip a bit of the byte at `address` of each nonempty tensor; return `changed` if there is such a tensor."""
    nonempty = [tensor for tensor in tensors if tensor.numel]
    for tensor in nonempty:
        byte = ctypes.c_ubyte.from_address(address(tensor))
        byte.value ^= 1
    return changed_if(bool(nonempty))


def _change_by_one_ulp(tensors: Tensors) -> Effect:
    """Change the last element of each nonempty tensor by one ulp; return `changed` if there is such a tensor."""
    nonempty = [tensor for tensor in tensors if tensor.numel]
    for tensor in nonempty:
        element = tensor.view()[tuple(length - 1 for length in tensor.shape)]
        element_bytes = np.frombuffer(element.tobytes(), np.uint8).copy()
        element_bytes[0] ^= 1  # little-endian: the least significant bit
        tensor.view()[tuple(length - 1 for length in tensor.shape)] = np.frombuffer(element_bytes, element.dtype)[0]
    return changed_if(bool(nonempty))


def _leak_memory() -> Callable[[Tensors, Tensors], Effect]:
    """Return a function for `corrupt_memory` that leaks device memory in every call.

    The function reports a change from the second call on. A correct vendor may also keep memory that it allocates in
    the first call, as a cache.
    """
    calls = 0

    def leak(inputs: Tensors, results: Tensors) -> Effect:
        """Allocate one byte and never free it, if the call has tensors; return `changed` from the second call on."""
        nonlocal calls
        calls += 1
        for tensor in (*inputs, *results)[:1]:
            tensor.device.malloc(1)
        return changed_if(calls > 1 and bool(inputs or results))

    return leak


def _write_contiguously(tensors: Tensors) -> Effect:
    """Write the elements of every result in row-major order without gaps, beginning at the first element.

    Returns:
        `changed` if the bytes of a storage changed, else `not_applicable`.
    """
    has_changed = False
    for tensor in tensors:
        original_bytes, elements = tensor.storage().tobytes(), np.ascontiguousarray(tensor.view()).tobytes()
        ctypes.memmove(tensor.data_ptr, elements, len(elements))
        has_changed |= tensor.storage().tobytes() != original_bytes
    return changed_if(has_changed)
