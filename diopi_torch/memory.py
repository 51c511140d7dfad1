"""Allocators that cache memory. They are necessary because a vendor's allocation takes longer than most operators."""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, final

from diopi_torch.pools import STRATEGIES, MemoryBlock, Pool, TorchOptions, make_block, make_pool, parse_torch_options
from diopi_torch.settings import ALLOCATOR_OPTIONS, MEMORY_CHECK, SettingError, is_switched_on
from lib_rt import CallError


class DeviceMemoryError(MemoryError):
    """The device does not have enough memory, even after the cache was emptied."""


class FreedTwiceError(RuntimeError):
    """A block that belongs to no tensor was given back to the allocator."""


class MemorySource(Protocol):
    """The memory that an allocator caches: a device, or the host."""

    def malloc(self, nbytes: int) -> int:
        """Return the address of new memory; raise CallError or MemoryError if there is not enough."""

    def free(self, address: int) -> None:
        """Free the memory at an address that `malloc` has returned."""


class EventQuery(Protocol):
    """An event in the work of a stream."""

    def query(self) -> bool:
        """Return whether the work before the event is complete."""


class UsingStream(Protocol):
    """A stream that uses memory which was allocated for another stream, or for the host."""

    def record_event(self) -> EventQuery:
        """Return a new event after the current work of the stream."""


@final
@dataclass(slots=True)
class MemoryUsage:
    """An amount of memory.

    Attributes:
        current: the number of bytes in use.
        peak: the maximum of this number since the last reset.
    """

    current: int = 0
    peak: int = 0

    def change(self, nbytes: int) -> None:
        """Add `nbytes`, which may be negative, to the bytes in use."""
        self.current += nbytes
        self.peak = max(self.peak, self.current)

    def reset_peak(self) -> None:
        """Reset the peak to the current usage."""
        self.peak = self.current


class CachingAllocator:
    """An allocator that caches each released block for reuse on the stream that used it.

    When a block is released, enqueued work may still use it. This is safe, because the next tensor in the block is used
    on the same stream, after that work.

    Args:
        source: the device that has the memory, or the host.
        wait: a function that waits for all work on the device; it is called before memory is returned to the source.
        pool: the strategy by which blocks are cached; TORCH if it is None.
        collection_threshold: the part of `limit` above which unused memory is freed before more is reserved; 0 never.
    """

    def __init__(
        self,
        source: MemorySource,
        wait: Callable[[], None],
        pool: Pool | None = None,
        collection_threshold: float = 0.0,
    ) -> None:
        self._source = source
        self._wait = wait
        self._pool = pool or make_pool("TORCH", TorchOptions())
        self._collection_threshold = collection_threshold
        self._returned: deque[MemoryBlock] = deque()
        self._uses: dict[int, list[UsingStream]] = {}
        self._awaited: list[tuple[MemoryBlock, list[EventQuery]]] = []
        self._lock = threading.Lock()
        self.allocated = MemoryUsage()
        self.reserved = MemoryUsage()
        self.limit: int | None = None
        """The maximum number of bytes to reserve, or None for no limit."""
        self.give_back: Callable[[MemoryBlock], None] = self._returned.append
        """Returns a block to the allocator; any thread may call this function at any time, even during allocation."""

    def allocate(self, nbytes: int, stream: int) -> MemoryBlock:
        """Return a block of at least `nbytes` for the stream with this number; or raise DeviceMemoryError."""
        size = self._pool.block_size(nbytes)
        with self._lock:
            if self._returned and self._pool.caches:
                block = self._returned.pop()
                fits = block.nbytes == size and block.stream == stream
                if fits and block.address not in self._uses:  # programs often reallocate what they released last
                    return block
                self._returned.append(block)
            if self._returned or self._awaited:
                self._take_returned_blocks()
            block = self._pool.take(size, stream) or self._reserve(size, stream)
            self.allocated.change(block.nbytes)
            return block

    def record_use(self, address: int, stream: UsingStream) -> None:
        """Delay the reuse of a block until a stream has finished the work that it has when the block is released.

        Args:
            address: the address of the block, which must be in use.
            stream: the stream, which is not the one for which the block was allocated.
        """
        with self._lock:
            streams = self._uses.setdefault(address, [])
            if stream not in streams:
                streams.append(stream)

    def collect(self) -> None:
        """Take over the blocks that other threads have returned, and update the usage counts."""
        with self._lock:
            self._take_returned_blocks()

    def empty_cache(self) -> None:
        """Wait for the device and return all unused memory to it."""
        with self._lock:
            self._take_returned_blocks()
            self._free_unused_segments()

    def close(self) -> None:
        """Free all unused memory, because the device is about to be closed."""
        self.empty_cache()

    def _take_returned_blocks(self) -> None:
        """Move the returned blocks to the pool; the caller must hold the lock."""
        while self._returned:
            block = self._returned.popleft()
            streams = self._uses.pop(block.address, None)
            if streams:
                self._awaited.append((block, [stream.record_event() for stream in streams]))
            else:
                self._take_back(block)
        if self._awaited:
            self._take_awaited_blocks()
        if not self._pool.caches:
            self._free_unused_segments()

    def _take_awaited_blocks(self) -> None:
        """Move the returned blocks that no stream uses any more to the pool; the caller must hold the lock."""
        awaited, self._awaited = self._awaited, []
        for block, events in awaited:
            if all(event.query() for event in events):
                self._take_back(block)
            else:
                self._awaited.append((block, events))

    def _take_back(self, block: MemoryBlock) -> None:
        """Move a block to the pool; the caller must hold the lock."""
        self._pool.put(block)
        self.allocated.current -= block.nbytes

    def _reserve(self, size: int, stream: int) -> MemoryBlock:
        """Return a block of at least `size` bytes in a new segment; empty the cache if there is not enough memory."""
        requested = self._pool.segment_size(size)
        if self.limit is not None:
            if self.reserved.current + requested > (self._collection_threshold or 1) * self.limit:
                self._free_unused_segments()
            if self.reserved.current + requested > self.limit:
                requested = size
            if self.reserved.current + requested > self.limit:
                raise self._out_of_memory(size, f"the program has set a limit of {self.limit:,} bytes")
        try:
            address = self._source.malloc(requested)
        except (CallError, MemoryError):
            self._free_unused_segments()
            requested = size
            try:
                address = self._source.malloc(requested)
            except (CallError, MemoryError) as error:
                raise self._out_of_memory(size, str(error)) from None
        self.reserved.change(requested)
        return self._pool.take_from_segment(make_block(address, requested, stream, address), size)

    def _out_of_memory(self, nbytes: int, reason: str) -> DeviceMemoryError:
        """Return the error for a request of `nbytes` bytes that cannot be met, with the reason."""
        return DeviceMemoryError(f"{nbytes:,} bytes were requested, {self.allocated.current:,} are in use: {reason}")

    def _free_unused_segments(self) -> None:
        """Wait for the device and free the segments in which no block is in use."""
        self._wait()
        self._take_awaited_blocks()
        for segment in self._pool.unused_segments():
            self._source.free(segment.address)
            self.reserved.change(-segment.nbytes)


@final
class CheckingAllocator(CachingAllocator):
    """An allocator that knows which blocks are in use, for programs whose memory is not returned as expected.

    The arguments are those of `CachingAllocator`.
    """

    def __init__(
        self,
        source: MemorySource,
        wait: Callable[[], None],
        pool: Pool | None = None,
        collection_threshold: float = 0.0,
    ) -> None:
        super().__init__(source, wait, pool, collection_threshold)
        self._used: dict[int, MemoryBlock] = {}
        self.give_back = self._check_and_give_back

    def allocate(self, nbytes: int, stream: int) -> MemoryBlock:
        """Return a block as `CachingAllocator.allocate` does, and record it."""
        block = super().allocate(nbytes, stream)
        self._used[block.address] = block
        return block

    def _check_and_give_back(self, block: MemoryBlock) -> None:
        """Give a block back to the allocator; raise FreedTwiceError if it is not in use."""
        if self._used.pop(block.address, None) is None:
            raise FreedTwiceError(f"the block of {block.nbytes:,} bytes at {block.address:#x} was freed twice")
        self._returned.append(block)

    def close(self) -> None:
        """Print the blocks that are still in use to stderr, and return all unused memory."""
        blocks = sorted(self._used.values(), key=lambda block: -block.nbytes)
        if blocks:
            total = sum(block.nbytes for block in blocks)
            count = f"{len(blocks)} block{'s are' if len(blocks) > 1 else ' is'}"
            print(f"{MEMORY_CHECK}: {count} still in use, {total:,} bytes", file=sys.stderr)
        for block in blocks[:MAX_REPORTED]:
            print(f"  {block.nbytes:,} bytes at {block.address:#x}, stream {block.stream}", file=sys.stderr)
        super().close()


MAX_REPORTED = 20
"""How many blocks `CheckingAllocator.close` prints, the largest first."""


def make_allocator(variable: str, source: MemorySource, wait: Callable[[], None]) -> CachingAllocator:
    """Return an allocator for memory, as the environment configures it.

    Args:
        variable: the name of the environment variable that names the strategy.
        source: the device that has the memory, or the host.
        wait: a function that waits for all work on the device.

    Returns:
        The allocator.

    Raises:
        SettingError: A variable has an invalid value.
    """
    strategy = os.environ.get(variable, "").strip() or "TORCH"
    if strategy not in STRATEGIES:
        raise SettingError(f"{variable}: expected {', '.join(STRATEGIES)}, found {strategy!r}")
    options = parse_torch_options(os.environ.get(ALLOCATOR_OPTIONS, ""))
    kind = CheckingAllocator if is_switched_on(MEMORY_CHECK) else CachingAllocator
    return kind(source, wait, make_pool(strategy, options), options.garbage_collection_threshold)
