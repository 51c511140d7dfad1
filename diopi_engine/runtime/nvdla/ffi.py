"""What cffi knows of the interface, and the table of its functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cffi

from diopi_engine.proto import headers, nvdla
from diopi_engine.proto.nvdla import Error
from diopi_engine.runtime.errors import CallError

TABLE = "struct nvdla_exported { function_t* functions; const function_t* layer; };"
"""What a library shares with Python: functions that Python fills in, and the portability layer, which it calls."""

ffi = cffi.FFI()
ffi.cdef(headers.cdef(nvdla.DECLARATIONS))
ffi.cdef(f"typedef void (*function_t)(void); {TABLE}")

CALLS: dict[str, Callable[..., Any]] = {}
"""Every function and method by its name. Each takes its inputs and returns its outputs, or raises CallError."""


def call(function: Callable[..., Any]) -> Callable[..., Any]:
    """Enter a function under its name."""
    CALLS[function.__name__] = function
    return function


def bad(reason: str) -> CallError:
    """An argument is wrong."""
    return CallError(Error.Error_BadParameter, reason)


def number_of(pointer: Any) -> int:
    """An address, or a handle, as a number."""
    return int(ffi.cast("uintptr_t", pointer))
