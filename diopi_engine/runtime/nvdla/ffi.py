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
ffi.cdef(headers.cdef(nvdla.DECLARATIONS))
ffi.cdef(f"typedef void (*function_t)(void); {TABLE}")

CALLS: dict[str, Callable[..., Any]] = {}
"""All functions and methods by name; each takes its inputs and returns its outputs, or raises InterfaceError."""


def call(function: Callable[..., Any]) -> Callable[..., Any]:
    """Register a function under its name."""
    CALLS[function.__name__] = function
    return function


def bad_parameter(reason: str) -> InterfaceError:
    """Return the error for an invalid argument."""
    return InterfaceError(Error.Error_BadParameter, reason)


def number_of(pointer: Any) -> int:
    """Return an address or a handle as a number."""
    return int(ffi.cast("uintptr_t", pointer))
