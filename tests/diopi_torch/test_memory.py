"""Freed memory is cached and reused."""

from collections.abc import Iterator

import pytest
from torch_devices import Limited

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

from diopi_torch.memory import CachingAllocator, DeviceMemoryError, MemoryUsage  # noqa: E402  # behind the check for PyTorch
from lib_rt import Device  # noqa: E402  # behind the check, too


@pytest.fixture
def runtime() -> Limited:
    """Return a runtime with 4096 bytes of device memory."""
    return Limited(4096)


@pytest.fixture
def waits() -> list[None]:
    """Return the list to which the allocator appends when it waits for the device."""
    return []


@pytest.fixture
def allocator(runtime: Limited, waits: list[None]) -> Iterator[CachingAllocator]:
    """Yield a caching allocator on the runtime; `waits` gets an entry whenever it waits for the device."""
    with Device(runtime.functions()) as device:
        yield CachingAllocator(device, lambda: waits.append(None))


def test_released_blocks_are_reused_by_the_same_stream(allocator: CachingAllocator, waits: list[None]) -> None:
    first = allocator.allocate(700, stream=0)
    assert (first.nbytes, allocator.allocated, allocator.reserved) == (
        1024,
        MemoryUsage(1024, 1024),
        MemoryUsage(1024, 1024),
    )
    allocator.give_back(first)
    assert allocator.allocate(1000, stream=1) != first
    assert allocator.allocate(1, stream=0) != first
    assert allocator.allocate(1000, stream=0) is first
    assert (allocator.reserved.current, waits) == (1024 + 1024 + 512, [])


def test_the_block_released_last_is_reused_first(allocator: CachingAllocator) -> None:
    blocks = [allocator.allocate(size, stream=0) for size in (512, 1024, 1024)]
    for block in blocks:
        allocator.give_back(block)
    for _ in range(2):
        assert allocator.allocate(1000, stream=0) is blocks[2]
        allocator.give_back(blocks[2])
    assert allocator.allocate(1000, stream=1) not in blocks
    assert (allocator.allocated, allocator.reserved.current) == (MemoryUsage(1024, 2560), 3584)


def test_an_allocation_of_zero_bytes_returns_a_block(allocator: CachingAllocator) -> None:
    assert allocator.allocate(0, stream=0).nbytes == 512


def test_the_cache_is_emptied_before_memory_runs_out(
    allocator: CachingAllocator, runtime: Limited, waits: list[None]
) -> None:
    allocator.give_back(allocator.allocate(3000, stream=0))
    block = allocator.allocate(2048, stream=0)
    assert (len(waits), runtime.available, allocator.reserved) == (1, 2048, MemoryUsage(2048, 3072))
    with pytest.raises(DeviceMemoryError, match=r"2,560 bytes.*2,048.*2048 bytes"):
        allocator.allocate(2560, stream=0)
    allocator.give_back(block)
    allocator.empty_cache()
    assert (runtime.available, allocator.allocated.current, allocator.reserved.current) == (4096, 0, 0)
    allocator.allocated.reset_peak()
    assert allocator.allocated == MemoryUsage(0, 0)
