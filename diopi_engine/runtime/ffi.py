"""What cffi knows of the interface, and of the system's memory."""

from __future__ import annotations

from functools import cache
from typing import Any

import cffi

from diopi_engine.proto import headers, hgrt

ffi = cffi.FFI()
ffi.cdef(headers.cdef(hgrt.DECLARATIONS))
ffi.cdef("int mlock(const void* address, size_t length); typedef void (*function_t)(void);")
ffi.cdef("struct hgrt_exported { function_t* functions; void (*fail)(const char* reason); };")


@cache
def _system() -> Any:
    return ffi.dlopen(None)


def text_of(characters: Any) -> str:
    """A string of C; what is no UTF-8 in it is replaced."""
    text = ffi.string(characters)
    assert isinstance(text, bytes)
    return text.decode(errors="replace")


def lock_pages(address: int, size: int) -> bool:
    """Lock pages in memory until they are unmapped; whether the process may lock so many."""
    return bool(_system().mlock(ffi.cast("void*", address), size) == 0)
