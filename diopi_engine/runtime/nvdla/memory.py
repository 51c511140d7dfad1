"""Memory of a device: two heaps, of which each has a limit, and what is allocated in them.

Environment variables say how many MiB a device has of each: `DIOPI_ENGINE_DRAM` (4096), `DIOPI_ENGINE_SRAM` (16).
"""

from __future__ import annotations

import mmap
from functools import cache
from typing import Any, final

import numpy as np

from diopi_engine.engine import Array
from diopi_engine.proto.nvdla import Error, Heap
from diopi_engine.runtime.devices import setting
from diopi_engine.runtime.errors import CallError

ALIGNMENT = 64
"""Bytes of which a heap gives a multiple."""

SIZES = {Heap.DRAM: 4096, Heap.SRAM: 16}
"""MiB of each heap if the environment says nothing."""


@final
class HeapSpace:
    """A heap of a device, in bytes. Its methods are called by one thread at a time."""

    def __init__(self, name: str, limit: int) -> None:
        self._name = name
        self.limit = limit
        self.used = 0

    def allocate(self, size: int) -> Array:
        """So many bytes, all zero. NvError_InsufficientMemory, with nothing taken."""
        if _whole(size) > self.limit - self.used:
            reason = f"{size} bytes of {self._name}, of whose {self.limit} {self.limit - self.used} are free"
            raise CallError(Error.Error_InsufficientMemory, reason)
        try:
            room: Any = mmap.mmap(-1, _whole(size), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        except OSError as error:
            raise CallError(Error.Error_InsufficientMemory, f"{size} bytes of the system's memory: {error}") from None
        self.used += _whole(size)
        return np.frombuffer(room, np.uint8)[:size]

    def free(self, memory: Array) -> None:
        """Count memory as free; it goes when nothing uses it any more."""
        self.used -= _whole(len(memory))


def _whole(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


@cache
def heap_of(device: int, heap: Heap) -> HeapSpace:
    """A heap of a device, by its number; ValueError if the environment says what can't be."""
    size = setting(f"DIOPI_ENGINE_{heap.name}", SIZES[heap], 1 << 20) << 20
    return HeapSpace(f"{heap.name} of device {device}", size)
