"""A client that calls a library with NVDLA's driver, through the C functions and through the C++ class.

The client calls methods through the table of virtual functions at the beginning of an object. In the Itanium C++ ABI
(GCC and Clang) the table has the order of the header, so the client needs no compiled code.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cffi

from diopi_engine.conformance.client import FailedCallError
from diopi_engine.proto import headers, nvdla
from diopi_engine.proto.declarations import FunctionDeclaration
from diopi_engine.proto.nvdla import METHODS, PORTABILITY, Error

CREATE, DESTROY = "_ZN5nvdla13createRuntimeB8documentEv", "_ZN5nvdla14destroyRuntimeB8documentEPNS_8IRuntimeE"
"""The names that C++ gives to the factories of `nvdla.h`."""

UNTAGGED_CREATE = "_ZN5nvdla13createRuntimeEv"
"""The name of `createRuntime` in the released headers, and in versions of `nvdla.h` without an ABI tag."""

ffi = cffi.FFI()
"""The C types of the interface."""

ffi.cdef(headers.cffi_declarations(nvdla.DECLARATIONS))
ffi.cdef(f"void* {CREATE}(void); void {DESTROY}(void* runtime);")


class _FunctionCaller:
    """Calls functions by name with the parameters that their declarations list."""

    def __init__(self, prototypes: Sequence[FunctionDeclaration]) -> None:
        self._prototypes = {prototype.name: prototype for prototype in prototypes}

    def invoke(self, name: str, *arguments: Any) -> Any:
        """Call a function and return its result; subclasses implement this method."""
        raise NotImplementedError

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function that returns an NvError or nothing; raise FailedCallError if it fails."""
        value = self.invoke(name, *arguments)
        if value is not None and value != Error.Success:
            result = Error.find(value)
            raise FailedCallError(result, name if result else f"{name} returned {value}, which is not an NvError")

    def get(self, name: str, *arguments: Any) -> Any:
        """Call a function with these arguments and a pointer as the last one; return what it writes to the pointer."""
        output = ffi.new(self._prototypes[name].parameters[len(arguments)].type)
        self.call(name, *arguments, output)
        return output[0]


class NvdlaClient(_FunctionCaller):
    """A library of NVDLA's driver, loaded from a path."""

    def __init__(self, path: Path) -> None:
        super().__init__(PORTABILITY)
        self.path = path
        self.library: Any = ffi.dlopen(str(path))

    def invoke(self, name: str, *arguments: Any) -> Any:
        """Return what a function of the portability layer or a factory returns."""
        function = getattr(self.library, name, None)
        if function is None:
            raise FailedCallError(None, f"the library has no {name}")
        return function(*arguments)

    def create_runtime(self) -> RuntimeClient:
        """Return a new runtime."""
        handle = self.invoke(CREATE)
        if not handle:
            raise FailedCallError(None, "createRuntime returned NULL")
        return RuntimeClient(self, handle)

    def open(self, instance: int = 0) -> DeviceSession:
        """Return an open device in a separate session; `instance` is the number of the device."""
        return DeviceSession(self, instance)


class RuntimeClient(_FunctionCaller):
    """An IRuntime object of the library, whose methods are called by name."""

    def __init__(self, client: NvdlaClient, pointer: Any) -> None:
        super().__init__(METHODS)
        self._client = client
        self._pointer = pointer
        self._indices = {method.name: index for index, method in enumerate(METHODS)}

    def invoke(self, name: str, *arguments: Any) -> Any:
        """Call a method by name and return its result."""
        types = ", ".join(["void*", *(parameter.type for parameter in self._prototypes[name].parameters)])
        function = ffi.cast("void***", self._pointer)[0][self._indices[name]]
        return ffi.cast(f"{self._prototypes[name].returns}(*)({types})", function)(self._pointer, *arguments)

    def destroy(self) -> None:
        """Destroy the runtime."""
        self._client.invoke(DESTROY, self._pointer)

    def load(self, data: bytes, instance: int = 0) -> None:
        """Load a compiled network, which NVDLA calls a loadable, on the device `instance`."""
        self.call("load", ffi.from_buffer("NvU8[]", data), instance)

    def allocate(self, size: int) -> Any:
        """Allocate memory and return its handle and address."""
        handle, address = ffi.new("void**"), ffi.new("void**")
        self.call("allocateSystemMemory", handle, size, address)
        return handle[0], address[0]

    def tensor_descriptions(self, kind: str) -> list[Any]:
        """Return the descriptions of all tensors of a kind, `Input` or `Output`."""
        count = self.get(f"getNum{kind}Tensors")
        return [self.get(f"get{kind}TensorDesc", number) for number in range(count)]


class DeviceSession:
    """An open device and its session."""

    def __init__(self, client: NvdlaClient, instance: int) -> None:
        self._client = client
        self.session = client.get("NvDlaInitialize")
        try:
            self.handle = client.get("NvDlaOpen", self.session, instance)
        except FailedCallError:
            client.call("NvDlaDestroy", self.session)
            raise

    def close(self) -> None:
        """Close the device and end the session."""
        self._client.call("NvDlaClose", self.session, self.handle)
        self._client.call("NvDlaDestroy", self.session)

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function with this session and device."""
        self._client.call(name, self.session, self.handle, *arguments)

    def allocate(self, size: int, heap: int) -> tuple[Any, Any]:
        """Allocate `size` bytes of a heap, and return handle and address."""
        handle, address = ffi.new("void**"), ffi.new("void**")
        self.call("NvDlaAllocMem", handle, address, size, heap)
        return handle[0], address[0]

    def submit(self, *tasks: tuple[int, Sequence[tuple[Any, int]]]) -> None:
        """Run tasks; each has a batch size and memories as pairs of handle and size."""
        lists = [ffi.new("NvDlaMemDesc[]", memories) for _, memories in tasks]
        native_tasks = [(batch, len(memories), list_) for (batch, memories), list_ in zip(tasks, lists, strict=True)]
        self.call("NvDlaSubmit", ffi.new("NvDlaTask[]", native_tasks), len(native_tasks))
