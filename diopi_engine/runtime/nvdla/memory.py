"""Memory of a device: two heaps with limits, and the memory allocated in them.

Environment variables set the size of the heaps of a device in MiB: `DIOPI_ENGINE_DRAM` (default 4096) and
`DIOPI_ENGINE_SRAM` (16).
"""

from __future__ import annotations

import mmap
from functools import cache
from typing import Any, final

import numpy as np

from diopi_engine.proto.nvdla import Error, Heap
from diopi_engine.runtime.devices import read_setting
from diopi_engine.runtime.errors import InterfaceError
from diopi_engine.sizes import Array

ALIGNMENT = 64
"""Allocations are rounded up to a multiple of this number of bytes."""

SIZES = {Heap.DRAM: 4096, Heap.SRAM: 16}
"""Default size of each heap in MiB."""


@final
class HeapSpace:
    """A heap of a device; only one thread at a time may call the methods.

    Args:
        name: the name of the heap, for messages.
        limit: the size of the heap in bytes.
    """

    def __init__(self, name: str, limit: int) -> None:
        self._name = name
        self.limit = limit
        self.used = 0

    def allocate(self, size: int) -> Array:
        """Return `size` new bytes, all zero; raise InterfaceError (`Error_InsufficientMemory`) if the heap is full."""
        if _round_up(size) > self.limit - self.used:
            reason = f"{size} bytes of {self._name}: {self.limit - self.used} of {self.limit} bytes are free"
            raise InterfaceError(Error.Error_InsufficientMemory, reason)
        try:
            mapping: Any = mmap.mmap(-1, _round_up(size), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        except OSError as error:
            raise InterfaceError(
                Error.Error_InsufficientMemory, f"{size} bytes of the system's memory: {error}"
            ) from None
        self.used += _round_up(size)
        return np.frombuffer(mapping, np.uint8)[:size]

    def free(self, memory: Array) -> None:
        """Make the bytes of an allocation available to others; the process keeps them while an array uses them."""
        self.used -= _round_up(len(memory))


def _round_up(size: int) -> int:
    """Return a size, rounded up to a multiple of the alignment."""
    return -(-size // ALIGNMENT) * ALIGNMENT


@cache
def find_heap(device: int, heap: Heap) -> HeapSpace:
    """Return a heap of a device; raise ValueError if an environment variable is invalid."""
    size = read_setting(f"DIOPI_ENGINE_{heap.name}", SIZES[heap], 1 << 20) << 20
    return HeapSpace(f"{heap.name} of device {device}", size)
