"""Memory of the device, kept for reuse: asking a vendor for memory costs more than most operators."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, final

from lib_rt import CallError, Device
from lib_rt.library import ffi, pointer

GRANULE = 512
"""Bytes: sizes are rounded up to a multiple of it, so that tensors of nearly one size can follow one another."""


class DeviceMemoryError(MemoryError):
    """The device has not enough memory, not even after everything cached was given back."""


@final
@dataclass(frozen=True, slots=True)
class Block:
    """A piece of device memory: its address, its size in bytes, and the number of the stream that works on it.

    Attributes:
        pointer: its address as a C pointer.
        buffer: it as an object of Python, which nobody reads or writes where the host can't address it.
    """

    address: int
    nbytes: int
    stream: int
    pointer: Any = field(compare=False, repr=False)
    buffer: Any = field(compare=False, repr=False)


@final
@dataclass(slots=True)
class Usage:
    """Bytes in use, and the most that ever were since the peak was reset."""

    current: int = 0
    peak: int = 0

    def change(self, nbytes: int) -> None:
        """Use so many bytes more."""
        self.current += nbytes
        self.peak = max(self.peak, self.current)

    def reset_peak(self) -> None:
        """Forget what was in use before."""
        self.peak = self.current


@final
class CachingAllocator:
    """Hands out blocks, and keeps those given back for the stream that used them.

    What is given back may still be worked on: whoever gets it next enqueues on the same stream, behind that work.

    Args:
        device: the memory's.
        wait: waits for all work on the device; called before memory goes back to it.
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
        """A block of at least `nbytes` for work on the stream of this number; DeviceMemoryError if there is none."""
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
        """Bring the numbers up to date."""
        with self._lock:
            self._collect()

    def empty_cache(self) -> None:
        """Give all memory that nobody uses back to the device, after waiting for it."""
        with self._lock:
            self._collect()
            self._release()

    def _collect(self) -> None:
        while self._returned:
            block = self._returned.popleft()
            self._free[block.stream, block.nbytes].append(block)
            self.allocated.current -= block.nbytes

    def _reserve(self, nbytes: int, stream: int) -> Block:
        """New memory."""
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
        return Block(address, nbytes, stream, memory, ffi.buffer(memory, nbytes))

    def _release(self) -> None:
        self._wait()
        for blocks in self._free.values():
            while blocks:
                block = blocks.pop()
                self._device.free(block.address)
                self.reserved.change(-block.nbytes)
