"""A client of a HanGuangRT library that uses only its functions, as a program in C does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cffi
import numpy as np

from diopi_engine.proto import headers, hgrt
from diopi_engine.proto.declarations import Enumeration, FunctionDeclaration
from diopi_engine.proto.hgrt import CoreAllocPolicy, MemFlags, Result

ffi = cffi.FFI()
"""The C types of the interface."""

ffi.cdef(headers.cffi_declarations(hgrt.DECLARATIONS))


class FailedCallError(Exception):
    """A call of the library failed.

    Attributes:
        result: the result of the call; None if it is not a result of the interface, or if the library lacks the
            function.
    """

    def __init__(self, result: Enumeration | None, text: str) -> None:
        super().__init__(f"{result.name}: {text}" if result is not None else text)
        self.result = result


class EngineClient:
    """A HanGuangRT library loaded from a path, whose functions are called by name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.library: Any = ffi.dlopen(str(path))

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function; raise FailedCallError if it fails."""
        function = getattr(self.library, name, None)
        if function is None:
            raise FailedCallError(None, f"the library has no {name}")
        value = function(*arguments)
        if value != Result.SUCCESS:
            result = Result.find(value)
            text = self.last_error() if result else f"{name} returned {value}, which is not an hgResult"
            raise FailedCallError(result, text)

    def last_error(self) -> str:
        """Return the reason of this thread's latest failure, if the library provides it."""
        text: Any = ffi.new("const char**")
        query = getattr(self.library, "hgGetLastErrorString", lambda _: Result.ERROR_NOT_SUPPORTED)
        return _decode_c_string(text[0]) if query(text) == Result.SUCCESS and text[0] else ""

    def get(self, name: str, *arguments: Any, position: int = -1) -> Any:
        """Return the value that a function writes through the pointer argument at `position`, by default the last."""
        function: FunctionDeclaration = next(candidate for candidate in hgrt.FUNCTIONS if candidate.name == name)
        place = position % len(function.parameters)
        output = ffi.new(function.parameters[place].type)
        self.call(name, *arguments[:place], output, *arguments[place:])
        return output[0]

    def text(self, name: str, *arguments: Any) -> str:
        """Return the text that a function returns."""
        return _decode_c_string(self.get(name, *arguments))

    def engine(self, data: bytes) -> Any:
        """Return the handle of an engine created from these bytes."""
        return self.get("hgEngineCreate", data, len(data))

    def context(self, engine: Any, policy: CoreAllocPolicy = CoreAllocPolicy.MINIMUM, mask: int = 0) -> Any:
        """Return the handle of a new execution context of an engine.

        Args:
            engine: the handle of the engine.
            policy: how many cores are allocated.
            mask: the cores to allocate, bit n for core n; 0 for any.
        """
        return self.get("hgEngineCreateExecutionContext", engine, policy, mask, position=1)

    def execute(self, context: Any, batch: int, arrays: Sequence[Any], descriptors: Any = ffi.NULL) -> None:
        """Execute a batch with arrays in host memory or handles of tensors."""
        pointers = [
            ffi.cast("void*", array.ctypes.data if isinstance(array, np.ndarray) else ffi.cast("uintptr_t", array))
            for array in arrays
        ]
        self.call("hgExecutionContextExecute", context, batch, ffi.new("void*[]", pointers), descriptors)

    def tensor(self, array: Any, location: MemFlags = MemFlags.HOST) -> Any:
        """Return the handle of a new tensor with the contents of an array."""
        memory = ffi.new("hgMemDesc*", {"location": location, "alignment": 0})
        tensor = self.get("hgTensorCreate", tensor_desc(array), memory, 0)
        self.call("hgTensorData", tensor, ffi.from_buffer(array), array.nbytes)
        return tensor


def tensor_desc(array: Any) -> Any:
    """Return the hgTensorDesc structure for the element type and shape of an array."""
    dims = {"nbDims": array.ndim, "d": [*array.shape, *[0] * (hgrt.MAX_DIMS - array.ndim)]}
    return ffi.new("hgTensorDesc*", {"type": hgrt.DataType[str(array.dtype).upper()], "layout": 0, "dims": dims})


def _decode_c_string(characters: Any) -> str:
    """Return a C string as text."""
    text = ffi.string(characters)
    assert isinstance(text, bytes)
    return text.decode(errors="replace")
