"""The runtime of the built-in device: memory, asynchronous copies, and streams."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np
import pytest

from diopi_impl.host_runtime import ALIGNMENT, CAPACITY, HostRuntime
from diopi_proto.types import Error
from lib_rt import CallError, Device, Stream

Bytes = np.ndarray


@pytest.fixture
def runtime() -> HostRuntime:
    """Return a new runtime of the built-in device."""
    return HostRuntime()


@pytest.fixture
def stream(runtime: HostRuntime) -> Iterator[int]:
    """Yield a stream of the runtime, which is destroyed after the test."""
    number = runtime.stream_create()
    yield number
    runtime.stream_destroy(number)


def address(array: Bytes) -> int:
    """Return the address of the array's first byte."""
    return array.ctypes.data


def test_memory_is_aligned_and_freed(runtime: HostRuntime) -> None:
    addresses = [runtime.malloc(nbytes) for nbytes in (0, 1, 255, 256, 100_003)]
    assert all(block and block % ALIGNMENT == 0 for block in addresses)
    assert len(set(addresses)) == len(addresses)
    for block in addresses:
        runtime.free(block)
    runtime.free(0)


@pytest.mark.parametrize("nbytes", [2**62, 2**64 - 1])
def test_allocation_failure_reports_out_of_memory(runtime: HostRuntime, nbytes: int) -> None:
    assert runtime.malloc(nbytes) == 0
    assert runtime.functions().last_error() == f"out of memory: {nbytes} bytes were requested"


def test_copy_is_asynchronous(runtime: HostRuntime, stream: int) -> None:
    source, target = np.arange(100), np.zeros(100, int)
    assert runtime.copy(stream, address(target), address(source), source.nbytes) == Error.Success
    assert not target.any()
    assert runtime.stream_sync(stream) == Error.Success
    np.testing.assert_array_equal(target, source)


def test_copies_keep_their_order(runtime: HostRuntime, stream: int) -> None:
    slots = np.zeros((500, 3))
    slots[0] = 1, 2, 3
    for i in range(1, len(slots)):
        runtime.copy(stream, address(slots[i]), address(slots[i - 1]), slots[0].nbytes)
    runtime.stream_sync(stream)
    assert (slots == slots[0]).all()


@pytest.mark.parametrize("nbytes", [1000, 100_000])
def test_overlapping_copy_behaves_like_memmove(runtime: HostRuntime, stream: int, nbytes: int) -> None:
    values = np.random.default_rng(0).integers(0, 256, nbytes, np.uint8)
    expected = values[:-1].copy()
    runtime.copy(stream, address(values) + 1, address(values), values.nbytes - 1)
    runtime.stream_sync(stream)
    np.testing.assert_array_equal(values[1:], expected)


def test_streams_do_not_wait_for_each_other(runtime: HostRuntime) -> None:
    stream, second_stream = runtime.stream_create(), runtime.stream_create()
    source, first, second = np.ones(10), np.zeros(10), np.zeros(10)
    runtime.copy(stream, address(first), address(source), source.nbytes)
    runtime.copy(second_stream, address(second), address(source), source.nbytes)
    runtime.stream_sync(second_stream)
    assert second.all()
    assert not first.any()
    runtime.stream_sync(stream)
    assert first.all()
    runtime.stream_destroy(stream)
    runtime.stream_destroy(second_stream)


def test_full_stream_performs_its_copies(runtime: HostRuntime, stream: int) -> None:
    slots = np.zeros(CAPACITY + 2)
    slots[0] = 1
    for i in range(1, len(slots)):
        runtime.copy(stream, address(slots[i:]), address(slots[i - 1 :]), slots.itemsize)
    assert slots.sum() == CAPACITY + 1
    runtime.stream_sync(stream)
    assert slots.all()


def test_synchronizing_waits_for_copies_of_other_threads(runtime: HostRuntime, stream: int) -> None:
    source, target = np.ones(2**24), np.zeros(2**24)
    for _ in range(5):
        target[-1] = 0
        runtime.copy(stream, address(target), address(source), source.nbytes)
        threads = [threading.Thread(target=runtime.stream_sync, args=(stream,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        runtime.stream_sync(stream)
        assert target[-1] == 1
        for thread in threads:
            thread.join()


def test_destroying_a_stream_finishes_its_work(runtime: HostRuntime) -> None:
    source, target = np.ones(1000), np.zeros(1000)
    stream = runtime.stream_create()
    runtime.copy(stream, address(target), address(source), source.nbytes)
    assert not target.any()
    assert runtime.stream_destroy(stream) == Error.Success
    assert target.all()


def test_streams_have_different_numbers(runtime: HostRuntime) -> None:
    streams = [runtime.stream_create() for _ in range(5)]
    assert len(set(streams)) == 5
    for stream in streams:
        runtime.stream_destroy(stream)


@pytest.mark.parametrize("call", ["stream_sync", "stream_destroy", "copy"])
def test_an_unknown_stream_is_an_error(runtime: HostRuntime, call: str) -> None:
    arguments = (77, 0, 0, 0) if call == "copy" else (77,)
    assert getattr(runtime, call)(*arguments) == Error.ErrorOccurred
    assert "0x4d is not a handle of this runtime, expected a stream of the host" in runtime.functions().last_error()


def test_a_stream_is_unknown_once_destroyed(runtime: HostRuntime) -> None:
    stream = runtime.stream_create()
    runtime.stream_destroy(stream)
    assert runtime.stream_destroy(stream) == Error.ErrorOccurred
    assert f"{stream:#x} is a dead handle, expected a live stream of the host" in runtime.functions().last_error()


def test_last_error_is_per_thread(runtime: HostRuntime) -> None:
    runtime.malloc(2**62)
    texts: list[str] = []
    thread = threading.Thread(target=lambda: texts.append(runtime.last_error()))
    thread.start()
    thread.join()
    assert texts == [""]


def test_derived_runtime_overrides_functions() -> None:
    class Short(HostRuntime):
        def malloc(self, nbytes: int) -> int:
            return 0 if nbytes > 1000 else super().malloc(nbytes)

    with Device(Short().functions()) as device:
        device.free(device.malloc(1000))
        with pytest.raises(CallError, match="1001"):
            device.malloc(1001)


def test_runtime_registers_all_nine_functions(runtime: HostRuntime) -> None:
    source, target = np.arange(10), np.zeros(10, int)
    with Device(runtime.functions(), host_addressable=True) as device, Stream(device) as stream:
        block = device.malloc(source.nbytes)
        stream.h2d(block, address(source), source.nbytes)
        stream.d2d(block, block + 8, 8)
        stream.d2h(address(target), block, source.nbytes)
        stream.synchronize()
        device.free(block)
        with pytest.raises(CallError, match="4611686018427387904"):
            device.malloc(2**62)
    np.testing.assert_array_equal(target, [1, *range(1, 10)])
