"""The cffi interface to the declarations and to the memory functions of the operating system."""

from __future__ import annotations

from functools import cache
from typing import Any

import cffi

from diopi_engine.proto import headers, hgrt

ffi = cffi.FFI()
"""The C types of the interface."""

ffi.cdef(headers.cffi_declarations(hgrt.DECLARATIONS))
ffi.cdef("int mlock(const void* address, size_t length); typedef void (*function_t)(void);")
ffi.cdef("struct hgrt_exported { function_t* functions; void (*fail)(const char* reason); };")


@cache
def _c_library() -> Any:
    """Return the functions of the C library that this process has loaded."""
    return ffi.dlopen(None)


def text_of(characters: Any) -> str:
    """Return a C string as text; invalid UTF-8 is replaced."""
    text = ffi.string(characters)
    assert isinstance(text, bytes)
    return text.decode(errors="replace")


def lock_pages(address: int, size: int) -> bool:
    """Lock `size` bytes of pages from `address` in memory until they are unmapped; return whether that is allowed."""
    return bool(_c_library().mlock(ffi.cast("void*", address), size) == 0)
