"""Devices: all forms of registration, missing and failing services, and live objects."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import host_runtime
import numpy as np
import pytest
from host_runtime import HostRuntime

import lib_rt
from diopi_proto import types
from diopi_proto.registration import SERVICES
from diopi_proto.types import Dtype, Error
from lib_rt import CallError, Context, Device, ReleasedError, RuntimeFunctions, Stream, Tensor
from lib_rt.library import ffi, lib

VALUES = np.arange(5, dtype=np.float32)

USES: dict[str, Callable[[Context, Tensor], object]] = {
    "stream_create": lambda context, tensor: Stream(context.device),
    "stream_destroy": lambda context, tensor: context.stream.close(),
    "stream_sync": lambda context, tensor: tensor.numpy(),
    "malloc": lambda context, tensor: Tensor.from_numpy(context, VALUES),
    "free": lambda context, tensor: tensor.close(),
    "h2d": lambda context, tensor: tensor.write(VALUES),
    "d2h": lambda context, tensor: tensor.numpy(),
    "d2d": lambda context, tensor: tensor.clone(),
    "last_error": lambda context, tensor: context.device.last_error,
}
"""For each service, an operation that needs it."""


@pytest.mark.parametrize("service", SERVICES, ids=lambda service: service.name)
def test_a_missing_service_has_a_distinct_error_code(service, device: Device) -> None:
    context = Context(device)
    tensor = Tensor.from_numpy(context, VALUES)
    before = device.live_blocks, device.live_bytes
    with device.unregistered(service.name), pytest.raises(CallError) as caught:
        USES[service.name](context, tensor)
    assert caught.value.code is service.missing
    if service.name != "stream_destroy":  # closing a stream closes its contexts first
        assert (device.live_blocks, device.live_bytes) == before
        np.testing.assert_array_equal(tensor.numpy(), VALUES)
    USES[service.name](context, tensor)


@pytest.mark.parametrize("name", ["stream_sync", "free", "d2h"])
@pytest.mark.parametrize("kind", [Tensor, Context])
def test_close_can_be_repeated_after_a_missing_service(
    name: str, kind: type, device: Device, host: HostRuntime
) -> None:
    context = Context(device)
    tensor = Tensor.from_numpy(context, VALUES)
    closing = tensor if kind is Tensor else context
    with device.unregistered(name), pytest.raises(CallError):
        closing.close()
    assert not closing.closed
    closing.close()
    assert closing.closed
    assert host.memory == {}


def test_require_tensor_without_malloc_returns_the_code_of_malloc(context: Context) -> None:
    with context.device.unregistered("malloc"), pytest.raises(CallError) as caught:
        context.require_tensor((2,), Dtype.float32)
    assert caught.value.code is Error.NoRegisteredDeviceMemoryMallocFunction


def test_unregistered_rejects_unknown_services() -> None:
    with Device(RuntimeFunctions()) as device, pytest.raises(KeyError, match="'mallok'"):
        device.unregistered("mallok").__enter__()


def register(host: HostRuntime) -> tuple[Callable[[], int], list[object]]:
    """Return an `initLibrary` that registers C functions, and these functions."""
    functions = {
        "StreamCreate": ffi.callback("int32_t(uintptr_t*)", lambda result: result.__setitem__(0, 7) or 0),
        "StreamDestroy": ffi.callback("int32_t(uintptr_t)", lambda stream: 0),
        "SynchronizeStream": ffi.callback("int32_t(uintptr_t)", lambda stream: host.stream_sync(stream) or 0),
        "DeviceMalloc": ffi.callback("uintptr_t(uint64_t)", host.malloc),
        "DevMemFree": ffi.callback("void(uintptr_t)", host.free),
        **{
            f"Memcpy{direction}Async": ffi.callback(
                "int32_t(uintptr_t, uintptr_t, uintptr_t, uint64_t)", lambda *copy: host.copy(*copy) or 0
            )
            for direction in ("H2D", "D2H", "D2D")
        },
    }

    def initialize() -> int:
        for name, function in functions.items():
            assert getattr(lib, f"diopiRegister{name}Func")(ffi.cast(f"diopi{name}Func_t", function)) == 0
        return 0

    return initialize, [functions]


def test_registration_functions_affect_only_the_new_device(device: Device, host: HostRuntime) -> None:
    before = lib.diopirt_device_current()
    initialize, callbacks = register(host)
    with Device.from_initializer(initialize) as registered, Context(registered) as context:
        assert context.stream.native == 7
        clone = Tensor.from_numpy(context, VALUES).clone()
        np.testing.assert_array_equal(clone.numpy(), VALUES)
        assert (registered.live_blocks, device.live_blocks) == (1, 0)
        with pytest.raises(CallError, match="last error"):
            _ = registered.last_error
    assert lib.diopirt_device_current() == before
    assert callbacks


def test_from_initializer_raises_when_init_library_fails() -> None:
    with pytest.raises(RuntimeError, match="initLibrary returned 3"):
        Device.from_initializer(lambda: 3)


def test_compiled_functions_may_be_pointers_or_numbers(host: HostRuntime) -> None:
    malloc = ffi.callback("uintptr_t(uint64_t)", host.malloc)
    free = ffi.callback("void(uintptr_t)", host.free)
    with Device.from_pointers({"malloc": malloc, "free": int(ffi.cast("uintptr_t", free))}) as device:
        address = device.malloc(10)
        assert list(host.memory) == [address]
        device.free(address)
    assert host.memory == {}


def test_the_error_of_exhausted_memory_names_the_bytes(device: Device, context: Context, host: HostRuntime) -> None:
    host.limit = 1000
    with pytest.raises(CallError, match="allocate 1001 bytes") as error:
        device.malloc(1001)
    assert error.value.code is Error.ErrorOccurred
    with pytest.raises(CallError, match="allocate"):
        Tensor.empty(context, (1000,), Dtype.int8)
    assert device.live_blocks == 0


@pytest.mark.parametrize("name", ["stream_create", "stream_sync", "malloc", "h2d", "d2h", "d2d"])
def test_exceptions_become_error_codes(name: str, host: HostRuntime) -> None:
    def fail(*arguments: int) -> int:
        raise ArithmeticError("out of luck")

    context = Context(Device(host.functions()))
    tensor = Tensor.from_numpy(context, VALUES)
    failing = Device(RuntimeFunctions(**{name: fail, "last_error": host.last_error}))
    previous = context.device._replace_service(name, failing._callbacks[name])
    context.device._replace_service("last_error", failing._callbacks["last_error"])
    with pytest.raises(CallError, match="ArithmeticError: out of luck") as caught:
        USES[name](context, tensor)
    assert caught.value.code is Error.ErrorOccurred
    context.device._replace_service(name, previous)
    context.device.close()
    assert host.memory == {}


def test_a_returned_error_code_raises_with_the_vendors_text(host: HostRuntime) -> None:
    host.error = "no such address"
    functions = replace(host.functions(), h2d=lambda *copy: 5)
    last_error = pytest.raises(CallError, match="returned 5: no such address")
    with Device(functions) as device, Stream(device) as stream, last_error:
        stream.h2d(0, 0, 0)


def test_last_error_returns_the_exception_once_and_then_the_vendors_text(device: Device, host: HostRuntime) -> None:
    host.error = "ordinary"
    assert device.last_error == "ordinary"
    device.free(12345)  # not in `host.memory`
    assert device.last_error == "KeyError: 12345"
    assert device.last_error == "ordinary"


def test_live_counts_follow_the_open_tensors(device: Device, context: Context) -> None:
    first = Tensor.from_numpy(context, VALUES)
    second = Tensor.empty(context, (3,), Dtype.int64)
    assert (device.live_blocks, device.live_bytes) == (2, 20 + 24)
    first.close()
    assert (device.live_blocks, device.live_bytes) == (1, 24)
    second.close()
    assert (device.live_blocks, device.live_bytes) == (0, 0)


def test_allocations_count_tensors_and_plain_allocations(device: Device, context: Context) -> None:
    tensor = Tensor.from_numpy(context, VALUES)
    on_host = Tensor.empty(context, (3,), Dtype.int64, memory_kind=types.Device.host)
    block = device.malloc(64)
    assert device.allocations == 2
    tensor.close()
    on_host.close()
    assert device.allocations == 1
    device.free(block)
    assert device.allocations == 0


def test_closing_a_device_closes_everything_on_it(host: HostRuntime) -> None:
    device = Device(host.functions())
    streams = [Stream(device), Stream(device)]
    context, created = Context(device, streams[0]), Context(device)
    tensor = Tensor.from_numpy(context, VALUES)
    device.close()
    device.close()
    assert [item.closed for item in (*streams, context, created, created.stream)] == [True] * 5
    assert (host.memory, host.streams) == ({}, set())
    for use in (tensor.numpy, lambda: Context(device), lambda: device.live_blocks, streams[0].synchronize):
        with pytest.raises(ReleasedError, match="closed"):
            use()


FORGETFUL = """
import numpy as np
from host_runtime import HostRuntime
from lib_rt import Context, Device, Generator, Stream, Tensor

device = Device(HostRuntime().functions())
stream = Stream(device)
context = Context(device, stream)
tensor = Tensor.from_numpy(context, np.ones(3))
required = context.require_tensor((2,), tensor.dtype)
generator = Generator(context, 1)
cycle = [tensor]
cycle.append(cycle)
print("done")
"""


def test_objects_that_are_open_at_exit_cause_no_error() -> None:
    search = [str(Path(host_runtime.__file__).parent), str(Path(lib_rt.__file__).parent.parent)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(search)}
    done = subprocess.run([sys.executable, "-c", FORGETFUL], capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
