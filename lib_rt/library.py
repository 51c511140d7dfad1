"""Finds, loads and declares `libdiopirt.so`.

It is loaded with global symbols, so that vendor libraries loaded later find the runtime's functions in it. The
environment variable DIOPIRT_LIBRARY names another file to load, one built for debugging, say.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any, NoReturn, final

import cffi
import numpy as np

from diopi_proto.headers import runtime_cdef
from diopi_proto.registration import SERVICES
from diopi_proto.types import Error
from lib_rt.dtypes import Array
from lib_rt.errors import CallError, GuardError, LibraryNotFoundError

NAME = "libdiopirt.so"
_PACKAGE = Path(__file__).parent


def _candidates() -> Iterator[Path]:
    if chosen := os.environ.get("DIOPIRT_LIBRARY"):
        yield Path(chosen)
        return
    yield _PACKAGE / NAME
    try:
        installed = files("diopi") or []
    except PackageNotFoundError:
        return
    yield from (Path(str(file.locate())) for file in installed if file.name == NAME)


def _find() -> Path:
    """Where the runtime lies: beside this package, or where the distribution installed it."""
    candidates = list(_candidates())
    for path in candidates:
        if path.is_file():
            return path
    raise LibraryNotFoundError(f"{NAME} was not built: it is neither of {', '.join(map(str, candidates))}")


def declared(header: Path) -> str:
    """What `header` declares between the comments that say so, as cffi reads it."""
    text = header.read_text("utf-8")
    found = re.search(r"/\* begin declarations \*/(.*)/\* end declarations \*/", text, re.DOTALL)
    assert found is not None, f"{header} declares nothing"
    return found.group(1).replace("DIOPI_EXPORT", "")


def _service_numbers() -> str:
    """The enum that diopirt_private.h makes of the table of services, written out: cffi does not know macros."""
    members = (f"diopirt_{service.name}_service" for service in SERVICES)
    return f"enum diopirt_service {{ {', '.join(members)}, diopirt_service_count }};"


path = _find()
"""The file that was loaded."""

ffi: Any = cffi.FFI()
"""Knows the types of the interface and every function of the runtime; operators can be added with `ffi.cdef`."""

ffi.cdef(runtime_cdef() + _service_numbers() + declared(_PACKAGE / "src" / "diopirt_private.h"))
lib: Any = ffi.dlopen(str(path), ffi.RTLD_GLOBAL | ffi.RTLD_NOW)
"""The functions of the runtime."""

_INTACT = -(2**63)
"""What stands in a cell for the place of damage before there is any."""

_FEW = 4096
"""Bytes that are copied sooner than their address is asked for."""

_ADDRESS, _POINTER = ffi.typeof("uintptr_t"), ffi.typeof("void*")
_NUMBERS, _NUMBER, _SIZE = ffi.typeof("int64_t[]"), ffi.typeof("int64_t*"), ffi.typeof("diopiSize_t*")


def last_error() -> str:
    """The runtime's explanation of the last error in this thread."""
    return text(lib.diopirt_last_error())


def text(characters: Any) -> str:
    """A C string as Python's."""
    return str(ffi.string(characters), "utf-8", "replace")


def check(code: int) -> None:
    """CallError with the runtime's explanation unless `code` is success."""
    if code:
        raise CallError(Error(code), last_error())


def refused() -> NoReturn:
    """CallError of the function of the runtime that just answered with NULL instead of a handle."""
    raise CallError(Error(lib.diopirt_last_code()), last_error())


@final
class _Damage(threading.local):
    """Where the runtime tells the place of damage: a cell for each thread, as a call lets others run."""

    def __init__(self) -> None:
        self.cell: Any = ffi.new(_NUMBER, _INTACT)


damage = _Damage()
"""`damage.cell` is what functions that compare guards are given."""


def fail_guarded(code: int) -> NoReturn:
    """GuardError or CallError of a function that was given `damage.cell` and answered `code`, which is an error."""
    cell = damage.cell
    place, cell[0] = cell[0], _INTACT
    if place != _INTACT:
        raise GuardError(place, last_error())
    raise CallError(Error(code), last_error())


@cache
def _pointer_type(kind: str) -> Any:
    return ffi.typeof(f"{kind}*")  # cached, since cffi takes longer to find a type by its name than to make a value


def made(function: Any, kind: str, *arguments: Any) -> Any:
    """The value of C type `kind` that `function(*arguments, result)` writes; CallError if it fails."""
    result = ffi.new(_pointer_type(kind))
    check(function(*arguments, result))
    return result[0]


def address(pointer: Any) -> int:
    """A C pointer as a number."""
    return int(ffi.cast(_ADDRESS, pointer))


def pointer(address: int) -> Any:
    """A number as a C pointer."""
    return ffi.cast(_POINTER, address)


array_pointer: Callable[[Array], Any] = ffi.from_buffer
"""The address of a contiguous array's first element, which keeps the array alive."""


def elements_pointer(array: Array) -> Any:
    """What C reads the elements of any array from, in row-major order, while it is called."""
    if array.nbytes <= _FEW:
        return array.tobytes()  # to get a buffer takes longer
    return ffi.from_buffer(np.ascontiguousarray(array))


def size_argument(values: Sequence[int]) -> tuple[Any, int]:
    """`values` as cffi takes a `diopiSize_t` by value, and in a list by pointer; valid as long as it lives."""
    return ffi.new(_NUMBERS, values), len(values)


@lru_cache(maxsize=4096)
def size_pointer(values: tuple[int, ...]) -> tuple[Any, Any]:
    """`values` as a pointer to a `diopiSize_t` that is only read, and what has to live as long as it is used."""
    numbers = ffi.new(_NUMBERS, values)
    return ffi.new(_SIZE, (numbers, len(values))), numbers
