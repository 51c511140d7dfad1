"""Strategies for cached memory: which released block serves an allocation, and when blocks are divided and joined.

The names are those of the public PyTorch extension DIPU. The environment variable DIPU_DEVICE_MEMCACHING_ALGORITHM
selects the strategy for the memory of the device:

- TORCH divides and joins blocks with the rules and constants of PyTorch's allocator for CUDA (the section "Memory
  management" of https://docs.pytorch.org/docs/stable/notes/cuda.html, and CUDACachingAllocator.cpp).
- BF serves each request with the smallest block that fits, and reserves larger and larger segments, as TensorFlow's
  allocator "best fit with coalescing" does.
- BS rounds sizes up to one of four sizes per power of two, as jemalloc does, and never divides a block.
- RAW caches nothing.

A *segment* is memory that the device has allocated. A *block* is a segment or a part of one. All blocks of a segment
belong to one stream.
"""

from __future__ import annotations

import re
import warnings
from abc import ABC, abstractmethod
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, final

from diopi_torch.settings import ALLOCATOR_OPTIONS, SettingError
from lib_rt.library import ffi, pointer

GRANULE = 512
"""Sizes are rounded up to a multiple of this number of bytes, so that tensors of similar sizes can reuse a block."""

MIB = 2**20
"""One mebibyte, in bytes."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryBlock:
    """A block of memory.

    Attributes:
        address: the address as a number.
        nbytes: the size in bytes.
        stream: the number of the stream that uses the block.
        segment: the address of the segment that contains the block.
        pointer: the address as a C pointer.
        buffer: the block as a Python buffer; must not be accessed if the host can't address the memory.
    """

    address: int
    nbytes: int
    stream: int
    segment: int
    pointer: Any = field(compare=False, repr=False)
    buffer: Any = field(compare=False, repr=False)


def make_block(address: int, nbytes: int, stream: int, segment: int) -> MemoryBlock:
    """Return the block of `nbytes` bytes at an address in a segment; `stream` is the number of the stream."""
    start = pointer(address)
    buffer = ffi.buffer(start, nbytes)
    return MemoryBlock(address=address, nbytes=nbytes, stream=stream, segment=segment, pointer=start, buffer=buffer)


def round_up(nbytes: int, multiple: int) -> int:
    """Return the smallest positive multiple of `multiple` that is at least `nbytes`."""
    return max(-(-nbytes // multiple), 1) * multiple


class Pool(ABC):
    """The unused blocks of an allocator, and the strategy that selects one; not safe for several threads."""

    caches = True
    """Whether unused blocks may remain in the pool after an allocation."""

    @abstractmethod
    def block_size(self, nbytes: int) -> int:
        """Return the size of the block that serves a request for `nbytes`, in bytes."""

    @abstractmethod
    def put(self, block: MemoryBlock) -> None:
        """Add an unused block."""

    @abstractmethod
    def take(self, size: int, stream: int) -> MemoryBlock | None:
        """Remove an unused block of at least `size` bytes of a stream and return it, or None if there is none."""

    @abstractmethod
    def unused_segments(self) -> Iterator[MemoryBlock]:
        """Remove each segment without used blocks, and yield it as a block."""

    def segment_size(self, size: int) -> int:
        """Return how many bytes to reserve if no unused block of at least `size` bytes exists."""
        return size

    def take_from_segment(self, segment: MemoryBlock, size: int) -> MemoryBlock:
        """Return a block of at least `size` bytes of a new segment, and add the rest of the segment."""
        return segment


class SizeClassPool(Pool):
    """A pool that never divides blocks: a request is served by a block of exactly its rounded size."""

    def __init__(self) -> None:
        self._unused: defaultdict[tuple[int, int], list[MemoryBlock]] = defaultdict(list)

    def block_size(self, nbytes: int) -> int:
        """Return the next size class: a multiple of a quarter of the largest power of two below `nbytes`."""
        step = max(GRANULE, 1 << max((max(nbytes, 1) - 1).bit_length() - 3, 0))
        return round_up(nbytes, step)

    def put(self, block: MemoryBlock) -> None:
        """Add an unused block."""
        self._unused[block.stream, block.nbytes].append(block)

    def take(self, size: int, stream: int) -> MemoryBlock | None:
        """Remove the block of this size that was added last and return it, or None if there is none."""
        unused = self._unused[stream, size]
        return unused.pop() if unused else None

    def unused_segments(self) -> Iterator[MemoryBlock]:
        """Remove and yield all blocks, which are segments."""
        for unused in self._unused.values():
            while unused:
                yield unused.pop()


@final
class RawPool(SizeClassPool):
    """A pool of blocks that wait until the device frees them."""

    caches = False

    def block_size(self, nbytes: int) -> int:
        """Return the size of the block, which is rounded only as much as the alignment of tensors requires."""
        return round_up(nbytes, GRANULE)

    def take(self, size: int, stream: int) -> None:
        """Return None: no block is reused."""


class DividingPool(Pool):
    """A pool that serves a request with the smallest unused block that fits, and divides it if the rest is useful.

    Programs repeat the sizes that they request. Therefore a block of exactly the requested size comes first, and blocks
    are divided, or adjacent ones joined, only if there is none. Each stream, and each class of segments in
    `segment_class`, has its own blocks.
    """

    def __init__(self) -> None:
        self._recent: defaultdict[tuple[int, int], list[MemoryBlock]] = defaultdict(list)
        self._unused: defaultdict[tuple[int, int], list[tuple[int, int, MemoryBlock]]] = defaultdict(list)
        self._segments: dict[int, int] = {}
        self._can_join = False

    def block_size(self, nbytes: int) -> int:
        """Return `nbytes`, rounded up to a multiple of `GRANULE`."""
        return round_up(nbytes, GRANULE)

    def segment_class(self, size: int) -> int:
        """Return the number of the class of segments that serves requests of `size` bytes."""
        return 0

    def may_take(self, size: int, nbytes: int) -> bool:
        """Return whether a block of `nbytes` may serve a request of the smaller `size`."""
        return True

    def divides(self, size: int, remainder: int) -> bool:
        """Return whether a block is divided that has `remainder` more bytes than the requested `size`."""
        return remainder >= GRANULE

    def put(self, block: MemoryBlock) -> None:
        """Add an unused block."""
        self._recent[block.stream, block.nbytes].append(block)

    def take(self, size: int, stream: int) -> MemoryBlock | None:
        """Remove the smallest block that may serve the request, divide it, and return its first part, or None."""
        recent = self._recent.get((stream, size))
        if recent:
            return recent.pop()
        self._sort_recent_blocks()
        key = stream, self.segment_class(size)
        block = self._take_smallest(key, size)
        if block is None and self._can_join:
            self._join_blocks()
            block = self._take_smallest(key, size)
        return block if block is None else self._divide(block, size)

    def take_from_segment(self, segment: MemoryBlock, size: int) -> MemoryBlock:
        """Return a block of at least `size` bytes of a new segment, and add the rest of the segment."""
        self._segments[segment.address] = segment.nbytes
        return self._divide(segment, size)

    def unused_segments(self) -> Iterator[MemoryBlock]:
        """Remove each segment without used blocks, and yield it as a block."""
        self._sort_recent_blocks()
        self._join_blocks()
        for unused in self._unused.values():
            complete = [entry for entry in unused if entry[0] == self._segments[entry[2].segment]]
            for entry in complete:
                unused.remove(entry)
                del self._segments[entry[2].segment]
                yield entry[2]

    def _class_of(self, block: MemoryBlock) -> int:
        """Return the class of the segment that contains a block."""
        return 0

    def _sort_recent_blocks(self) -> None:
        """Sort the blocks that were added since the last call into the lists of unused blocks."""
        for (stream, _), blocks in self._recent.items():
            for block in blocks:
                insort(self._unused[stream, self._class_of(block)], (block.nbytes, block.address, block))
                self._can_join = True
        self._recent.clear()

    def _take_smallest(self, key: tuple[int, int], size: int) -> MemoryBlock | None:
        """Remove and return the smallest of these blocks with at least `size` bytes; None if it may not be taken."""
        unused = self._unused[key]
        place = bisect_left(unused, (size,))
        if place == len(unused) or not (unused[place][0] == size or self.may_take(size, unused[place][0])):
            return None
        return unused.pop(place)[2]

    def _divide(self, block: MemoryBlock, size: int) -> MemoryBlock:
        """Return the first `size` bytes of a block and add the rest, or return the whole block."""
        remainder = block.nbytes - size
        if not remainder or not self.divides(size, remainder):
            return block
        insort(
            self._unused[block.stream, self._class_of(block)],
            (remainder, block.address + size, make_block(block.address + size, remainder, block.stream, block.segment)),
        )
        return make_block(block.address, size, block.stream, block.segment)

    def _join_blocks(self) -> None:
        """Replace adjacent unused blocks of a segment by one block."""
        self._can_join = False
        for unused in self._unused.values():
            joined: list[MemoryBlock] = []
            for block in sorted((entry[2] for entry in unused), key=lambda block: block.address):
                last = joined[-1] if joined else None
                if last and last.segment == block.segment and last.address + last.nbytes == block.address:
                    joined[-1] = make_block(last.address, last.nbytes + block.nbytes, block.stream, block.segment)
                else:
                    joined.append(block)
            unused[:] = sorted((block.nbytes, block.address, block) for block in joined)


@final
class BestFitPool(DividingPool):
    """A pool whose segments double in size, so that a program needs few of them."""

    MAX_SEGMENT = 256 * MIB
    """The size from which segments no longer grow, in bytes."""

    def __init__(self) -> None:
        super().__init__()
        self._next_segment = 2 * MIB

    def segment_size(self, size: int) -> int:
        """Return twice the size of the last segment, or `size` if that is larger."""
        planned = self._next_segment
        self._next_segment = min(2 * planned, self.MAX_SEGMENT)
        return max(planned, round_up(size, 2 * MIB))


@final
@dataclass(frozen=True, kw_only=True)
class TorchOptions:
    """The options of the strategy TORCH, with the meaning that PyTorch documents for PYTORCH_ALLOC_CONF.

    Attributes:
        max_split_size_mb: larger blocks are not divided; in MiB.
        garbage_collection_threshold: the part of the memory limit of the process above which unused memory is freed.
        roundup_power2_divisions: sizes are rounded up to one of so many sizes per power of two; 0 rounds to `GRANULE`.
        expandable_segments: accepted with a warning, because the runtime of the standard can't extend a segment.
    """

    max_split_size_mb: float = float("inf")
    garbage_collection_threshold: float = 0.0
    roundup_power2_divisions: int = 0
    expandable_segments: bool = False


def parse_torch_options(text: str) -> TorchOptions:
    """Return the options in a list such as `max_split_size_mb:128,garbage_collection_threshold:0.8`.

    Args:
        text: pairs of names and values, separated by commas.

    Returns:
        The options; those that the list omits have their defaults.

    Raises:
        SettingError: A name is unknown, or a value is invalid.
    """
    options = TorchOptions()
    for entry in filter(None, map(str.strip, text.split(","))):
        name, _, value = (part.strip() for part in entry.partition(":"))
        if name not in _OPTION_VALUES:
            raise SettingError(f"{ALLOCATOR_OPTIONS}: {name!r} is not one of {', '.join(_OPTION_VALUES)}")
        pattern, convert = _OPTION_VALUES[name]
        if not re.fullmatch(pattern, value):
            raise SettingError(f"{ALLOCATOR_OPTIONS}: {value!r} is not a value of {name}")
        options = replace(options, **{name: convert(value)})
    if options.roundup_power2_divisions & (options.roundup_power2_divisions - 1):
        raise SettingError(f"{ALLOCATOR_OPTIONS}: roundup_power2_divisions must be a power of two")
    if options.expandable_segments:
        warnings.warn("expandable_segments has no effect: the runtime can't extend memory", stacklevel=2)
    return options


_OPTION_VALUES: dict[str, tuple[str, Callable[[str], Any]]] = {
    "max_split_size_mb": (r"[1-9]\d*", float),
    "garbage_collection_threshold": (r"0?\.\d*[1-9]\d*", float),
    "roundup_power2_divisions": (r"\d+", int),
    "expandable_segments": (r"True|False", lambda text: text == "True"),
}
"""The valid texts of each option as a regular expression, and the function that converts a text."""


@final
class TorchPool(DividingPool):
    """A pool with the rules of PyTorch's allocator for CUDA.

    Requests of at most 1 MiB share segments of 2 MiB. Larger requests share segments of 20 MiB, and requests of at
    least 10 MiB get segments of their own.

    Args:
        options: the options.
    """

    MAX_SMALL = 1 * MIB
    """The largest request that small segments serve, in bytes."""

    SMALL_SEGMENT, LARGE_SEGMENT = 2 * MIB, 20 * MIB
    """The sizes of shared segments, in bytes."""

    OWN_SEGMENT = 10 * MIB
    """The smallest request that gets a segment of its own, in bytes."""

    def __init__(self, options: TorchOptions) -> None:
        super().__init__()
        self._options = options
        self._max_split = options.max_split_size_mb * MIB

    def block_size(self, nbytes: int) -> int:
        """Return `nbytes`, rounded up to a multiple of `GRANULE` or to a division of a power of two."""
        divisions = self._options.roundup_power2_divisions
        if divisions <= 1 or nbytes <= GRANULE * divisions:
            return round_up(nbytes, GRANULE)
        return round_up(nbytes, (1 << (nbytes.bit_length() - 1)) // divisions)

    def segment_class(self, size: int) -> int:
        """Return 0 for requests that small segments serve, and 1 for larger ones."""
        return int(size > self.MAX_SMALL)

    def segment_size(self, size: int) -> int:
        """Return the size of a new segment for a request of `size` bytes."""
        if size <= self.MAX_SMALL:
            return self.SMALL_SEGMENT
        return self.LARGE_SEGMENT if size < self.OWN_SEGMENT else round_up(size, 2 * MIB)

    def may_take(self, size: int, nbytes: int) -> bool:
        """Return whether a block of `nbytes` may serve a smaller request: blocks that are never divided are kept."""
        if size < self._max_split:
            return nbytes < self._max_split
        return nbytes < size + self.LARGE_SEGMENT

    def divides(self, size: int, remainder: int) -> bool:
        """Return whether a block is divided that has `remainder` more bytes than the requested `size`."""
        return remainder >= GRANULE if size <= self.MAX_SMALL else size < self._max_split and remainder > self.MAX_SMALL

    def _class_of(self, block: MemoryBlock) -> int:
        """Return the class of the segment that contains a block."""
        return int(self._segments[block.segment] > self.SMALL_SEGMENT)


def make_pool(strategy: str, options: TorchOptions) -> Pool:
    """Return an empty pool of a strategy, which is one of `STRATEGIES`; only TORCH uses the options."""
    return TorchPool(options) if strategy == "TORCH" else STRATEGIES[strategy]()


STRATEGIES: dict[str, Callable[[], Pool]] = {
    "TORCH": lambda: TorchPool(TorchOptions()),
    "BF": BestFitPool,
    "BS": SizeClassPool,
    "RAW": RawPool,
}
"""The strategies with default options."""
