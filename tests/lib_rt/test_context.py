"""Contexts: required tensors, ownership, streams."""

import ctypes
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from host_runtime import HostRuntime

from diopi_proto import types
from diopi_proto.types import Dtype, Error
from lib_rt import CallError, Context, Device, ForeignObjectError, GuardError, ReleasedError, Stream, Tensor
from lib_rt.library import ffi, last_error, lib


def test_required_tensors_are_listed_in_order(context: Context) -> None:
    Tensor.from_numpy(context, np.ones(3))
    assert context.required == []
    first = context.require_tensor((2, 3), Dtype.float16)
    Tensor.from_numpy(context, np.ones(3))
    second = context.require_tensor((4,), Dtype.int64, memory_kind=types.Device.host)
    assert [tensor.handle for tensor in context.required] == [first.handle, second.handle]
    assert [(tensor.shape, tensor.dtype, tensor.memory_kind) for tensor in context.required] == [
        ((2, 3), Dtype.float16, types.Device.device),
        ((4,), Dtype.int64, types.Device.host),
    ]


@pytest.mark.parametrize(
    ("shape", "strides", "nbytes"), [((2, 3), None, 24), ((2, 3), (1, 2), 24), ((2, 3), (8, 1), 44), ((0, 3), None, 0)]
)
def test_required_tensors_have_the_requested_geometry(context: Context, shape, strides, nbytes: int) -> None:
    tensor = context.require_tensor(shape, Dtype.int32, strides=strides)
    assert tensor.strides == (strides or (3, 1))
    assert tensor.storage_nbytes == nbytes


def test_required_tensors_are_released_with_the_context(device: Device, host: HostRuntime) -> None:
    context = Context(device)
    tensor = context.require_tensor((2,), Dtype.int8)
    tensor.close()
    assert device.live_blocks == 1
    tensor = context.required[0]
    context.close()
    assert device.live_blocks == 0
    assert host.memory == {}
    with pytest.raises(ReleasedError):
        tensor.numpy()


def test_required_buffers_consist_of_bytes(context: Context) -> None:
    result = ffi.new("diopiTensorHandle_t*")
    assert lib.diopiRequireBuffer(context.handle, result, 17, types.Device.device) == 0
    buffer = Tensor.from_handle(context, result[0])
    assert (buffer.shape, buffer.dtype, buffer.storage_nbytes) == ((17,), Dtype.uint8, 17)
    assert lib.diopiRequireBuffer(context.handle, result, -1, types.Device.device) == 1
    assert "negative size -1" in last_error()


def test_requiring_a_tensor_without_size_is_an_error(context: Context) -> None:
    result = ffi.new("diopiTensorHandle_t*")
    size = ffi.new("diopiSize_t*", (ffi.NULL, 1))
    for invalid in (ffi.NULL, size):
        assert lib.diopiRequireTensor(context.handle, result, invalid, ffi.NULL, Dtype.int8, types.Device.device) == 1
        assert "has no shape" in last_error()
    assert result[0] == ffi.NULL
    assert context.required == []


def test_a_stream_that_a_context_creates_ends_with_it(device: Device, host: HostRuntime) -> None:
    context = Context(device)
    assert host.streams == {context.stream.native}
    context.close()
    assert host.streams == set()


def test_a_created_stream_ends_with_the_context_even_if_unused(device: Device, host: HostRuntime) -> None:
    context = Context(device)
    assert len(host.streams) == 1
    context.close()
    assert host.streams == set()
    assert context.stream.closed


def test_a_context_creates_one_stream_for_all_requests(device: Device, host: HostRuntime) -> None:
    with Context(device) as context, ThreadPoolExecutor(8) as pool:
        streams = list(pool.map(lambda _: context.stream, range(8)))
        assert all(stream is context.stream for stream in streams)
        with Context(device, context.stream) as second:
            Tensor.from_numpy(second, np.ones(2))
            context.close()
            assert second.closed
    assert (host.streams, host.memory) == (set(), {})


def test_closing_a_device_closes_contexts_that_created_streams(device: Device, host: HostRuntime) -> None:
    with_stream, without_stream = Context(device), Context(device)
    stream = with_stream.stream
    device.close()
    assert with_stream.closed and without_stream.closed and stream.closed
    assert host.streams == set()


def test_a_context_stays_open_if_its_stream_can_not_be_destroyed(device: Device, host: HostRuntime) -> None:
    context = Context(device)
    tensor = Tensor.from_numpy(context, np.arange(3))
    with device.unregistered("stream_destroy"), pytest.raises(CallError) as caught:
        context.close()
    assert caught.value.code is Error.NoRegisteredStreamDestoryFunction
    assert tensor.numpy().tolist() == [0, 1, 2]
    context.close()
    assert (host.streams, host.memory) == (set(), {})


def test_damage_is_reported_even_if_the_stream_can_not_be_destroyed(host: HostRuntime) -> None:
    with Device(replace(host.functions(), stream_destroy=lambda stream: 6), host_addressable=True) as device:
        context = Context(device)
        tensor = Tensor.empty(context, (4,), Dtype.int8)
        ctypes.memset(tensor.storage_ptr + 4, 0, 1)
        with pytest.raises(GuardError, match=r"4 bytes.*byte 4"):
            context.close()
        assert context.closed
        with pytest.raises(CallError, match="returned 6"):
            Context(device).close()


def test_synchronizing_a_context_waits_for_its_stream(device: Device, host: HostRuntime) -> None:
    with Context(device) as context:
        context.synchronize()
        assert host.synchronized == 1
    with pytest.raises(ReleasedError, match="context"):
        context.synchronize()


def test_a_stream_belongs_to_one_context(device: Device) -> None:
    with Context(device) as context, context.stream:
        stream_taken = ffi.new("diopirt_stream_t*")
        assert lib.diopirt_context_take_stream(context.handle, stream_taken) == 1
        assert "the context does not own its stream" in last_error()
        assert stream_taken[0] == ffi.NULL


def test_a_stream_passed_by_the_caller_outlives_the_context(device: Device, host: HostRuntime) -> None:
    with Stream(device) as stream:
        for _ in range(3):
            with Context(device, stream) as context:
                Tensor.from_numpy(context, np.ones(2))
        assert host.streams == {stream.native}


def test_a_stream_of_another_device_is_rejected(device: Device, host: HostRuntime) -> None:
    with Device(host.functions()) as other_device, Stream(other_device) as stream, pytest.raises(ForeignObjectError):
        Context(device, stream)


def test_many_calls_leak_no_memory(device: Device, host: HostRuntime) -> None:
    for _ in range(2000):
        with Context(device) as context:
            Tensor.from_numpy(context, np.ones(2))
            context.require_tensor((3,), Dtype.int16)
    assert (device.live_blocks, device.live_bytes, host.memory, host.streams) == (0, 0, {}, set())
