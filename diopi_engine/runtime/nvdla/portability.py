"""Calls to the NVDLA portability layer of a library (its `NvDla…` functions), as the NVDLA driver makes them."""

from __future__ import annotations

from typing import Any, Protocol, final

from diopi_engine.proto.declarations import FunctionDeclaration
from diopi_engine.proto.nvdla import PORTABILITY, Error, Heap
from diopi_engine.runtime.errors import InterfaceError
from diopi_engine.runtime.nvdla.ffi import ffi


class DeviceLayer(Protocol):
    """The calls through which the driver uses devices; they raise InterfaceError if they fail."""

    def initialize(self) -> Any:
        """Return a new session."""

    def destroy(self, session: Any) -> None:
        """End a session."""

    def open(self, session: Any, instance: int) -> Any:
        """Open the device `instance`, and return its handle."""

    def close(self, session: Any, device: Any) -> None:
        """Close a device."""

    def allocate(self, session: Any, device: Any, size: int) -> tuple[Any, Any]:
        """Allocate `size` bytes of system memory; return the handle for the device and the address for the host."""

    def free(self, session: Any, device: Any, handle: Any, address: Any, size: int) -> None:
        """Free memory, named by its handle, its address and its size in bytes."""

    def submit(self, session: Any, device: Any, batch: int, memories: list[tuple[Any, int]]) -> None:
        """Submit one task; `memories` lists its buffers as pairs of handle and size in bytes."""

    def print(self, text: str) -> None:
        """Print a line for debugging."""


@final
class PortabilityLayer:
    """The `NvDla…` functions of a loaded library; `functions` lists their addresses in the order of `PORTABILITY`."""

    def __init__(self, functions: Any) -> None:
        self._functions = {
            prototype.name: ffi.cast(pointer_type(prototype), function)
            for prototype, function in zip(PORTABILITY, functions, strict=True)
        }

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function by name; raise InterfaceError with its error code, or `Error_Internal` for unknown codes."""
        result = self._functions[name](*arguments)
        if result is not None and result != Error.Success:
            raise InterfaceError(Error.find(result) or Error.Error_Internal, f"{name} returned {result}")

    def initialize(self) -> Any:
        """Return a new session."""
        session = ffi.new("void**")
        self.call("NvDlaInitialize", session)
        return session[0]

    def open(self, session: Any, instance: int) -> Any:
        """Open the device `instance`, and return its handle."""
        device = ffi.new("void**")
        self.call("NvDlaOpen", session, instance, device)
        return device[0]

    def allocate(self, session: Any, device: Any, size: int) -> tuple[Any, Any]:
        """Allocate `size` bytes of system memory; return the handle for the device and the address for the host."""
        if size > 0xFFFFFFFF:
            raise InterfaceError(
                Error.Error_InsufficientMemory, f"{size} bytes were requested, expected at most 4294967295 per call"
            )
        handle, address = ffi.new("void**"), ffi.new("void**")
        self.call("NvDlaAllocMem", session, device, handle, address, size, Heap.DRAM)
        return handle[0], address[0]

    def free(self, session: Any, device: Any, handle: Any, address: Any, size: int) -> None:
        """Free memory, named by its handle, its address and its size in bytes."""
        self.call("NvDlaFreeMem", session, device, handle, address, size)

    def close(self, session: Any, device: Any) -> None:
        """Close a device."""
        self.call("NvDlaClose", session, device)

    def destroy(self, session: Any) -> None:
        """End a session."""
        self.call("NvDlaDestroy", session)

    def submit(self, session: Any, device: Any, batch: int, memories: list[tuple[Any, int]]) -> None:
        """Submit one task; `memories` lists its buffers as pairs of handle and size in bytes."""
        descriptors = ffi.new("NvDlaMemDesc[]", memories)
        task = ffi.new("NvDlaTask*", {"batchSize": batch, "numAddresses": len(memories), "addressList": descriptors})
        self.call("NvDlaSubmit", session, device, task, 1)

    def print(self, text: str) -> None:
        """Print a line for debugging."""
        self._functions["NvDlaDebugPrintf"](b"%s\n", ffi.new("char[]", text.encode(errors="replace")))


def pointer_type(function: FunctionDeclaration) -> str:
    """Return the C type of a pointer to the function."""
    return f"{function.returns}(*)({function.declared})"
