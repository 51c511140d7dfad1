"""Faults of memory: an input written to, a byte written beside a result."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

from diopi_test.audit.fault import Fault
from lib_rt import Tensor

Tensors = Sequence[Tensor]


def memory_faults() -> tuple[Fault, ...]:
    """The faults of memory, which every function can have."""
    return (
        Fault("input written", after=lambda inputs, results: _poke(inputs, lambda t: t.data_ptr)),
        Fault("byte past the end written", after=lambda inputs, results: _poke(results, _end)),
        Fault(
            "byte before the start written", after=lambda inputs, results: _poke(results, lambda t: t.storage_ptr - 1)
        ),
        Fault(
            "gap in the storage written",
            after=lambda inputs, results: _poke(_with_gaps(results), lambda t: t.storage_ptr),
        ),
    )


def _end(tensor: Tensor) -> int:
    return tensor.storage_ptr + tensor.storage_nbytes


def _with_gaps(tensors: Tensors) -> Tensors:
    return [tensor for tensor in tensors if tensor.storage_offset > 0]


def _poke(tensors: Tensors, address: Callable[[Tensor], int]) -> bool:
    """Flip a bit of the byte at `address` of every tensor that has elements; whether there was one."""
    chosen = [tensor for tensor in tensors if tensor.numel]
    for tensor in chosen:
        byte = ctypes.c_ubyte.from_address(address(tensor))
        byte.value ^= 1
    return bool(chosen)
