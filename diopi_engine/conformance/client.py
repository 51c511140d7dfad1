"""A library of HanGuangRT as a program in C uses it: by its functions alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cffi
import numpy as np

from diopi_engine.proto import headers, hgrt
from diopi_engine.proto.declarations import Enumeration, Function
from diopi_engine.proto.hgrt import CoreAllocPolicy, MemoryType, Result

ffi = cffi.FFI()
ffi.cdef(headers.cdef(hgrt.DECLARATIONS))


class FailedCallError(Exception):
    """A call did not answer that it was done.

    Attributes:
        result: what it answered; None if that is no result of its interface, or the library has no such function.
    """

    def __init__(self, result: Enumeration | None, text: str) -> None:
        super().__init__(f"{result.name}: {text}" if result is not None else text)
        self.result = result


class Client:
    """The library at a path."""

    def __init__(self, path: Path) -> None:
        self.library: Any = ffi.dlopen(str(path))

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function; FailedCallError if it fails."""
        function = getattr(self.library, name, None)
        if function is None:
            raise FailedCallError(None, f"the library has no {name}")
        value = function(*arguments)
        if value != Result.SUCCESS:
            result = Result.find(value)
            raise FailedCallError(result, self._last_error() if result else f"{name} answers {value}, no hgResult")

    def _last_error(self) -> str:
        """Why the latest call failed, if the library says so."""
        text: Any = ffi.new("const char**")
        query = getattr(self.library, "hgGetLastErrorString", lambda _: Result.ERROR_NOT_SUPPORTED)
        return _decoded(text[0]) if query(text) == Result.SUCCESS and text[0] else ""

    def get(self, name: str, *arguments: Any, position: int = -1) -> Any:
        """What a function answers through its pointer, the last argument if no position is given."""
        function: Function = next(candidate for candidate in hgrt.FUNCTIONS if candidate.name == name)
        place = position % len(function.parameters)
        output = ffi.new(function.parameters[place].type)
        self.call(name, *arguments[:place], output, *arguments[place:])
        return output[0]

    def text(self, name: str, *arguments: Any) -> str:
        """The text a function answers."""
        return _decoded(self.get(name, *arguments))

    def engine(self, data: bytes) -> Any:
        """The handle of an engine of these bytes."""
        return self.get("hgEngineCreate", data, len(data))

    def context(self, engine: Any, policy: CoreAllocPolicy = CoreAllocPolicy.MINIMUM, mask: int = 0) -> Any:
        """The handle of an engine's context."""
        return self.get("hgEngineCreateExecutionContext", engine, policy, mask, position=1)

    def execute(self, context: Any, batch: int, arrays: Sequence[Any], info: Any = ffi.NULL) -> None:
        """Execute on arrays in system memory, or handles of tensors."""
        pointers = [
            ffi.cast("void*", array.ctypes.data if isinstance(array, np.ndarray) else ffi.cast("uintptr_t", array))
            for array in arrays
        ]
        self.call("hgExecutionContextExecute", context, batch, ffi.new("void*[]", pointers), info)

    def tensor(self, array: Any, location: MemoryType = MemoryType.HOST) -> Any:
        """The handle of a tensor that holds an array."""
        memory = ffi.new("hgMemDesc*", {"location": location, "alignment": 0})
        tensor = self.get("hgTensorCreate", tensor_desc(array), memory, 0)
        self.call("hgTensorData", tensor, ffi.from_buffer(array), array.nbytes)
        return tensor


def tensor_desc(array: Any) -> Any:
    """The description of a tensor like an array."""
    dims = {"nbDims": array.ndim, "d": [*array.shape, *[0] * (hgrt.MAX_DIMS - array.ndim)]}
    return ffi.new("hgTensorDesc*", {"type": hgrt.DataType[str(array.dtype).upper()], "layout": 0, "dims": dims})


def _decoded(characters: Any) -> str:
    text = ffi.string(characters)
    assert isinstance(text, bytes)
    return text.decode(errors="replace")
