"""NVDLA's portability layer: functions for sessions, open devices, memory, and tasks.

In NVDLA, a session is a connection to the driver in the kernel. Here, the devices are emulated in this process, and no
kernel is involved.

Before `ffi` calls a function of this module, it replaces each handle by its object, and each number of an enumeration
by its member. A structure is passed as a cffi pointer. A function reports an error by raising InterfaceError with an
error code (`nvdla.Error`).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from diopi_engine.proto.nvdla import Error, Heap
from diopi_engine.runtime.devices import DeviceDescription, devices
from diopi_engine.runtime.errors import InterfaceError
from diopi_engine.runtime.handles import Handles
from diopi_engine.runtime.nvdla.ffi import bad_parameter, call, ffi, to_integer
from diopi_engine.runtime.nvdla.memory import HeapSpace, find_heap
from diopi_engine.runtime.nvdla.program import Program, binding_bytes
from diopi_engine.sizes import Array

HANDLES = Handles(Error.Error_BadValue)
"""The handles of this process. A call with an invalid handle returns `Error_BadValue`."""


@final
@dataclass(eq=False)
class KernelSession:
    """A session and the devices that it has opened."""

    devices: list[OpenDevice] = field(default_factory=list)


@final
@dataclass(eq=False)
class OpenDevice:
    """A device that a session has opened, and the memories that the session has allocated for it."""

    device: DeviceDescription
    memories: list[DeviceMemory] = field(default_factory=list)


@final
class DeviceMemory:
    """An allocation in the memory of a device; the program may write a loadable (a compiled network) into it."""

    def __init__(self, space: HeapSpace, size: int) -> None:
        """Allocate `size` bytes of a heap; raise InterfaceError if the heap is full."""
        self.bytes: Array = space.allocate(size)
        self._space = space
        self._program: Program | None = None
        self._program_lock = threading.Lock()

    @property
    def address(self) -> int:
        """The address of the memory."""
        return int(self.bytes.ctypes.data)

    def program(self, size: int, device: DeviceDescription) -> Program:
        """Return a Program with the loadable in the first `size` bytes, prepared for a device.

        The first call creates the Program. Later calls return the same Program, even if the memory or the arguments
        have changed.
        """
        with self._program_lock:
            if self._program is None:
                self._program = Program(self.bytes[:size].tobytes(), device)
            return self._program

    def mark_free(self) -> None:
        """Give the bytes back to the heap; the caller holds `HANDLES.lock`.

        A running task can still use the bytes, because the process keeps them while an array refers to them.
        """
        self._space.free(self.bytes)

    def close(self) -> None:
        """Release the Program, if there is one, after its running tasks have ended."""
        with self._program_lock:
            if self._program is not None:
                self._program.close()


@call
def NvDlaInitialize() -> int:
    """Return the handle of a new session."""
    return HANDLES.enter(KernelSession())


@call
def NvDlaDestroy(session: KernelSession) -> None:
    """End a session that has no open devices."""
    with HANDLES.lock:
        if session.devices:
            raise InterfaceError(Error.Error_Busy, f"the session has {len(session.devices)} open devices")
        HANDLES.remove(session)


@call
def NvDlaOpen(session: KernelSession, number: int) -> int:
    """Open the device with this number, and return a handle of the opened device."""
    if number >= len(devices()):
        raise InterfaceError(Error.Error_DeviceNotFound, f"device {number}, expected one of 0 to {len(devices()) - 1}")
    opened = OpenDevice(devices()[number])
    with HANDLES.lock:
        session.devices.append(opened)
        return HANDLES.enter(opened)


@call
def NvDlaClose(session: KernelSession, opened: OpenDevice) -> None:
    """Close a device and free its memory."""
    with HANDLES.lock:
        _check_session(session, opened)
        for memory in opened.memories:
            memory.mark_free()
            HANDLES.remove(memory)
        session.devices.remove(opened)
        HANDLES.remove(opened)
    for memory in opened.memories:
        memory.close()


def _check_session(session: KernelSession, opened: OpenDevice) -> None:
    """Raise InterfaceError (`Error_BadValue`) unless the session opened the device."""
    if opened not in session.devices:
        raise InterfaceError(Error.Error_BadValue, "another session opened the device")


@call
def NvDlaAllocMem(session: KernelSession, opened: OpenDevice, size: int, heap: Heap) -> tuple[int, Any]:
    """Return the handle and the address of newly allocated memory of a heap."""
    if not size:
        raise bad_parameter("0 bytes are to be allocated, expected 1 or more")
    with HANDLES.lock:
        _check_session(session, opened)
        memory = DeviceMemory(find_heap(opened.device.number, heap), size)
        opened.memories.append(memory)
        return HANDLES.enter(memory), ffi.cast("void*", memory.address)


@call
def NvDlaFreeMem(session: KernelSession, opened: OpenDevice, memory: DeviceMemory, address: Any, size: int) -> None:
    """Free memory; `address` and `size` must be the address and the size of its allocation."""
    with HANDLES.lock:
        _check_session(session, opened)
        _check_device(opened, memory)
        if (to_integer(address), size) != (memory.address, len(memory.bytes)):
            allocated = f"{len(memory.bytes)} bytes at {memory.address:#x}"
            raise bad_parameter(f"can't free {size} bytes at {to_integer(address):#x}: the allocation has {allocated}")
        opened.memories.remove(memory)
        HANDLES.remove(memory)
        memory.mark_free()
    memory.close()


def _check_device(opened: OpenDevice, memory: DeviceMemory) -> None:
    """Raise InterfaceError (`Error_BadValue`) unless the memory was allocated for the open device."""
    if memory not in opened.memories:
        raise InterfaceError(Error.Error_BadValue, "the memory was allocated for another device, or by another session")


@call
def NvDlaSubmit(session: KernelSession, opened: OpenDevice, tasks: Any, count: int) -> None:
    """Check all of the `count` tasks in an array of NvDlaTask, and run them in order."""
    _check_session(session, opened)
    if not tasks or not count:
        raise bad_parameter(f"{count} tasks at {tasks}, expected 1 or more")
    run_tasks(opened, [_read_task(tasks[n]) for n in range(count)])


@final
@dataclass(frozen=True, kw_only=True)
class TaskMemory:
    """The part of a memory that a task uses for its loadable, or for an input or output.

    Attributes:
        handle: the handle of the memory.
        offset: the number of bytes before the part.
        size: the number of bytes in the part; None for all bytes after the offset.
    """

    handle: Any
    offset: int = 0
    size: int | None = None


@final
@dataclass(frozen=True)
class DeviceTask:
    """A task. The published and the released interface define NvDlaTask differently, and both convert it to this class.

    Attributes:
        batch: the number of samples in the batch.
        memories: the memory of the loadable, followed by those of the loadable's inputs and then of its outputs.
    """

    batch: int
    memories: Sequence[TaskMemory]


def _read_task(task: Any) -> DeviceTask:
    """Return an NvDlaTask as a DeviceTask; raise InterfaceError (`Error_BadParameter`) if it has no memories."""
    if not task.addressList or not task.numAddresses:
        raise bad_parameter(
            f"a task has {task.numAddresses} memories at {task.addressList}, expected those of a loadable"
        )
    described = [task.addressList[n] for n in range(task.numAddresses)]
    return DeviceTask(task.batchSize, [TaskMemory(handle=memory.handle, size=memory.size) for memory in described])


def run_tasks(opened: OpenDevice, tasks: Sequence[DeviceTask]) -> None:
    """Check all tasks and run them in order; raise InterfaceError, before any task runs, if a task is invalid."""
    jobs = [_prepare_task(opened, task) for task in tasks]
    for program, batch, arrays in jobs:
        program.run(batch, arrays)


def find_array(opened: OpenDevice, part: TaskMemory) -> tuple[DeviceMemory, Array]:
    """Return the memory of a part, and the bytes of the part; raise InterfaceError if the part is invalid."""
    memory = HANDLES.find(DeviceMemory, to_integer(part.handle))
    _check_device(opened, memory)
    available = len(memory.bytes) - part.offset
    size = available if part.size is None else part.size
    if not 0 <= size <= available:
        location = f" at offset {part.offset}" if part.offset else ""
        raise bad_parameter(f"a task uses {size} bytes{location} of memory that has {len(memory.bytes)}")
    return memory, memory.bytes[part.offset : part.offset + size]


def _prepare_task(opened: OpenDevice, task: DeviceTask) -> tuple[Program, int, list[Array]]:
    """Check a task and return its program, batch size, inputs and outputs; raise InterfaceError if it is invalid."""
    memories = [find_array(opened, part) for part in task.memories]
    memory, arrays = memories[0][0], [array for _, array in memories]
    program = memory.program(len(arrays[0]), opened.device)
    _check_task(program, task.batch, arrays)
    return program, task.batch, arrays[1:]


def _check_task(program: Program, batch: int, arrays: Sequence[Array]) -> None:
    """Check whether a program can run with these arguments.

    Args:
        program: the program.
        batch: the number of samples in the batch.
        arrays: the bytes of the loadable, and of each input and output of the program. An output must not overlap any
            other array.

    Raises:
        bad_parameter: if the number of samples, the number of arrays or a size is wrong, or if an output overlaps.
    """
    manifest = program.manifest
    if not 1 <= batch <= manifest.max_batch:
        raise bad_parameter(f"the batch is {batch}, expected 1 to {manifest.max_batch}")
    if len(arrays) != 1 + len(manifest.bindings):
        raise bad_parameter(f"a task has {len(arrays)} memories, expected {1 + len(manifest.bindings)}")
    used_arrays = [arrays[0]]
    for binding, array in zip(manifest.bindings, arrays[1:], strict=True):
        required_bytes = binding_bytes(binding, batch)
        if len(array) < required_bytes:
            raise bad_parameter(f"{binding.name} has {len(array)} bytes, a batch of {batch} needs {required_bytes}")
        used_arrays.append(array[:required_bytes])
    for binding, output in zip(manifest.bindings, used_arrays[1:], strict=True):
        overlaps = [np.may_share_memory(output, array) for array in used_arrays if array is not output]
        if not binding.is_input and any(overlaps):
            raise bad_parameter(f"output {binding.name} overlaps the loadable, an input or another output")
