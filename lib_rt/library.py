"""The C library `libdiopirt.so`: it is found, loaded, and declared to cffi when this module is imported.

The library is loaded with global symbols, so that vendor libraries that are loaded later find the runtime's functions.
The environment variable DIOPIRT_LIBRARY names another file to load, for instance a debug build.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NoReturn, final

import cffi
import numpy as np

from diopi_proto.headers import runtime_cdef
from diopi_proto.registration import SERVICES
from diopi_proto.types import Error
from lib_rt.dtypes import Array
from lib_rt.errors import CallError, GuardError
from lib_rt.installed import find_library

NAME = "libdiopirt.so"
"""The file name of the C core."""

_PACKAGE = Path(__file__).parent
"""The folder of the package."""


def read_declarations(header: Path) -> str:
    """Return the declarations of `header`, between its begin and end comments, in the form that cffi reads."""
    text = header.read_text("utf-8")
    match = re.search(r"/\* begin declarations \*/(.*)/\* end declarations \*/", text, re.DOTALL)
    assert match is not None, f"{header} has no begin and end comments around its declarations"
    return match.group(1).replace("DIOPI_EXPORT", "")


def _service_numbers() -> str:
    """Return the enum that diopirt_private.h derives from the table of services; cffi does not expand macros."""
    members = (f"diopirt_{service.name}_service" for service in SERVICES)
    return f"enum diopirt_service {{ {', '.join(members)}, diopirt_service_count }};"


path = find_library(NAME, "DIOPIRT_LIBRARY")
"""Path of the loaded library."""

ffi: Any = cffi.FFI()
"""Declares the interface's types and every function of the runtime; add operators with `ffi.cdef`."""

ffi.cdef(runtime_cdef() + _service_numbers() + read_declarations(_PACKAGE / "src" / "diopirt_private.h"))
lib: Any = ffi.dlopen(str(path), ffi.RTLD_GLOBAL | ffi.RTLD_NOW)
"""The functions of the runtime."""

# The garbage collector can destroy handles at any time, also while cffi parses a type and holds its lock, which the
# same thread can't take again. What a destruction needs is therefore looked up now and not at its first use.
for _name in dir(lib):
    getattr(lib, _name)
for _name in ("char[]", "char const**"):
    ffi.typeof(_name)

_INTACT = -(2**63)
"""Value of the damage location while no guard zone is damaged."""

_COPY_LIMIT = 4096
"""Size in bytes up to which copying an array is faster than requesting its buffer."""

_ADDRESS, _POINTER = ffi.typeof("uintptr_t"), ffi.typeof("void*")
"""C types of addresses."""

_NUMBERS, _NUMBER, _SIZE = ffi.typeof("int64_t[]"), ffi.typeof("int64_t*"), ffi.typeof("diopiSize_t*")
"""C types of integers and sizes."""


def last_error() -> str:
    """Return the runtime's explanation of the last error in this thread."""
    return text(lib.diopirt_last_error())


def text(characters: Any) -> str:
    """Return a C string as a Python string."""
    return str(ffi.string(characters), "utf-8", "replace")


def check(code: int) -> None:
    """Raise an error unless `code` is success.

    Raises:
        CallError: The code is an error; the text is the runtime's explanation.
    """
    if code:
        raise CallError(Error(code), last_error())


def raise_last_error() -> NoReturn:
    """Raise the last error, after a function of the runtime returned NULL instead of a handle.

    Raises:
        CallError: Always.
    """
    raise CallError(Error(lib.diopirt_last_code()), last_error())


@final
class _DamageLocation(threading.local):
    """A cell per thread, to which the runtime writes the location of damage; other threads run during a call."""

    def __init__(self) -> None:
        self.cell: Any = ffi.new(_NUMBER, _INTACT)


damage_location = _DamageLocation()
"""Pass `damage_location.cell` to functions that check guard zones."""


def raise_guarded_error(code: int) -> NoReturn:
    """Raise the error of a function that checked guard zones.

    Args:
        code: The error code that the function returned.

    Raises:
        GuardError: The function reported damage in `damage_location.cell`.
        CallError: It failed for another reason.
    """
    cell = damage_location.cell
    place, cell[0] = cell[0], _INTACT
    if place != _INTACT:
        raise GuardError(place, last_error())
    raise CallError(Error(code), last_error())


@cache
def _pointer_type(kind: str) -> Any:
    """Return the type of pointers to values of a C type."""
    return ffi.typeof(f"{kind}*")  # cached, because cffi takes longer to find a type by name than to create a value


def call_for_output(function: Any, kind: str, *arguments: Any) -> Any:
    """Return the value that `function(*arguments, result)` writes to its last parameter.

    Args:
        function: A function of the runtime that returns an error code.
        kind: C type of the value.
        *arguments: All arguments except the last one.

    Raises:
        CallError: The function returned an error code.
    """
    result = ffi.new(_pointer_type(kind))
    check(function(*arguments, result))
    return result[0]


def address(pointer: Any) -> int:
    """Return a C pointer as a number."""
    return int(ffi.cast(_ADDRESS, pointer))


def pointer(address: int) -> Any:
    """Return an address as a C pointer."""
    return ffi.cast(_POINTER, address)


array_pointer: Callable[[Array], Any] = ffi.from_buffer
"""Return a C pointer to the first element of a contiguous array; the pointer keeps the array alive."""


def elements_pointer(array: Array) -> Any:
    """Return an object from which a C call reads the elements of any array in row-major order."""
    if array.nbytes <= _COPY_LIMIT:
        return array.tobytes()  # faster than a buffer
    return ffi.from_buffer(np.ascontiguousarray(array))


def size_argument(values: Sequence[int]) -> tuple[Any, int]:
    """Return `values` as an initializer of a `diopiSize_t`; the caller keeps it alive while C uses it."""
    return ffi.new(_NUMBERS, values), len(values)


@lru_cache(maxsize=4096)
def size_pointer(values: tuple[int, ...]) -> tuple[Any, Any]:
    """Return a pointer to a read-only `diopiSize_t` and the buffer that the caller must keep alive with it."""
    numbers = ffi.new(_NUMBERS, values)
    return ffi.new(_SIZE, (numbers, len(values))), numbers
