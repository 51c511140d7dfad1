"""The functions and methods of the released interface; each takes its inputs and returns its outputs.

Most of them are those of the published interface. The others convert structures, or do what only the released
interface has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from diopi_engine.container import find_archive_size
from diopi_engine.errors import EngineFileError
from diopi_engine.manifest import Binding
from diopi_engine.proto.nvdla import Error
from diopi_engine.proto.nvdla_released import MAX_ADDRESSES
from diopi_engine.runtime.errors import InterfaceError
from diopi_engine.runtime.nvdla import driver, kernel
from diopi_engine.runtime.nvdla.driver import LoadedNetwork, NetworkRuntime, find_binding
from diopi_engine.runtime.nvdla.ffi import CALLS as DRIVER_CALLS
from diopi_engine.runtime.nvdla.ffi import bad_parameter
from diopi_engine.runtime.nvdla.kernel import HANDLES, DeviceTask, KernelSession, OpenDevice, TaskMemory
from diopi_engine.runtime.nvdla.released.layer import BATCH_BYTES
from diopi_engine.runtime.nvdla.released.tensors import released_type, requested_batch, tensor_fields
from diopi_engine.sizes import Array

CALLS: dict[str, Callable[..., Any]] = dict(DRIVER_CALLS)
"""All functions and methods by name."""


def call(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function or method unchanged, after registering it in place of that of the published interface."""
    CALLS[function.__name__] = function
    return function


@call
def initEMU(runtime: NetworkRuntime) -> None:
    """Succeed: the devices execute all layers themselves."""


@call
def stopEMU(runtime: NetworkRuntime) -> None:
    """Do nothing, as no emulator runs."""


@call
def unload(runtime: NetworkRuntime) -> None:
    """Unload the network and free the memories that were bound to its tensors."""
    bound = {id(memory): memory for memory in runtime.loaded.bound.values()}
    driver.unload(runtime, runtime.loaded.instance)
    for memory in bound.values():
        driver.freeSystemMemory(runtime, memory.handle, memory.size)


@call
def getNetworkDataType(runtime: NetworkRuntime) -> int:
    """Return the released interface's number of the first input's element type; raise InterfaceError without inputs."""
    inputs = runtime.loaded.manifest.inputs
    if not inputs:
        raise InterfaceError(Error.Error_NotSupported, "the network has no input")
    return released_type(inputs[0])


@call
def getInputTensorDesc(runtime: NetworkRuntime, number: int) -> Any:
    """Return the fields of the NvDlaTensor that describes an input of the loaded network."""
    return _describe_tensor(runtime.loaded, runtime.loaded.manifest.inputs, number)


@call
def getOutputTensorDesc(runtime: NetworkRuntime, number: int) -> Any:
    """Return the fields of the NvDlaTensor that describes an output of the loaded network."""
    return _describe_tensor(runtime.loaded, runtime.loaded.manifest.outputs, number)


def _describe_tensor(loaded: LoadedNetwork, bindings: Sequence[Binding], number: int) -> Any:
    """Return the fields of the NvDlaTensor that describes an input or output of the loaded network."""
    return tensor_fields(find_binding(bindings, number), loaded.batch)


@call
def setInputTensorDesc(runtime: NetworkRuntime, number: int, tensor: Any) -> None:
    """Set the batch size that the NvDlaTensor of an input requests."""
    _set_description(runtime.loaded, find_binding(runtime.loaded.manifest.inputs, number), tensor)


@call
def setOutputTensorDesc(runtime: NetworkRuntime, number: int, tensor: Any) -> None:
    """Set the batch size that the NvDlaTensor of an output requests."""
    _set_description(runtime.loaded, find_binding(runtime.loaded.manifest.outputs, number), tensor)


def _set_description(loaded: LoadedNetwork, binding: Binding, tensor: Any) -> None:
    """Set the batch size that a modified NvDlaTensor requests; raise an error if bound memory is too small."""
    if not tensor:
        raise bad_parameter("tensor is NULL")
    loaded.set_batch(requested_batch(tensor, binding, loaded.batch, loaded.manifest.max_batch))


@call
def NvDlaClose(opened: OpenDevice) -> None:
    """Close a device in the session that opened it."""
    session = next(session for session in HANDLES.all(KernelSession) if opened in session.devices)
    kernel.NvDlaClose(session, opened)


@call
def NvDlaSubmit(session: KernelSession, opened: OpenDevice, tasks: Any, count: int) -> None:
    """Run `count` tasks of an array of NvDlaTask on a device, one after the other."""
    if opened not in session.devices:
        raise InterfaceError(Error.Error_BadValue, "another session opened the device")
    if not tasks or not count:
        raise bad_parameter(f"{count} tasks at {tasks}, expected 1 or more")
    kernel.run_tasks(opened, [_read_task(opened, tasks[n]) for n in range(count)])


def _read_task(opened: OpenDevice, task: Any) -> DeviceTask:
    """Return an NvDlaTask as a DeviceTask; raise InterfaceError if its memories are invalid."""
    if not 2 <= task.num_addresses <= MAX_ADDRESSES:
        raise bad_parameter(f"a task has {task.num_addresses} memories, expected 2 to {MAX_ADDRESSES}")
    loadable, batch, *tensors = (
        TaskMemory(handle=memory.handle, offset=memory.offset) for memory in task.address_list[0 : task.num_addresses]
    )
    _, code = kernel.find_array(opened, loadable)
    _, size = kernel.find_array(opened, batch)
    if len(size) < BATCH_BYTES:
        raise bad_parameter(f"the memory of the batch size has {len(size)} bytes, expected {BATCH_BYTES}")
    if loadable.offset:
        raise bad_parameter(f"the loadable is at offset {loadable.offset} of its memory, expected 0")
    sized = TaskMemory(handle=loadable.handle, size=_loadable_bytes(code))
    return DeviceTask(int(size[:BATCH_BYTES].view("uint32")[0]), [sized, *tensors])


def _loadable_bytes(memory: Array) -> int:
    """Return the size of the loadable at the start of a memory, or of the memory if it contains no loadable."""

    def read(offset: int, size: int) -> bytes:
        """Return bytes of the memory; raise EngineFileError behind its end."""
        data = memory[offset : offset + size].tobytes()
        if len(data) < size:
            raise EngineFileError(f"there is no memory {offset + len(data)} bytes behind its start")
        return data

    with suppress(EngineFileError):
        return min(find_archive_size(read), len(memory))
    return len(memory)
