"""Streams: copies, synchronization, and the host memory of unfinished copies."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from host_runtime import HostRuntime

from lib_rt import CallError, Context, Device, Stream, Tensor
from lib_rt.library import ffi, lib


class LateRuntime(HostRuntime):
    """A runtime that copies when the stream is synchronized, as late as a real device may."""

    def __init__(self) -> None:
        super().__init__()
        self.late: list[Callable[[], None]] = []

    def copy(self, stream: int, destination: int, source: int, nbytes: int) -> None:
        self.late.append(lambda: HostRuntime.copy(self, stream, destination, source, nbytes))

    def stream_sync(self, stream: int) -> None:
        super().stream_sync(stream)
        late, self.late = self.late, []
        for copy in late:
            copy()


@pytest.mark.parametrize("nbytes", [0, 1, 7, 4096, 100_003])
def test_streams_copy_between_host_and_device(device: Device, nbytes: int) -> None:
    source = np.random.default_rng(nbytes).integers(0, 256, nbytes, np.uint8)
    back = np.zeros_like(source)
    call, two = device.malloc(nbytes), device.malloc(nbytes)
    with Stream(device) as stream:
        stream.h2d(call, source.ctypes.data, nbytes)
        stream.d2d(two, call, nbytes)
        stream.d2h(back.ctypes.data, two, nbytes)
        stream.synchronize()
    np.testing.assert_array_equal(back, source)
    device.free(call)
    device.free(two)


def test_reads_wait_for_unfinished_copies() -> None:
    host = LateRuntime()
    with Device(host.functions()) as device, Context(device) as context:
        values = np.arange(1000, dtype=np.int64)
        tensors = [Tensor.from_numpy(context, values + i) for i in range(20)]
        assert host.synchronized == 0
        for i, tensor in enumerate(tensors):
            np.testing.assert_array_equal(tensor.numpy(), values + i)
        tensors[3].write(values - 1)
        np.testing.assert_array_equal(tensors[3].clone().numpy(), values - 1)
    assert host.memory == {}


def test_closing_a_context_waits_once(device: Device, host: HostRuntime) -> None:
    with Stream(device) as stream:
        context = Context(device, stream)
        tensors = [Tensor.from_numpy(context, np.ones(3)) for _ in range(10)]
        context.close()
        assert host.synchronized == 1
        assert device.live_blocks == 0
        assert len(tensors) == 10


def test_a_failed_wait_raises_an_error(host: HostRuntime) -> None:
    with Device(replace(host.functions(), stream_sync=lambda stream: 9)) as device:
        stream = Stream(device)
        with pytest.raises(CallError, match="returned 9"):
            stream.synchronize()
        with pytest.raises(CallError, match="returned 9"):
            stream.close()
        assert stream.closed
        assert host.streams == set()


def test_streams_are_created_by_the_vendor(device: Device, host: HostRuntime) -> None:
    with Stream(device) as call, Stream(device) as two:
        assert {call.native, two.native} == host.streams
        with Context(device, two) as context:
            native = ffi.new("diopiStreamHandle_t*")
            assert lib.diopiGetStream(context.handle, native) == 0
            assert int(ffi.cast("uintptr_t", native[0])) == two.native


def test_copy_rejects_services_that_do_not_copy(device: Device) -> None:
    with Stream(device) as stream:
        assert lib.diopirt_stream_copy(stream.handle, lib.diopirt_malloc_service, ffi.NULL, ffi.NULL, 0) == 1


def test_copies_to_and_from_null_are_rejected(device: Device) -> None:
    with Stream(device) as stream:
        with pytest.raises(CallError, match="destination"):
            stream.h2d(0, 1, 1)
        with pytest.raises(CallError, match="source"):
            stream.d2h(1, 0, 1)
        stream.d2d(0, 0, 0)
