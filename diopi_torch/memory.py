"""A cache of device memory. It is necessary because a vendor's allocation takes longer than most operators."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, final

from lib_rt import CallError, Device
from lib_rt.library import ffi, pointer

GRANULE = 512
"""Sizes are rounded up to a multiple of this number of bytes, so that tensors of similar sizes can reuse a block."""


class DeviceMemoryError(MemoryError):
    """The device does not have enough memory, even after the cache was emptied."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryBlock:
    """A block of device memory.

    Attributes:
        address: the address as a number.
        nbytes: the size in bytes.
        stream: the number of the stream that uses the block.
        pointer: the address as a C pointer.
        buffer: the block as a Python buffer; must not be accessed if the host can't address the memory.
    """

    address: int
    nbytes: int
    stream: int
    pointer: Any = field(compare=False, repr=False)
    buffer: Any = field(compare=False, repr=False)


@final
@dataclass(slots=True)
class MemoryUsage:
    """The number of bytes in use, and the maximum of this number since the last reset."""

    current: int = 0
    peak: int = 0

    def change(self, nbytes: int) -> None:
        """Add `nbytes`, which may be negative, to the bytes in use."""
        self.current += nbytes
        self.peak = max(self.peak, self.current)

    def reset_peak(self) -> None:
        """Reset the peak to the current usage."""
        self.peak = self.current


@final
class CachingAllocator:
    """An allocator that caches each released block for reuse on the stream that used it.

    When a block is released, enqueued work may still use it. This is safe, because the next tensor in the block is used
    on the same stream, after that work.

    Args:
        device: the device that has the memory.
        wait: a function that waits for all work on the device; it is called before memory is returned to the device.
    """

    def __init__(self, device: Device, wait: Callable[[], None]) -> None:
        self._device = device
        self._wait = wait
        self._free: defaultdict[tuple[int, int], list[MemoryBlock]] = defaultdict(list)
        self._returned: deque[MemoryBlock] = deque()
        self._lock = threading.Lock()
        self.allocated = MemoryUsage()
        self.reserved = MemoryUsage()
        self.limit: int | None = None
        """The maximum number of bytes to reserve, or None for no limit."""
        self.give_back: Callable[[MemoryBlock], None] = self._returned.append
        """Returns a block to the allocator; any thread may call this function at any time, even during allocation."""

    def allocate(self, nbytes: int, stream: int) -> MemoryBlock:
        """Return a block of at least `nbytes` for the stream with this number; or raise DeviceMemoryError."""
        size = (nbytes + GRANULE - 1) // GRANULE * GRANULE or GRANULE
        with self._lock:
            if self._returned:
                block = self._returned.pop()
                if block.nbytes == size and block.stream == stream:  # programs often reallocate what they released last
                    return block
                self._returned.append(block)
                self._take_returned_blocks()
            cached = self._free[stream, size]
            block = cached.pop() if cached else self._reserve(size, stream)
            self.allocated.change(size)
            return block

    def collect(self) -> None:
        """Take over the blocks that other threads have returned, and update the usage counts."""
        with self._lock:
            self._take_returned_blocks()

    def empty_cache(self) -> None:
        """Wait for the device and return all unused memory to it."""
        with self._lock:
            self._take_returned_blocks()
            self._free_cached_blocks()

    def _take_returned_blocks(self) -> None:
        """Move the returned blocks to the cache; the caller must hold the lock."""
        while self._returned:
            block = self._returned.popleft()
            self._free[block.stream, block.nbytes].append(block)
            self.allocated.current -= block.nbytes

    def _reserve(self, nbytes: int, stream: int) -> MemoryBlock:
        """Return a new block that the device allocates; if that fails, empty the cache and try again."""
        if self.limit is not None and self.reserved.current + nbytes > self.limit:
            self._free_cached_blocks()
            if self.reserved.current + nbytes > self.limit:
                raise self._out_of_memory(nbytes, f"the program has set a limit of {self.limit:,} bytes")
        try:
            address = self._device.malloc(nbytes)
        except CallError:
            self._free_cached_blocks()
            try:
                address = self._device.malloc(nbytes)
            except CallError as error:
                raise self._out_of_memory(nbytes, error.text) from None
        self.reserved.change(nbytes)
        memory = pointer(address)
        return MemoryBlock(
            address=address, nbytes=nbytes, stream=stream, pointer=memory, buffer=ffi.buffer(memory, nbytes)
        )

    def _out_of_memory(self, nbytes: int, reason: str) -> DeviceMemoryError:
        """Return the error for a request that cannot be met."""
        return DeviceMemoryError(f"{nbytes:,} bytes were requested, {self.allocated.current:,} are in use: {reason}")

    def _free_cached_blocks(self) -> None:
        """Wait for the device and free all cached blocks."""
        self._wait()
        for blocks in self._free.values():
            while blocks:
                block = blocks.pop()
                self._device.free(block.address)
                self.reserved.change(-block.nbytes)
