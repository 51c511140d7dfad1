"""A cache of device memory: allocations from a vendor take longer than most operators."""

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
class Block:
    """A block of device memory: its address, its size in bytes, and the number of the stream that uses it.

    Attributes:
        pointer: its address as a C pointer.
        buffer: the block as a Python object, which nobody accesses if the host can't address the memory.
    """

    address: int
    nbytes: int
    stream: int
    pointer: Any = field(compare=False, repr=False)
    buffer: Any = field(compare=False, repr=False)


@final
@dataclass(slots=True)
class Usage:
    """The number of bytes in use, and its maximum since the peak was reset."""

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
    """An allocator that caches released blocks for the stream that used them.

    Enqueued work may still use released blocks. The next owner enqueues its work on the same stream, after it.

    Args:
        device: the device that has the memory.
        wait: a function that waits for all work on the device; it is called before memory is returned to the device.
    """

    def __init__(self, device: Device, wait: Callable[[], None]) -> None:
        self._device = device
        self._wait = wait
        self._free: defaultdict[tuple[int, int], list[Block]] = defaultdict(list)
        self._returned: deque[Block] = deque()
        self._lock = threading.Lock()
        self.allocated = Usage()
        self.reserved = Usage()
        self.give_back: Callable[[Block], None] = self._returned.append
        """Gives a block back. Any thread may call it at any time, in the midst of an allocation too."""

    def allocate(self, nbytes: int, stream: int) -> Block:
        """Return a block of at least `nbytes` for the stream with this number; or raise DeviceMemoryError."""
        size = (nbytes + GRANULE - 1) // GRANULE * GRANULE or GRANULE
        with self._lock:
            if self._returned:
                block = self._returned.pop()
                if block.nbytes == size and block.stream == stream:  # programs often ask for what they dropped last
                    return block
                self._returned.append(block)
                self._collect()
            cached = self._free[stream, size]
            block = cached.pop() if cached else self._reserve(size, stream)
            self.allocated.change(size)
            return block

    def collect(self) -> None:
        """Update the usage counts."""
        with self._lock:
            self._collect()

    def empty_cache(self) -> None:
        """Wait for the device and return all unused memory to it."""
        with self._lock:
            self._collect()
            self._release()

    def _collect(self) -> None:
        while self._returned:
            block = self._returned.popleft()
            self._free[block.stream, block.nbytes].append(block)
            self.allocated.current -= block.nbytes

    def _reserve(self, nbytes: int, stream: int) -> Block:
        """Return a new block from the device."""
        try:
            address = self._device.malloc(nbytes)
        except CallError:
            self._release()
            try:
                address = self._device.malloc(nbytes)
            except CallError as error:
                raise DeviceMemoryError(
                    f"{nbytes:,} bytes were asked for, {self.allocated.current:,} are in use: {error.text}"
                ) from None
        self.reserved.change(nbytes)
        memory = pointer(address)
        return Block(address=address, nbytes=nbytes, stream=stream, pointer=memory, buffer=ffi.buffer(memory, nbytes))

    def _release(self) -> None:
        self._wait()
        for blocks in self._free.values():
            while blocks:
                block = blocks.pop()
                self._device.free(block.address)
                self.reserved.change(-block.nbytes)
