"""The cffi interface to the declarations, and the table of the functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cffi

from diopi_engine.proto import headers, nvdla
from diopi_engine.proto.nvdla import Error
from diopi_engine.runtime.errors import InterfaceError

TABLE = "struct nvdla_exported { function_t* functions; const function_t* layer; };"
"""The structure that a library shares with Python: functions that Python fills in, and the portability layer."""

ffi = cffi.FFI()
"""The C types of the interface."""

ffi.cdef(headers.cffi_declarations(nvdla.DECLARATIONS))
ffi.cdef(f"typedef void (*function_t)(void); {TABLE}")

CALLS: dict[str, Callable[..., Any]] = {}
"""All functions and methods by name; each takes its inputs and returns its outputs, or raises InterfaceError."""


def call(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function unchanged, after registering it as the implementation of the function of the same name."""
    CALLS[function.__name__] = function
    return function


def bad_parameter(reason: str) -> InterfaceError:
    """Return an InterfaceError with the code `Error_BadParameter` and this reason, to be raised by the caller."""
    return InterfaceError(Error.Error_BadParameter, reason)


def to_integer(pointer: Any) -> int:
    """Return a pointer or handle as an integer."""
    return int(ffi.cast("uintptr_t", pointer))
