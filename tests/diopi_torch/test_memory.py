"""Freed memory is cached and reused."""

from collections.abc import Iterator

import pytest
from torch_devices import Limited

torch = pytest.importorskip("torch", reason="pip install 'diopi[torch]'")

from diopi_torch.memory import (  # noqa: E402  # behind the check for PyTorch
    CachingAllocator,
    CheckingAllocator,
    DeviceMemoryError,
    FreedTwiceError,
    MemoryUsage,
    make_allocator,
)
from diopi_torch.pools import MIB, RawPool, SizeClassPool  # noqa: E402  # behind the check, too
from diopi_torch.settings import (  # noqa: E402  # behind the check, too
    ALLOCATOR_OPTIONS,
    DEVICE_STRATEGY,
    MEMORY_CHECK,
    SettingError,
)
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
    """Yield an allocator that does not divide blocks; `waits` gets an entry whenever it waits for the device."""
    with Device(runtime.functions()) as device:
        yield CachingAllocator(device, lambda: waits.append(None), SizeClassPool())


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


def test_without_a_cache_memory_returns_before_the_next_allocation(runtime: Limited) -> None:
    with Device(runtime.functions()) as device:
        allocator = CachingAllocator(device, lambda: None, RawPool())
        allocator.give_back(allocator.allocate(4096, stream=0))
        assert allocator.allocate(4096, stream=1).nbytes == 4096
        assert allocator.reserved == MemoryUsage(4096, 4096)


def test_segments_shrink_to_the_request_if_memory_is_short() -> None:
    runtime = Limited(3 * MIB)
    with Device(runtime.functions()) as device:
        allocator = CachingAllocator(device, lambda: None)
        first, second = (allocator.allocate(MIB, stream=stream) for stream in (0, 1))
        assert (allocator.reserved.current, runtime.available) == (3 * MIB, 0)
        assert (first.segment, second.nbytes) == (first.address, MIB)


def test_unused_memory_is_freed_above_a_part_of_the_limit(waits: list[None]) -> None:
    with Device(Limited(64 * MIB).functions()) as device:
        allocator = CachingAllocator(device, lambda: waits.append(None), collection_threshold=0.5)
        allocator.limit = 48 * MIB
        allocator.give_back(allocator.allocate(10 * MIB, stream=0))
        assert allocator.allocate(12 * MIB, stream=1) and not waits
        assert allocator.allocate(8 * MIB, stream=1).nbytes == 8 * MIB
        assert (len(waits), allocator.reserved.current) == (1, (12 + 20) * MIB)


def test_a_block_that_is_freed_twice_raises_an_error(runtime: Limited, capsys: pytest.CaptureFixture[str]) -> None:
    with Device(runtime.functions()) as device:
        allocator = CheckingAllocator(device, lambda: None, SizeClassPool())
        blocks = [allocator.allocate(size, stream=0) for size in (512, 1024, 512)]
        allocator.give_back(blocks[0])
        with pytest.raises(FreedTwiceError, match="512 bytes"):
            allocator.give_back(blocks[0])
        allocator.close()
        printed = capsys.readouterr().err.splitlines()
        assert printed[0] == "DIPU_MEM_CHECK: 2 blocks are still in use, 1,536 bytes"
        assert printed[1].startswith("  1,024 bytes at 0x")


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        (DEVICE_STRATEGY, "BFC", r"TORCH, BF, BS, RAW.*'BFC'"),
        (ALLOCATOR_OPTIONS, "max_split_size:8", "'max_split_size' is not one of max_split_size_mb"),
        (ALLOCATOR_OPTIONS, "max_split_size_mb:0", "'0' is not a value of max_split_size_mb"),
        (ALLOCATOR_OPTIONS, "roundup_power2_divisions:6", "power of two"),
        (MEMORY_CHECK, "maybe", "maybe"),
    ],
)
def test_an_invalid_setting_of_the_allocator_is_an_error(
    monkeypatch: pytest.MonkeyPatch, runtime: Limited, variable: str, value: str, message: str
) -> None:
    monkeypatch.setenv(variable, value)
    with Device(runtime.functions()) as device, pytest.raises(SettingError, match=message):
        make_allocator(DEVICE_STRATEGY, device, lambda: None)
