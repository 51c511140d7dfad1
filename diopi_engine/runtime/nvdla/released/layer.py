"""Calls to the portability layer of a library with the released interface."""

from __future__ import annotations

from typing import Any, final

from diopi_engine.proto.nvdla import Error
from diopi_engine.proto.nvdla_released import MAX_ADDRESSES, PORTABILITY, DriverError, ReleasedHeap
from diopi_engine.runtime.errors import InterfaceError
from diopi_engine.runtime.nvdla.ffi import bad_parameter
from diopi_engine.runtime.nvdla.portability import pointer_type
from diopi_engine.runtime.nvdla.released.ffi import DRIVER_ERRORS, ffi

BATCH_BYTES = 4
"""The size of the memory of a task that contains the size of its batch."""


@final
class ReleasedLayer:
    """The `NvDla…` functions of a loaded library; `functions` lists their addresses in the order of `PORTABILITY`."""

    def __init__(self, functions: Any) -> None:
        self._functions = {
            prototype.name: ffi.cast(pointer_type(prototype), function)
            for prototype, function in zip(PORTABILITY, functions, strict=True)
        }

    def _call(self, name: str, *arguments: Any) -> None:
        """Call a function; raise InterfaceError with the corresponding error of the driver if it fails."""
        result = self._functions[name](*arguments)
        if result is not None and result != DriverError.Success:
            raise InterfaceError(DRIVER_ERRORS.get(result, Error.Error_Internal), f"{name} returned {result:#x}")

    def initialize(self) -> Any:
        """Return a new session."""
        session = ffi.new("void**")
        self._call("NvDlaInitialize", session)
        return session[0]

    def destroy(self, session: Any) -> None:
        """End a session."""
        self._call("NvDlaDestroy", session)

    def open(self, session: Any, instance: int) -> Any:
        """Open the device `instance`, and return its handle."""
        device = ffi.new("void**")
        self._call("NvDlaOpen", session, instance, device)
        return device[0]

    def close(self, session: Any, device: Any) -> None:
        """Close a device."""
        self._call("NvDlaClose", device)

    def allocate(self, session: Any, device: Any, size: int) -> tuple[Any, Any]:
        """Return the handle for the device and the address for the host of `size` bytes of new system memory.

        Raises:
            InterfaceError: The size does not fit in 32 bits.
        """
        if size > 0xFFFFFFFF:
            raise InterfaceError(
                Error.Error_InsufficientMemory, f"{size} bytes were requested, expected at most 4294967295 per call"
            )
        handle, address = ffi.new("void**"), ffi.new("void**")
        self._call("NvDlaAllocMem", session, device, handle, address, size, ReleasedHeap.System)
        return handle[0], address[0]

    def free(self, session: Any, device: Any, handle: Any, address: Any, size: int) -> None:
        """Free memory, named by its handle, its address and its size in bytes."""
        self._call("NvDlaFreeMem", session, device, handle, address, size)

    def submit(self, session: Any, device: Any, batch: int, memories: list[tuple[Any, int]]) -> None:
        """Submit one task; `memories` lists its buffers as pairs of handle and size in bytes.

        A released task has no field for the size of the batch. A memory behind the one of the loadable contains it.

        Args:
            session: the session.
            device: the open device.
            batch: the size of the batch.
            memories: the memories of the loadable, its inputs and its outputs.

        Raises:
            bad_parameter: if there are more memories than a task can list.
        """
        if len(memories) >= MAX_ADDRESSES:
            raise bad_parameter(f"the network has {len(memories)} memories, expected at most {MAX_ADDRESSES - 1}")
        handle, address = self.allocate(session, device, BATCH_BYTES)
        try:
            ffi.cast("NvU32*", address)[0] = batch
            handles = [memories[0][0], handle, *(memory for memory, _ in memories[1:])]
            task: Any = ffi.new("NvDlaTask*")
            task.num_addresses = len(handles)
            for number, memory in enumerate(handles):
                task.address_list[number].handle = memory
            self._call("NvDlaSubmit", session, device, task, 1)
        finally:
            self.free(session, device, handle, address, BATCH_BYTES)

    def print(self, text: str) -> None:
        """Print a line for debugging."""
        self._functions["NvDlaDebugPrintf"](b"%s\n", ffi.new("char[]", text.encode(errors="replace")))
