"""Strategies for cached memory: sizes, divided and joined blocks, and fragmentation."""

import itertools
import random

import pytest

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

from diopi_proto.types import Error  # noqa: E402  # behind the check, too
from diopi_torch.memory import CachingAllocator  # noqa: E402  # behind the check for PyTorch
from diopi_torch.pools import (  # noqa: E402  # behind the check, too
    MIB,
    STRATEGIES,
    MemoryBlock,
    SizeClassPool,
    TorchOptions,
    TorchPool,
    parse_torch_options,
)
from lib_rt import CallError  # noqa: E402  # behind the check, too


class CountedMemory:
    """Memory that nobody accesses: addresses are counted, and each segment starts at a multiple of 1 GiB."""

    def __init__(self) -> None:
        self.segments: dict[int, int] = {}
        self._addresses = itertools.count(2**30, 2**30)

    def malloc(self, nbytes: int) -> int:
        """Return the next address."""
        address = next(self._addresses)
        self.segments[address] = nbytes
        return address

    def free(self, address: int) -> None:
        """Forget a segment, which must exist."""
        del self.segments[address]


def torch_allocator(memory: CountedMemory, **options: float) -> CachingAllocator:
    """Return an allocator with the strategy TORCH and these options."""
    return CachingAllocator(memory, lambda: None, TorchPool(TorchOptions(**options)))  # type: ignore[arg-type]  # by name


def test_small_requests_share_a_segment_of_2_mib_and_larger_ones_one_of_20_mib() -> None:
    memory = CountedMemory()
    allocator = torch_allocator(memory)
    small = [allocator.allocate(size, stream=0) for size in (1, 600, MIB // 2)]
    large = [allocator.allocate(size, stream=0) for size in (MIB + 1, 9 * MIB)]
    separate = allocator.allocate(10 * MIB + 1, stream=0)
    assert list(memory.segments.values()) == [2 * MIB, 20 * MIB, 12 * MIB]
    assert [block.address - small[0].segment for block in small] == [0, 512, 1536]
    assert [block.address - large[0].segment for block in large] == [0, MIB + 512]
    assert separate.nbytes == 10 * MIB + 512


def test_adjacent_unused_blocks_are_joined_before_memory_grows() -> None:
    memory = CountedMemory()
    allocator = torch_allocator(memory)
    blocks = [allocator.allocate(2**19, stream=0) for _ in range(4)]
    for block in blocks[1:3]:
        allocator.give_back(block)
    assert allocator.allocate(2**20, stream=0).address == blocks[1].address
    assert len(memory.segments) == 1


def test_streams_do_not_share_segments() -> None:
    memory = CountedMemory()
    allocator = torch_allocator(memory)
    segments = {allocator.allocate(512, stream=stream).segment for stream in (0, 1, 0, 1)}
    assert len(segments) == len(memory.segments) == 2


def test_blocks_above_the_limit_for_dividing_stay_whole() -> None:
    memory = CountedMemory()
    allocator = torch_allocator(memory, max_split_size_mb=16.0)
    first = allocator.allocate(30 * MIB, stream=0)
    allocator.give_back(first)
    assert allocator.allocate(4 * MIB, stream=0).segment != first.segment
    assert allocator.allocate(24 * MIB, stream=0) == first


@pytest.mark.parametrize(
    ("divisions", "nbytes", "size"),
    [(0, 1300, 1536), (4, 1300, 1536), (4, 5000, 5120), (4, 4096, 4096), (2, 6145, 8192)],
)
def test_sizes_are_rounded_to_divisions_of_powers_of_two(divisions: int, nbytes: int, size: int) -> None:
    assert TorchPool(TorchOptions(roundup_power2_divisions=divisions)).block_size(nbytes) == size


def test_size_classes_waste_at_most_a_quarter() -> None:
    pool = SizeClassPool()
    for nbytes in (*range(1, 9000, 7), *(2**power + offset for power in range(13, 40) for offset in (-1, 0, 1))):
        size = pool.block_size(nbytes)
        assert nbytes <= size <= max(1.25 * nbytes, nbytes + 511) and pool.block_size(size) == size


@pytest.mark.parametrize("name", STRATEGIES)
def test_used_blocks_never_overlap_and_all_memory_returns(name: str) -> None:
    memory = CountedMemory()
    allocator = CachingAllocator(memory, lambda: None, STRATEGIES[name]())
    generator = random.Random(name)
    used: list[MemoryBlock] = []
    for _ in range(3000):
        if used and generator.random() < 0.5:
            allocator.give_back(used.pop(generator.randrange(len(used))))
        else:
            used.append(allocator.allocate(int(2 ** generator.uniform(0, 25)), stream=generator.randrange(2)))
    by_address = sorted((block.address, block.nbytes) for block in used)
    assert all(first + size <= second for (first, size), (second, _) in itertools.pairwise(by_address))
    assert all(block.address + block.nbytes <= block.segment + memory.segments[block.segment] for block in used)
    allocator.collect()
    assert allocator.allocated.current == sum(block.nbytes for block in used)
    assert allocator.reserved.current == sum(memory.segments.values())
    for block in used:
        allocator.give_back(block)
    allocator.empty_cache()
    assert (memory.segments, allocator.allocated.current, allocator.reserved.current) == ({}, 0, 0)


def test_a_request_is_retried_with_its_own_size() -> None:
    class Short(CountedMemory):
        """Memory that refuses more than 1 MiB at once."""

        def malloc(self, nbytes: int) -> int:
            """Return an address, or raise CallError."""
            if nbytes > MIB:
                raise CallError(Error.ErrorOccurred, "too large")
            return super().malloc(nbytes)

    assert torch_allocator(Short()).allocate(2000, stream=0).nbytes == 2048


def test_the_options_of_pytorch_are_read() -> None:
    text = "max_split_size_mb: 128, garbage_collection_threshold:0.8,roundup_power2_divisions:4,"
    assert parse_torch_options(text) == TorchOptions(
        max_split_size_mb=128.0, garbage_collection_threshold=0.8, roundup_power2_divisions=4
    )
    with pytest.warns(UserWarning, match="no effect"):
        assert parse_torch_options("expandable_segments:True").expandable_segments
