"""Memory mutants: they write at the wrong place or time, or leak memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import numpy as np

from diopi_test.quality.mutation.mutant import Effect, Mutant, changed_if
from lib_rt import Tensor

Tensors = Sequence[Tensor]


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
    """Flip a bit of the byte at `address` of every tensor that has elements."""
    chosen = [tensor for tensor in tensors if tensor.numel]
    for tensor in chosen:
        byte = ctypes.c_ubyte.from_address(address(tensor))
        byte.value ^= 1
    return changed_if(bool(chosen))


def _change_by_one_ulp(tensors: Tensors) -> Effect:
    """Replace the last element of each input by a neighboring number of its type."""
    chosen = [tensor for tensor in tensors if tensor.numel]
    for tensor in chosen:
        last = tensor.view()[tuple(length - 1 for length in tensor.shape)]
        lowest = np.frombuffer(last.tobytes(), np.uint8).copy()
        lowest[0] ^= 1  # little-endian: the least significant bit
        tensor.view()[tuple(length - 1 for length in tensor.shape)] = np.frombuffer(lowest, last.dtype)[0]
    return changed_if(bool(chosen))


def _leak_memory() -> Callable[[Tensors, Tensors], Effect]:
    """Return a corruption that allocates device memory in every call; the first allocation could be a cache."""
    calls = 0

    def leak(inputs: Tensors, results: Tensors) -> Effect:
        """Allocate one byte that is never freed, if the call has tensors."""
        nonlocal calls
        calls += 1
        for tensor in (*inputs, *results)[:1]:
            tensor.device.malloc(1)
        return changed_if(calls > 1 and bool(inputs or results))

    return leak


def _write_contiguously(tensors: Tensors) -> Effect:
    """Write the elements of every result in row-major order without gaps, beginning at the first element."""
    moved = False
    for tensor in tensors:
        before, elements = tensor.storage().tobytes(), np.ascontiguousarray(tensor.view()).tobytes()
        ctypes.memmove(tensor.data_ptr, elements, len(elements))
        moved |= tensor.storage().tobytes() != before
    return changed_if(moved)
