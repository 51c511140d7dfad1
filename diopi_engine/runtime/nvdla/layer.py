"""The portability layer as the driver uses it: only through the functions that the library exports."""

from __future__ import annotations

from typing import Any, final

from diopi_engine.proto.declarations import Function
from diopi_engine.proto.nvdla import PORTABILITY, Error, Heap
from diopi_engine.runtime.errors import CallError
from diopi_engine.runtime.nvdla.ffi import ffi


@final
class Layer:
    """The functions of a library; `functions` is the address of their table, in the order of the prototypes."""

    def __init__(self, functions: Any) -> None:
        self._functions = {
            prototype.name: ffi.cast(_pointer(prototype), function)
            for prototype, function in zip(PORTABILITY, functions, strict=True)
        }

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function; raise CallError with its result if it fails."""
        result = self._functions[name](*arguments)
        if result is not None and result != Error.Success:
            raise CallError(Error.find(result) or Error.Error_Internal, f"{name} answers {result}")

    def initialize(self) -> Any:
        """Return a new session."""
        session = ffi.new("void**")
        self.call("NvDlaInitialize", session)
        return session[0]

    def open(self, session: Any, instance: int) -> Any:
        """Open a device and return it."""
        device = ffi.new("void**")
        self.call("NvDlaOpen", session, instance, device)
        return device[0]

    def allocate(self, session: Any, device: Any, size: int) -> tuple[Any, Any]:
        """Allocate memory in the heap in system memory; return its handle and address."""
        if size > 0xFFFFFFFF:
            raise CallError(
                Error.Error_InsufficientMemory, f"{size} bytes, of which 4294967295 can be asked for at once"
            )
        handle, address = ffi.new("void**"), ffi.new("void**")
        self.call("NvDlaAllocMem", session, device, handle, address, size, Heap.DRAM)
        return handle[0], address[0]

    def submit(self, session: Any, device: Any, batch: int, memories: list[tuple[Any, int]]) -> None:
        """Run a task with memories, given as pairs of handle and size in bytes."""
        described = ffi.new("NvDlaMemDesc[]", memories)
        task = ffi.new("NvDlaTask*", {"batchSize": batch, "numAddresses": len(memories), "addressList": described})
        self.call("NvDlaSubmit", session, device, task, 1)

    def print(self, text: str) -> None:
        """Print a line for debugging."""
        self._functions["NvDlaDebugPrintf"](b"%s\n", ffi.new("char[]", text.encode()))


def _pointer(function: Function) -> str:
    return f"{function.returns}(*)({function.declared})"
