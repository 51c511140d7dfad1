"""Tests of the HanGuangRT calls: results, calls in the wrong order, and failed calls, which must change nothing."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from diopi_engine import Engine, link
from diopi_engine.conformance.client import EngineClient, FailedCallError, ffi, tensor_desc
from diopi_engine.proto.hgrt import (
    BatchSizeFlags,
    BindingAttribute,
    CoreAllocPolicy,
    DataType,
    DeviceAttribute,
    DevicePriority,
    Layout,
    MemFlags,
    Result,
)
from diopi_engine.runtime.calls import HANDLES
from diopi_engine.runtime.errors import InterfaceError
from diopi_engine.runtime.objects import ExecutionContext, RuntimeTensor

FREE, RETAINED = DeviceAttribute.FREE_CORE_COUNT, DeviceAttribute.RETAINED_CORE_MASK
AS_MASK, MAXIMUM, MINIMUM = CoreAllocPolicy.AS_CORE_MASK, CoreAllocPolicy.MAXIMUM, CoreAllocPolicy.MINIMUM


@contextmanager
def fails(result: Result, pattern: str = "") -> Iterator[None]:
    """Assert that a call fails with this result and a message that matches the pattern."""
    with pytest.raises(FailedCallError, match=re.compile(pattern)) as raised:
        yield
    assert raised.value.result is result


@pytest.fixture
def engine_handle(client: EngineClient, engine: Engine) -> Iterator[Any]:
    """Load the engine and yield its handle; destroy it after the test."""
    handle = client.engine(engine.to_bytes())
    yield handle
    client.call("hgEngineDestroy", handle)


@pytest.fixture
def context(client: EngineClient, engine_handle: Any) -> Iterator[Any]:
    """Create an execution context, and destroy it after the test."""
    handle = client.context(engine_handle)
    yield handle
    client.call("hgExecutionContextDestroy", handle)


def bindings_for_batch(size: int) -> list[Any]:
    """Return random input x, and outputs y and z filled with NaN and -1, for a batch of `size` samples."""
    x = np.random.default_rng(size).standard_normal((size, 4)).astype(np.float32)
    return [x, np.full((size, 3), np.nan, np.float32), np.full(size, -1, np.int32)]


def assert_outputs_match(engine: Engine, bindings: list[Any]) -> None:
    """Compare the outputs in `bindings` with those that the compiled engine computes from the input in Python."""
    for actual, expected in zip(bindings[1:], engine(bindings[0]), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


def test_devices_and_versions_are_reported(client: EngineClient) -> None:
    assert client.get("hgRuntimeGetVersion") == 100
    assert client.get("hgDeviceGetCount") == 2
    assert client.get("hgDeviceGetAttribute", 1, DeviceAttribute.CORE_COUNT) == 4
    assert client.get("hgDeviceGetAttribute", 0, DeviceAttribute.LOCAL_MEMORY_SIZE) == 256 << 20
    assert client.text("hgGetResultName", Result.ERROR_IN_USE) == "HG_ERROR_IN_USE"
    assert "uses it" in client.text("hgGetResultDescription", Result.ERROR_IN_USE)


def test_invalid_arguments_are_rejected(client: EngineClient) -> None:
    with fails(Result.ERROR_INVALID_ARGUMENT, "count"):
        client.call("hgDeviceGetCount", ffi.NULL)
    with fails(Result.ERROR_INVALID_ARGUMENT, "99"):
        client.text("hgGetResultName", 99)
    with fails(Result.ERROR_INVALID_DEVICE, "2"):
        client.call("hgDeviceSetCurrent", 2)
    with fails(Result.ERROR_INVALID_HANDLE, "LoadedEngine"):
        client.get("hgEngineGetNbBindings", ffi.NULL)
    assert client.library.hgGetLastErrorString(ffi.NULL) == Result.ERROR_INVALID_ARGUMENT


def test_each_thread_has_a_current_device(client: EngineClient) -> None:
    client.call("hgDeviceSetCurrent", 1)
    with ThreadPoolExecutor(1) as pool:
        device_in_thread = pool.submit(client.get, "hgDeviceGetCurrent").result()
    assert (device_in_thread, client.get("hgDeviceGetCurrent")) == (0, 1)


def test_cores_are_retained_and_released(client: EngineClient) -> None:
    mask = client.get("hgDeviceRetain", 0, 3, DevicePriority.P0)
    assert (mask.bit_count(), client.get("hgDeviceGetAttribute", 0, FREE)) == (3, 1)
    with fails(Result.ERROR_CORES_UNAVAILABLE, "1 of 4"):
        client.get("hgDeviceRetain", 0, 2, DevicePriority.P0)
    with fails(Result.ERROR_INVALID_ARGUMENT):
        client.call("hgDeviceRelease", 0, 0xF)
    with fails(Result.ERROR_INVALID_ARGUMENT):
        client.call("hgDeviceRelease", 0, 0)
    with fails(Result.ERROR_INVALID_ARGUMENT, "0 cores"):
        client.get("hgDeviceRetain", 0, 0, DevicePriority.P0)
    assert client.get("hgDeviceGetAttribute", 0, RETAINED) == mask
    client.call("hgDeviceRelease", 0, mask)


def test_requests_of_low_priority_leave_cores_to_others(client: EngineClient) -> None:
    for priority, maximum in ((DevicePriority.P3, 1), (DevicePriority.P2, 2), (DevicePriority.P1, 3)):
        with fails(Result.ERROR_CORES_UNAVAILABLE, f"{priority.value} left"):
            client.get("hgDeviceRetain", 0, maximum + 1, priority)
        client.call("hgDeviceRelease", 0, client.get("hgDeviceRetain", 0, maximum, priority))


def test_an_engine_is_described(client: EngineClient, engine_handle: Any) -> None:
    assert client.get("hgEngineGetNbBindings", engine_handle) == 3
    assert [client.text("hgEngineGetBindingName", engine_handle, n) for n in range(3)] == ["x", "y", "z"]
    assert client.get("hgEngineGetBindingIndex", engine_handle, b"z") == 2
    dims = client.get("hgEngineGetBindingDimensions", engine_handle, 1)
    assert list(dims.d[0 : dims.nbDims]) == [-1, 3]
    assert client.get("hgEngineGetBindingType", engine_handle, 2) == DataType.INT32
    assert client.get("hgEngineGetBindingLayout", engine_handle, 0) == Layout.LINEAR
    assert {name: client.get("hgEngineGetBindingAttribute", engine_handle, 1, name) for name in BindingAttribute} == {
        BindingAttribute.IS_INPUT: 0,
        BindingAttribute.DATA_TYPE: DataType.FLOAT32,
        BindingAttribute.LAYOUT: Layout.LINEAR,
        BindingAttribute.NB_DIMS: 2,
        BindingAttribute.BATCH_DIM: 0,
        BindingAttribute.SAMPLE_SIZE: 12,
    }
    assert client.get("hgEngineGetMaxBatchSize", engine_handle, 0) == 16
    assert client.get("hgEngineGetMaxBatchSize", engine_handle, BatchSizeFlags.MAX_CORES) == 64
    with fails(Result.ERROR_INVALID_ARGUMENT, "binding 3, expected one of 0 to 2"):
        client.text("hgEngineGetBindingName", engine_handle, 3)
    with fails(Result.ERROR_INVALID_ARGUMENT, "no binding is called 'w'"):
        client.get("hgEngineGetBindingIndex", engine_handle, b"w")
    with fails(Result.ERROR_INVALID_ARGUMENT, "0x4 is unknown"):
        client.get("hgEngineGetMaxBatchSize", engine_handle, 4)


def test_the_scheme_of_a_group_is_described(client: EngineClient, engine: Engine) -> None:
    handle = client.engine(link([engine, engine], cores=4)[1].to_bytes())
    scheme = client.get("hgEngineGetExecutionScheme", handle)
    assert client.get("hgEngineGetEngineID", handle) == 1
    assert client.get("hgSchemeGetEngineCount", scheme) == 2
    control = client.get("hgSchemeGetEngineControl", scheme, 1)
    assert (ffi.string(control.engineName), control.coreMask, control.coresPerBatch) == (b"layer", 2, 1)
    assert control.memoryConsumption == engine.manifest.control.memory
    with fails(Result.ERROR_INVALID_ARGUMENT, "engine 2"):
        client.get("hgSchemeGetEngineControl", scheme, 2)
    client.call("hgEngineDestroy", handle)
    with fails(Result.ERROR_INVALID_HANDLE):
        client.get("hgSchemeGetEngineCount", scheme)


def test_invalid_engine_bytes_are_rejected(client: EngineClient, engine: Engine) -> None:
    data = engine.to_bytes()
    with fails(Result.ERROR_INVALID_FILE, "not as it was written"):
        client.engine(data[:-1])
    with fails(Result.ERROR_INVALID_ARGUMENT, "serialized is NULL"):
        client.get("hgEngineCreate", ffi.NULL, 10)
    older = replace(engine, manifest=replace(engine.manifest, compiler="0.1"))
    with fails(Result.ERROR_VERSION, "version 0.1"):
        client.engine(older.to_bytes())


@pytest.mark.parametrize("policy", [MINIMUM, MAXIMUM])
@pytest.mark.parametrize("size", [1, 7])
def test_a_batch_is_executed(
    client: EngineClient, engine: Engine, engine_handle: Any, policy: CoreAllocPolicy, size: int
) -> None:
    context = client.context(engine_handle, policy)
    bindings = bindings_for_batch(size)
    client.execute(context, size, bindings)
    assert_outputs_match(engine, bindings)
    client.call("hgExecutionContextDestroy", context)


def test_invalid_batch_sizes_are_rejected(client: EngineClient, context: Any) -> None:
    for size in (0, -1, 17):
        bindings = bindings_for_batch(20)
        with fails(Result.ERROR_BATCH_SIZE, f"the batch is {size}, expected 1 to 16"):
            client.execute(context, size, bindings)
        assert np.isnan(bindings[1]).all()


def test_invalid_bindings_are_rejected(client: EngineClient, context: Any) -> None:
    x, y, z = bindings_for_batch(4)
    description = ffi.new("hgHostTensorDesc*", (MemFlags.SYSTEM, x.nbytes))
    with fails(Result.ERROR_BINDING, "bindings is NULL"):
        client.call("hgExecutionContextExecute", context, 4, ffi.NULL, ffi.NULL)
    with fails(Result.ERROR_BINDING, "binding y is NULL"):
        client.execute(context, 4, [x, ffi.NULL, z])
    with fails(Result.ERROR_BINDING, "bindings x and y overlap"):
        client.execute(context, 4, [x, x, z])
    with fails(Result.ERROR_BINDING, "binding x has 63 bytes, expected 64"):
        description.size = 63
        client.execute(context, 4, [x, y, z], description)
    with fails(Result.ERROR_INVALID_ARGUMENT, "location 7"):
        description.location = 7
        client.execute(context, 4, [x, y, z], description)


def test_page_locked_tensors_can_be_bindings(client: EngineClient, engine: Engine, context: Any) -> None:
    bindings = bindings_for_batch(6)
    tensors = [client.tensor(array) for array in bindings]
    description = ffi.new("hgHostTensorDesc*", (MemFlags.HOST, 0))
    client.execute(context, 6, tensors, description)
    for tensor, array in zip(tensors, bindings, strict=True):
        address = client.get("hgTensorMap", tensor)
        ffi.memmove(ffi.from_buffer(array, require_writable=True), address, array.nbytes)
        with fails(Result.ERROR_IN_USE, "is mapped"):
            client.call("hgTensorDestroy", tensor)
        client.call("hgTensorUnmap", tensor)
    assert_outputs_match(engine, bindings)
    with fails(Result.ERROR_BINDING, r"binding x is a tensor of float32\[6, 3\], expected float32\[6, 4\]"):
        client.execute(context, 6, [tensors[1], tensors[0], tensors[2]], description)
    for tensor in tensors:
        client.call("hgTensorDestroy", tensor)
    with fails(Result.ERROR_INVALID_HANDLE):
        client.execute(context, 6, tensors, description)


def test_the_description_of_a_tensor_can_change(client: EngineClient) -> None:
    memory = ffi.new("hgMemDesc*", {"location": MemFlags.SYSTEM, "alignment": 4096})
    tensor = client.get("hgTensorCreate", ffi.NULL, memory, 0)
    with fails(Result.ERROR_INVALID_ARGUMENT, "no description yet"):
        client.get("hgTensorMap", tensor)
    client.call("hgTensorUpdateDesc", tensor, tensor_desc(np.zeros((2, 3), np.float32)))
    assert client.get("hgTensorGetSize", tensor) == 24
    assert client.get("hgTensorGetAlignedSize", tensor) == 4096
    assert int(ffi.cast("uintptr_t", client.get("hgTensorMap", tensor))) % 4096 == 0
    with fails(Result.ERROR_IN_USE):
        client.call("hgTensorUpdateDesc", tensor, tensor_desc(np.zeros(1, np.float32)))
    client.call("hgTensorUnmap", tensor)
    client.call("hgTensorUpdateDesc", tensor, tensor_desc(np.zeros((4000, 2), np.int16)))
    described = client.get("hgTensorGetDesc", tensor)
    assert (described.type, list(described.dims.d[0:2])) == (2, [4000, 2])
    with fails(Result.ERROR_INVALID_ARGUMENT, "12 bytes at .*, expected 16000"):
        client.call("hgTensorData", tensor, b"x" * 12, 12)
    with fails(Result.ERROR_INVALID_ARGUMENT, "is not mapped"):
        client.call("hgTensorUnmap", tensor)
    client.call("hgTensorDestroy", tensor)


@pytest.mark.parametrize(
    ("location", "alignment", "flags"), [(3, 0, 0), (0, 0, 0), (0, 0, 3), (MemFlags.HOST, 3, 0), (MemFlags.HOST, 0, 1)]
)
def test_invalid_tensor_options_are_rejected(client: EngineClient, location: int, alignment: int, flags: int) -> None:
    with fails(Result.ERROR_INVALID_ARGUMENT):
        client.get("hgTensorCreate", ffi.NULL, ffi.new("hgMemDesc*", (location, alignment)), flags)


@pytest.mark.parametrize("memory", [ffi.NULL, ffi.new("hgMemDesc*"), ffi.new("hgMemDesc*", (MemFlags.HOST, 64))])
def test_the_flags_of_a_tensor_state_its_memory(client: EngineClient, memory: Any) -> None:
    tensor = client.get("hgTensorCreate", tensor_desc(np.zeros((2, 3), np.float32)), memory, MemFlags.HOST)
    assert HANDLES.find(RuntimeTensor, int(ffi.cast("uintptr_t", tensor))).location is MemFlags.HOST
    assert client.get("hgTensorGetSize", tensor) == 24
    client.call("hgTensorDestroy", tensor)


@pytest.mark.parametrize("sizes", [(1 << 50,), (1 << 62, 1 << 62), ((1 << 63) - 1,) * 8])
@pytest.mark.parametrize("alignment", [0, 1 << 20, 1 << 63])
def test_tensors_of_impossible_sizes_are_out_of_memory(
    client: EngineClient, sizes: tuple[int, ...], alignment: int
) -> None:
    desc = ffi.new("hgTensorDesc*", {"type": 9, "dims": {"nbDims": len(sizes), "d": [*sizes]}})
    with fails(Result.ERROR_OUT_OF_MEMORY, r"a tensor needs \d+ bytes"):
        client.get("hgTensorCreate", desc, ffi.new("hgMemDesc*", (MemFlags.SYSTEM, alignment)), 0)
    tensor = client.tensor(np.zeros(3, np.int16))
    with fails(Result.ERROR_OUT_OF_MEMORY, r"a tensor needs \d+ bytes"):
        client.call("hgTensorUpdateDesc", tensor, desc)
    assert client.get("hgTensorGetSize", tensor) == 6
    client.call("hgTensorDestroy", tensor)


def test_an_engine_of_another_platform_can_be_created_but_not_run(
    client: EngineClient, engine_for_cuda: Engine
) -> None:
    handle = client.engine(engine_for_cuda.to_bytes())
    with fails(Result.ERROR_NOT_SUPPORTED, "the engine is for cuda, the cores are cpu devices"):
        client.context(handle)
    client.call("hgEngineDestroy", handle)


def test_an_engine_of_an_impossible_size_is_rejected(client: EngineClient, engine: Engine) -> None:
    with fails(Result.ERROR_INVALID_FILE, "the engine has 18446744073709551615 bytes, expected at most 4294967295"):
        client.get("hgEngineCreate", engine.to_bytes(), (1 << 64) - 1)


def test_no_memory_and_no_flags_are_rejected(client: EngineClient) -> None:
    with fails(Result.ERROR_INVALID_ARGUMENT, "memory is NULL and flags is 0"):
        client.get("hgTensorCreate", ffi.NULL, ffi.NULL, 0)


def test_handles_of_destroyed_objects_are_rejected(client: EngineClient, engine: Engine) -> None:
    handle = client.engine(engine.to_bytes())
    context = client.context(handle)
    with fails(Result.ERROR_CONTEXT_EXISTS):
        client.context(handle)
    with fails(Result.ERROR_IN_USE, "has a context"):
        client.call("hgEngineDestroy", handle)
    client.call("hgExecutionContextDestroy", context)
    with fails(Result.ERROR_INVALID_HANDLE):
        client.execute(context, 1, bindings_for_batch(1))
    with fails(Result.ERROR_INVALID_HANDLE):
        client.call("hgExecutionContextDestroy", context)
    client.call("hgEngineDestroy", handle)
    for kind in ("Engine", "ExecutionContext", "Tensor"):
        with fails(Result.ERROR_INVALID_HANDLE):
            client.call(f"hg{kind}Destroy", ffi.cast(f"hg{kind}", handle))


def test_objects_of_another_device_are_rejected(
    client: EngineClient, engine: Engine, engine_handle: Any, context: Any
) -> None:
    tensor = client.tensor(bindings_for_batch(1)[0])
    client.call("hgDeviceSetCurrent", 1)
    for call in (
        lambda: client.get("hgEngineGetNbBindings", engine_handle),
        lambda: client.execute(context, 1, bindings_for_batch(1)),
        lambda: client.get("hgTensorGetSize", tensor),
    ):
        with fails(Result.ERROR_WRONG_DEVICE, "of device 0, the current one is 1"):
            call()
    second_engine = client.engine(engine.to_bytes())
    second_context = client.context(second_engine)
    description = ffi.new("hgHostTensorDesc*", (MemFlags.HOST, 0))
    with fails(Result.ERROR_WRONG_DEVICE, "binding x is a tensor of device 0"):
        client.execute(second_context, 1, [tensor, tensor, tensor], description)
    client.call("hgExecutionContextDestroy", second_context)
    client.call("hgEngineDestroy", second_engine)
    client.call("hgDeviceSetCurrent", 0)
    client.call("hgTensorDestroy", tensor)


def test_a_context_takes_the_requested_cores(client: EngineClient, engine: Engine, engine_handle: Any) -> None:
    for policy, mask, free in ((MINIMUM, 0, 3), (MAXIMUM, 0, 0), (AS_MASK, 0b1010, 2)):
        context = client.context(engine_handle, policy, mask)
        assert client.get("hgDeviceGetAttribute", 0, FREE) == free
        bindings = bindings_for_batch(16)
        client.execute(context, 16, bindings)
        assert_outputs_match(engine, bindings)
        client.call("hgExecutionContextDestroy", context)
        assert client.get("hgDeviceGetAttribute", 0, FREE) == 4


@pytest.mark.parametrize(("policy", "mask"), [(AS_MASK, 0), (AS_MASK, 0x10), (MINIMUM, 1), (7, 0)])
def test_invalid_policies_and_core_masks_are_rejected(
    client: EngineClient, engine_handle: Any, policy: Any, mask: int
) -> None:
    with fails(Result.ERROR_INVALID_ARGUMENT):
        client.context(engine_handle, policy, mask)


def test_cores_are_not_taken_twice(client: EngineClient, engine: Engine, engine_handle: Any) -> None:
    second_engine = client.engine(replace(engine, manifest=replace(engine.manifest, group="another")).to_bytes())
    context = client.context(engine_handle, AS_MASK, 0b0110)
    with fails(Result.ERROR_CORES_UNAVAILABLE, "of cores 0xc only 0x8 are free"):
        client.context(second_engine, AS_MASK, 0b1100)
    second_context = client.context(second_engine, MAXIMUM)
    assert client.get("hgDeviceGetAttribute", 0, FREE) == 0
    with fails(Result.ERROR_CORES_UNAVAILABLE):
        client.get("hgDeviceRetain", 0, 1, DevicePriority.P0)
    for handle in (second_context, context):
        client.call("hgExecutionContextDestroy", handle)
    client.call("hgEngineDestroy", second_engine)


def test_contexts_stay_within_retained_cores(client: EngineClient, engine_handle: Any) -> None:
    mask = client.get("hgDeviceRetain", 0, 2, DevicePriority.P0)
    context = client.context(engine_handle, MAXIMUM)
    assert client.get("hgDeviceGetAttribute", 0, FREE) == 2
    with fails(Result.ERROR_IN_USE, "used by a context"):
        client.call("hgDeviceRelease", 0, mask)
    client.call("hgExecutionContextDestroy", context)
    assert client.get("hgDeviceGetAttribute", 0, RETAINED) == mask
    client.call("hgDeviceRelease", 0, mask)


def test_a_group_is_allocated_at_once(client: EngineClient, engine: Engine) -> None:
    first, second = (client.engine(linked.to_bytes()) for linked in link([engine, engine], cores=4))
    context = client.context(first, AS_MASK, 0b1000)
    assert client.get("hgDeviceGetAttribute", 0, FREE) == 2
    with fails(Result.ERROR_CORES_UNAVAILABLE, "allocated cores 0x1, not 0x2"):
        client.context(second, AS_MASK, 0b0010)
    second_context = client.context(second)
    assert client.get("hgDeviceGetAttribute", 0, FREE) == 2
    client.call("hgExecutionContextDestroy", context)
    assert client.get("hgDeviceGetAttribute", 0, FREE) == 2
    bindings = bindings_for_batch(5)
    client.execute(second_context, 5, bindings)
    assert_outputs_match(engine, bindings)
    client.call("hgExecutionContextDestroy", second_context)
    for handle in (first, second):
        client.call("hgEngineDestroy", handle)


def test_a_group_on_two_devices_takes_cores_of_both(client: EngineClient, engine: Engine) -> None:
    group = link([engine, engine], devices=2, cores=1)
    first = client.engine(group[0].to_bytes())
    context = client.context(first)
    assert [client.get("hgDeviceGetAttribute", device, FREE) for device in (0, 1)] == [3, 3]
    client.call("hgDeviceSetCurrent", 1)
    second = client.engine(group[1].to_bytes())
    second_context = client.context(second)
    assert [client.get("hgDeviceGetAttribute", device, FREE) for device in (0, 1)] == [3, 3]
    client.call("hgExecutionContextDestroy", second_context)
    client.call("hgEngineDestroy", second)
    client.call("hgDeviceSetCurrent", 0)
    client.call("hgExecutionContextDestroy", context)
    client.call("hgEngineDestroy", first)


def test_a_failed_allocation_takes_no_cores(client: EngineClient, engine: Engine) -> None:
    group = link([engine] * 5, cores=5)
    handle = client.engine(group[0].to_bytes())
    with fails(Result.ERROR_CORES_UNAVAILABLE, "needs 5 cores of device 0, 4 are free"):
        client.context(handle)
    assert client.get("hgDeviceGetAttribute", 0, FREE) == 4
    client.call("hgEngineDestroy", handle)


def test_creating_a_context_fails_if_the_engine_exceeds_local_memory(client: EngineClient, engine: Engine) -> None:
    control = replace(engine.manifest.control, memory=1 << 30)
    handle = client.engine(replace(engine, manifest=replace(engine.manifest, scheme=(control,))).to_bytes())
    with fails(Result.ERROR_OUT_OF_MEMORY, "needs 1073741824 bytes of local memory, a core has 268435456"):
        client.context(handle)
    client.call("hgEngineDestroy", handle)


def test_a_call_fails_if_its_context_was_destroyed_before_its_turn(client: EngineClient, engine_handle: Any) -> None:
    """Simulate a call that looked up the context before another thread destroyed it."""
    context = client.context(engine_handle)
    execution = HANDLES.find(ExecutionContext, int(ffi.cast("uintptr_t", context))).execution
    client.call("hgExecutionContextDestroy", context)
    with pytest.raises(InterfaceError, match="destroyed"):
        execution.execute(1, bindings_for_batch(1)[:1], bindings_for_batch(1)[1:])


def test_threads_share_a_context(client: EngineClient, engine: Engine, context: Any) -> None:
    batches = [bindings_for_batch(size) for size in (3, 16, 5, 9)]

    def execute(bindings: list[Any]) -> None:
        for _ in range(5):
            client.execute(context, len(bindings[0]), bindings)

    with ThreadPoolExecutor(len(batches)) as pool:
        list(pool.map(execute, batches))
    for bindings in batches:
        assert_outputs_match(engine, bindings)
