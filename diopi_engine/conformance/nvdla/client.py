"""A library of NVDLA's driver as a program uses it: the functions of C, and the class of C++.

Methods are called through the table of virtual functions that an object begins with, in which they stand in the order
of the header, as the Itanium C++ ABI has it (that of GCC and Clang): so nothing has to be compiled to call them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cffi

from diopi_engine.conformance.client import FailedCallError
from diopi_engine.proto import headers, nvdla
from diopi_engine.proto.declarations import Function
from diopi_engine.proto.nvdla import METHODS, PORTABILITY, Error

CREATE, DESTROY = "_ZN5nvdla13createRuntimeEv", "_ZN5nvdla14destroyRuntimeEPNS_8IRuntimeE"
"""The names that C++ gives to the factories."""

ffi = cffi.FFI()
ffi.cdef(headers.cdef(nvdla.DECLARATIONS))
ffi.cdef(f"void* {CREATE}(void); void {DESTROY}(void* runtime);")


class _Caller:
    """Calls functions by their prototypes."""

    def __init__(self, prototypes: Sequence[Function]) -> None:
        self._prototypes = {prototype.name: prototype for prototype in prototypes}

    def invoke(self, name: str, *arguments: Any) -> Any:
        """Call a function, and return what it returns."""
        raise NotImplementedError

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function that answers an NvError, or nothing; FailedCallError if it fails."""
        value = self.invoke(name, *arguments)
        if value is not None and value != Error.Success:
            result = Error.find(value)
            raise FailedCallError(result, name if result else f"{name} answers {value}, no NvError")

    def get(self, name: str, *arguments: Any) -> Any:
        """What a function answers through the pointer that stands where there are no arguments any more."""
        output = ffi.new(self._prototypes[name].parameters[len(arguments)].type)
        self.call(name, *arguments, output)
        return output[0]


class Client(_Caller):
    """The library at a path."""

    def __init__(self, path: Path) -> None:
        super().__init__(PORTABILITY)
        self.library: Any = ffi.dlopen(str(path))

    def invoke(self, name: str, *arguments: Any) -> Any:
        """Call a function of the portability layer, or a factory."""
        function = getattr(self.library, name, None)
        if function is None:
            raise FailedCallError(None, f"the library has no {name}")
        return function(*arguments)

    def runtime(self) -> Runtime:
        """A new runtime."""
        handle = self.invoke(CREATE)
        if not handle:
            raise FailedCallError(None, "createRuntime answers NULL")
        return Runtime(self, handle)

    def open(self, instance: int = 0) -> Device:
        """A device, in a session of its own."""
        return Device(self, instance)


class Runtime(_Caller):
    """An IRuntime."""

    def __init__(self, client: Client, pointer: Any) -> None:
        super().__init__(METHODS)
        self._client = client
        self._pointer = pointer
        self._places = {method.name: place for place, method in enumerate(METHODS)}

    def invoke(self, name: str, *arguments: Any) -> Any:
        """Call a method."""
        types = ", ".join(["void*", *(parameter.type for parameter in self._prototypes[name].parameters)])
        function = ffi.cast("void***", self._pointer)[0][self._places[name]]
        return ffi.cast(f"{self._prototypes[name].returns}(*)({types})", function)(self._pointer, *arguments)

    def destroy(self) -> None:
        """Destroy it."""
        self._client.invoke(DESTROY, self._pointer)

    def load(self, data: bytes, instance: int = 0) -> None:
        """Load a loadable."""
        self.call("load", ffi.from_buffer("NvU8[]", data), instance)

    def allocate(self, size: int) -> Any:
        """The handle and the address of new memory."""
        handle, address = ffi.new("void**"), ffi.new("void**")
        self.call("allocateSystemMemory", handle, size, address)
        return handle[0], address[0]

    def tensors(self, kind: str) -> list[Any]:
        """The descriptions of the tensors of a kind: `Input` or `Output`."""
        count = self.get(f"getNum{kind}Tensors")
        return [self.get(f"get{kind}TensorDesc", number) for number in range(count)]


class Device:
    """An open device, and its session."""

    def __init__(self, client: Client, instance: int) -> None:
        self._client = client
        self.session = client.get("NvDlaInitialize")
        try:
            self.handle = client.get("NvDlaOpen", self.session, instance)
        except FailedCallError:
            client.call("NvDlaDestroy", self.session)
            raise

    def close(self) -> None:
        """Close it, and end the session."""
        self._client.call("NvDlaClose", self.session, self.handle)
        self._client.call("NvDlaDestroy", self.session)

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function with this session and device."""
        self._client.call(name, self.session, self.handle, *arguments)

    def allocate(self, size: int, heap: int) -> tuple[Any, Any]:
        """The handle and the address of new memory."""
        handle, address = ffi.new("void**"), ffi.new("void**")
        self.call("NvDlaAllocMem", handle, address, size, heap)
        return handle[0], address[0]

    def submit(self, *tasks: tuple[int, Sequence[tuple[Any, int]]]) -> None:
        """Run tasks: each a batch, and memories as handles with sizes."""
        lists = [ffi.new("NvDlaMemDesc[]", memories) for _, memories in tasks]
        native_tasks = [(batch, len(memories), list_) for (batch, memories), list_ in zip(tasks, lists, strict=True)]
        self.call("NvDlaSubmit", ffi.new("NvDlaTask[]", native_tasks), len(native_tasks))
