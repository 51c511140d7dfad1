"""The portability layer: sessions with the kernel's driver, the devices that they open, memory, and tasks.

Handles arrive as the objects that they represent, and enumerators as members. Structures are pointers of cffi.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, final

from diopi_engine.proto.nvdla import Error, Heap
from diopi_engine.runtime.devices import DeviceDescription, devices
from diopi_engine.runtime.errors import InterfaceError
from diopi_engine.runtime.handles import Handles
from diopi_engine.runtime.nvdla.ffi import bad_parameter, call, ffi, to_integer
from diopi_engine.runtime.nvdla.memory import HeapSpace, find_heap
from diopi_engine.runtime.nvdla.program import Program, binding_bytes
from diopi_engine.sizes import Array

HANDLES = Handles(Error.Error_BadValue)


@final
@dataclass(eq=False)
class KernelSession:
    """A session with the driver in the kernel, and the devices that it has opened."""

    devices: list[OpenDevice] = field(default_factory=list)


@final
@dataclass(eq=False)
class OpenDevice:
    """A device that a session opened, and the memory allocated for it."""

    device: DeviceDescription
    memories: list[DeviceMemory] = field(default_factory=list)


@final
class DeviceMemory:
    """Memory of a device, which may contain a loadable."""

    def __init__(self, space: HeapSpace, size: int) -> None:
        self.bytes: Array = space.allocate(size)
        self._space = space
        self._program: Program | None = None
        self._reading = threading.Lock()

    @property
    def address(self) -> int:
        """The address of the memory."""
        return int(self.bytes.ctypes.data)

    def program(self, size: int, device: DeviceDescription) -> Program:
        """Return the loadable at the start of the memory as a Program, which the first call creates."""
        with self._reading:
            if self._program is None:
                self._program = Program(self.bytes[:size].tobytes(), device)
            return self._program

    def mark_free(self) -> None:
        """Mark the memory as free; must be called with the lock of the handles."""
        self._space.free(self.bytes)

    def close(self) -> None:
        """Wait for the loadable in the memory, if it runs, and release it."""
        if self._program is not None:
            self._program.close()


@call
def NvDlaInitialize() -> int:
    return HANDLES.enter(KernelSession())


@call
def NvDlaDestroy(session: KernelSession) -> None:
    with HANDLES.lock:
        if session.devices:
            raise InterfaceError(Error.Error_Busy, f"the session has {len(session.devices)} open devices")
        HANDLES.remove(session)


@call
def NvDlaOpen(session: KernelSession, number: int) -> int:
    if number >= len(devices()):
        raise InterfaceError(Error.Error_DeviceNotFound, f"device {number}, expected one of 0 to {len(devices()) - 1}")
    opened = OpenDevice(devices()[number])
    with HANDLES.lock:
        session.devices.append(opened)
        return HANDLES.enter(opened)


@call
def NvDlaClose(session: KernelSession, opened: OpenDevice) -> None:
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
    """Raise NvError_BadValue unless the session opened the device."""
    if opened not in session.devices:
        raise InterfaceError(Error.Error_BadValue, "another session opened the device")


@call
def NvDlaAllocMem(session: KernelSession, opened: OpenDevice, size: int, heap: Heap) -> tuple[int, Any]:
    if not size:
        raise bad_parameter("0 bytes are to be allocated, expected 1 or more")
    with HANDLES.lock:
        _check_session(session, opened)
        memory = DeviceMemory(find_heap(opened.device.number, heap), size)
        opened.memories.append(memory)
        return HANDLES.enter(memory), ffi.cast("void*", memory.address)


@call
def NvDlaFreeMem(session: KernelSession, opened: OpenDevice, memory: DeviceMemory, address: Any, size: int) -> None:
    with HANDLES.lock:
        _check_session(session, opened)
        _check_device(opened, memory)
        if (to_integer(address), size) != (memory.address, len(memory.bytes)):
            allocated = f"{len(memory.bytes)} bytes at {memory.address:#x}"
            raise bad_parameter(f"{size} bytes at {to_integer(address):#x} are freed, {allocated} were allocated")
        opened.memories.remove(memory)
        HANDLES.remove(memory)
        memory.mark_free()
    memory.close()


def _check_device(opened: OpenDevice, memory: DeviceMemory) -> None:
    """Raise NvError_BadValue unless the memory was allocated for the open device."""
    if memory not in opened.memories:
        raise InterfaceError(Error.Error_BadValue, "the memory was allocated for another device, or by another session")


@call
def NvDlaSubmit(session: KernelSession, opened: OpenDevice, tasks: Any, count: int) -> None:
    _check_session(session, opened)
    if not tasks or not count:
        raise bad_parameter(f"{count} tasks at {tasks}, expected 1 or more")
    jobs = [_prepare_task(opened, tasks[n]) for n in range(count)]
    for program, batch, memories in jobs:
        program.run(batch, memories)


def _prepare_task(opened: OpenDevice, task: Any) -> tuple[Program, int, list[Array]]:
    """Return the program, the batch size, and the inputs and outputs of a task."""
    if not task.addressList or not task.numAddresses:
        raise bad_parameter(
            f"a task has {task.numAddresses} memories at {task.addressList}, expected those of a loadable"
        )
    described = [task.addressList[n] for n in range(task.numAddresses)]
    memories = [HANDLES.find(DeviceMemory, to_integer(descriptor.handle)) for descriptor in described]
    for memory, descriptor in zip(memories, described, strict=True):
        _check_device(opened, memory)
        if descriptor.size > len(memory.bytes):
            raise bad_parameter(f"a task uses {descriptor.size} bytes of memory that has {len(memory.bytes)}")
    program = memories[0].program(described[0].size, opened.device)
    _check_task(program, task.batchSize, memories, [descriptor.size for descriptor in described])
    return program, task.batchSize, [memory.bytes for memory in memories[1:]]


def _check_task(program: Program, batch: int, memories: Sequence[DeviceMemory], sizes: Sequence[int]) -> None:
    """Raise NvError_BadParameter if a program can't run a batch with these memories; the first one contains it."""
    manifest = program.manifest
    if not 1 <= batch <= manifest.max_batch:
        raise bad_parameter(f"the batch is {batch}, expected 1 to {manifest.max_batch}")
    if len(memories) != 1 + len(manifest.bindings):
        raise bad_parameter(f"a task has {len(memories)} memories, expected {1 + len(manifest.bindings)}")
    for binding, memory, size in zip(manifest.bindings, memories[1:], sizes[1:], strict=True):
        needed = binding_bytes(binding, batch)
        if size < needed:
            raise bad_parameter(f"{binding.name} has {size} bytes, a batch of {batch} needs {needed}")
        if not binding.is_input and sum(memory is candidate for candidate in memories) > 1:
            raise bad_parameter(f"output {binding.name} is in memory that is used for something else")
