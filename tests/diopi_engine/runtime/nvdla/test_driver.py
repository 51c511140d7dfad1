"""The driver's use of the portability layer, and its messages about failed calls."""

import mmap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
import pytest

from diopi_engine import Engine
from diopi_engine.conformance.client import FailedCallError
from diopi_engine.conformance.nvdla.client import NvdlaClient, RuntimeClient, ffi
from diopi_engine.proto.hgrt import Result
from diopi_engine.proto.nvdla import Error, Heap
from diopi_engine.runtime.errors import InterfaceError
from diopi_engine.runtime.execution import Execution
from diopi_engine.runtime.nvdla.loadable import read_loadable
from diopi_engine.runtime.nvdla.memory import HeapSpace, find_heap
from diopi_engine.runtime.nvdla.portability import PortabilityLayer


@pytest.fixture
def client(nvdla_library: Path) -> NvdlaClient:
    """Return a client of the reference driver."""
    return NvdlaClient(nvdla_library)


@pytest.fixture
def runtime(client: NvdlaClient) -> Iterator[RuntimeClient]:
    """Create a runtime, and destroy it after the test."""
    runtime = client.create_runtime()
    yield runtime
    runtime.destroy()


def bind(runtime: RuntimeClient, engine: Engine) -> tuple[Any, Any]:
    """Load an engine with the tensors x, y and z, bind memory to them, and return the addresses of x and y."""
    runtime.load(engine.to_bytes())
    memories = [
        runtime.allocate(tensor.bufferSize)
        for kind in ("Input", "Output")
        for tensor in runtime.tensor_descriptions(kind)
    ]
    for (handle, _), name, number in zip(memories, ("Input", "Output", "Output"), (0, 0, 1), strict=True):
        runtime.call(f"bind{name}Tensor", number, handle)
    return memories[0][1], memories[1][1]


def test_the_driver_uses_the_device_only_through_the_layer(
    client: NvdlaClient, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    call = PortabilityLayer.call
    monkeypatch.setattr(
        PortabilityLayer, "call", lambda self, name, *args: (calls.append(name), call(self, name, *args))[1]
    )
    runtime = client.create_runtime()
    bind(runtime, engine)
    runtime.call("submit")
    runtime.call("unload", 0)
    runtime.destroy()
    loaded = ["NvDlaInitialize", "NvDlaOpen", "NvDlaAllocMem"]
    assert calls == [*loaded, *["NvDlaAllocMem"] * 3, "NvDlaSubmit", "NvDlaFreeMem", "NvDlaClose", "NvDlaDestroy"]


def test_a_network_computes_what_its_engine_does(runtime: RuntimeClient, engine: Engine) -> None:
    x, y = bind(runtime, engine)
    values = np.array([[1, -2, 3, 0.5]], np.float32)
    ffi.memmove(x, values, values.nbytes)
    runtime.call("submit")
    np.testing.assert_allclose(np.frombuffer(ffi.buffer(y, 12), np.float32), engine(values)[0][0], rtol=1e-6)


@pytest.mark.parametrize(
    ("change", "result"),
    [
        ({"core_mask": 1 << 20}, Error.Error_NotSupported),
        ({"memory": 1 << 30}, Error.Error_InsufficientMemory),
    ],
    ids=str,
)
def test_networks_that_need_more_than_the_device_has_are_loaded_and_not_run(
    runtime: RuntimeClient, engine: Engine, change: dict[str, Any], result: Error
) -> None:
    control = replace(engine.manifest.control, **change)
    bind(runtime, replace(engine, manifest=replace(engine.manifest, scheme=(control,))))
    with pytest.raises(FailedCallError) as raised:
        runtime.call("submit")
    assert raised.value.result is result


@pytest.mark.parametrize(
    ("raised", "result"),
    [
        (InterfaceError(Result.ERROR_NOT_SUPPORTED, "that can't be"), Error.Error_NotSupported),
        (InterfaceError(Result.ERROR_INVALID_HANDLE, "it is gone"), Error.Error_BadValue),
        (MemoryError(), Error.Error_InsufficientMemory),
        (ValueError("whatever"), Error.Error_Internal),
    ],
    ids=lambda value: type(value).__name__,
)
def test_errors_of_an_execution_become_results(
    runtime: RuntimeClient, engine: Engine, raised: Exception, result: Error, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise raised

    bind(runtime, engine)
    monkeypatch.setattr(Execution, "execute", fail)
    with pytest.raises(FailedCallError) as found:
        runtime.call("submit")
    assert found.value.result is result


def test_failures_are_printed_for_debugging(
    client: NvdlaClient,
    runtime: RuntimeClient,
    engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("DIOPI_ENGINE_DEBUG", "1")
    bind(runtime, engine)
    tensor = ffi.new("NvDlaTensor*", runtime.get("getInputTensorDesc", 0))
    tensor.dims[1] = 9
    failing_calls = {
        "load": (ffi.from_buffer("NvU8[]", b"nothing"), 0),
        "getInputTensorDesc": (7, tensor),
        "setInputTensorDesc": (0, tensor),
        "bindInputTensor": (0, ffi.cast("void*", 8)),
        "unload": (1,),
    }
    for name, arguments in failing_calls.items():
        with pytest.raises(FailedCallError):
            runtime.call(name, *arguments)
    printed = capfd.readouterr().err.splitlines()
    assert [line.partition(": ")[0] for line in printed] == list(failing_calls)
    assert all(line.partition(": ")[2] for line in printed)
    client.call("NvDlaDestroy", ffi.cast("void*", 8))
    assert "NvDlaDestroy: handle 0x8" in capfd.readouterr().err
    monkeypatch.delenv("DIOPI_ENGINE_DEBUG")
    client.call("NvDlaDestroy", ffi.cast("void*", 8))
    assert capfd.readouterr().err == ""


def test_a_session_with_an_open_device_does_not_end(client: NvdlaClient) -> None:
    device = client.open()
    client.call("NvDlaDestroy", device.session)
    device.call("NvDlaFreeMem", *device.allocate(100, Heap.DRAM), 100)
    device.close()


def test_destroying_a_runtime_twice_is_harmless(client: NvdlaClient) -> None:
    runtime = client.create_runtime()
    runtime.destroy()
    runtime.destroy()


def test_heaps_have_the_sizes_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    find_heap.cache_clear()
    monkeypatch.setenv("DIOPI_ENGINE_SRAM", "3")
    assert find_heap(0, Heap.SRAM).limit == 3 << 20
    assert find_heap(0, Heap.DRAM).limit == 4096 << 20
    monkeypatch.setenv("DIOPI_ENGINE_SRAM", "much")
    with pytest.raises(ValueError, match="DIOPI_ENGINE_SRAM"):
        find_heap(1, Heap.SRAM)
    find_heap.cache_clear()


def test_allocation_fails_if_the_system_has_no_memory() -> None:
    space = HeapSpace("a heap", 1 << 62)
    with pytest.raises(InterfaceError, match="bytes") as raised:
        space.allocate(1 << 61)
    assert (raised.value.result, space.used) == (Error.Error_InsufficientMemory, 0)


def test_a_loadable_with_sizes_beyond_memory_is_rejected(engine: Engine) -> None:
    data = bytearray(engine.to_bytes())
    buffer: Any = ffi.from_buffer(data)
    assert read_loadable(int(ffi.cast("uintptr_t", buffer))) == bytes(data)
    data[21] = 0x7F  # the upper byte of the first member's size
    with pytest.raises(InterfaceError, match=r"21[0-9]{8} bytes") as raised:
        read_loadable(int(ffi.cast("uintptr_t", buffer)))
    assert raised.value.result is Error.Error_InvalidFile


def flatbuffer_of(identifier: bytes | None) -> bytearray:
    """Return a FlatBuffer with a table of a number, a text and a list, as NVDLA's own compiler writes loadables."""
    builder = flatbuffers.Builder(0)
    name = builder.CreateString("task_0")
    data = builder.CreateByteVector(bytes(range(200)))
    builder.StartObject(3)
    builder.PrependUint32Slot(0, 7, 0)
    builder.PrependUOffsetTRelativeSlot(1, name, 0)
    builder.PrependUOffsetTRelativeSlot(2, data, 0)
    builder.Finish(builder.EndObject(), file_identifier=identifier)
    return bytearray(builder.Output())


@pytest.mark.parametrize(
    ("identifier", "message"),
    [
        (b"NVDA", r"is a FlatBuffer with the identifier 'NVDA'.*expected an engine"),
        (None, r"is a FlatBuffer, the format of the NVDLA compiler's.*expected an engine"),
    ],
    ids=str,
)
def test_a_loadable_of_the_nvdla_compiler_is_named_and_rejected(identifier: bytes | None, message: str) -> None:
    flatbuffer: Any = ffi.from_buffer(flatbuffer_of(identifier))
    with pytest.raises(InterfaceError, match=message) as raised:
        read_loadable(int(ffi.cast("uintptr_t", flatbuffer)))
    assert raised.value.result is Error.Error_InvalidFile


@pytest.mark.parametrize(
    "start", [bytes(64), b"\x14" + bytes(63), b"\x08\0\0\0ABCD\x04\0\0\0" + bytes(52)], ids=["0", "20", "8"]
)
def test_other_bytes_are_not_called_a_flatbuffer(start: bytes) -> None:
    memory: Any = ffi.from_buffer(bytearray(start))
    with pytest.raises(InterfaceError, match="there is no archive"):
        read_loadable(int(ffi.cast("uintptr_t", memory)))


def test_a_loadable_at_the_end_of_memory_is_read(engine: Engine) -> None:
    data = engine.to_bytes()
    pages = -(-len(data) // mmap.PAGESIZE)
    room = mmap.mmap(-1, pages * mmap.PAGESIZE)
    room[-len(data) :] = data
    start = np.frombuffer(room, np.uint8).ctypes.data + len(room) - len(data)
    assert read_loadable(start) == data
