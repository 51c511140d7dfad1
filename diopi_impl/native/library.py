"""Loading a compiled vendor library, starting and ending it.

The runtime was loaded with global symbols when `lib_rt` was imported, so the library's references to it, by
`-ldiopirt` or left undefined, are bound to that copy. The library itself is bound at once: with lazy binding a symbol
that is missing would end the process at its first use.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, final

from diopi_impl.base import TEXT_QUERIES
from diopi_impl.errors import VendorError, VendorNotFoundError
from diopi_proto.headers import declaration, lifetime_cdef
from diopi_proto.interface import prototypes
from diopi_proto.registration import SERVICES
from diopi_proto.types import Error
from lib_rt import CallError, Device
from lib_rt.library import check, ffi, lib, text


@cache
def _declare_lifetime() -> None:
    ffi.cdef(lifetime_cdef())


@cache
def _declare(name: str) -> None:
    """Declare a standard function: one at a time, as all of them take most of a second."""
    if prototype := prototypes().get(name):
        ffi.cdef(f"{declaration(prototype)};")


RESULT_TYPES = (
    *("diopirt_device_t", "diopirt_stream_t", "diopiContextHandle_t", "diopiStreamHandle_t", "diopiTensorHandle_t"),
    *("diopiGeneratorHandle_t", "diopiConstTensorHandle_t", "diopiSize_t", "diopiDtype_t", "diopiDevice_t"),
    *("void*", "void const*", "char const*", "int64_t", "size_t", "bool"),
)
"""The types of what the runtime answers, which cffi takes milliseconds to understand, once."""


def prepare() -> None:
    """Declare now what every library needs, so that those that are loaded later, in forks of this process, have it."""
    _declare_lifetime()
    for name in TEXT_QUERIES:
        _declare(name)
    for kind in (*(service.pointer for service in SERVICES), *(f"{kind}*" for kind in RESULT_TYPES)):
        ffi.typeof(kind)


@final
class Library:
    """A compiled vendor library that is loaded. VendorError with the linker's explanation if it can't be."""

    def __init__(self, path: Path) -> None:
        _declare_lifetime()
        self.path = path
        try:
            self._symbols = ffi.dlopen(str(path.resolve(strict=True)), ffi.RTLD_NOW)
        except FileNotFoundError as error:
            raise VendorNotFoundError(f"vendor {path} can't be loaded: {error}") from error
        except OSError as error:
            raise VendorError(f"vendor {path} can't be loaded: {error}") from error
        self._lock = threading.Lock()
        self._devices = 0
        self._services: Mapping[str, Any] = {}

    def function(self, name: str) -> Any:
        """The function called `name`, None if the library has none."""
        _declare(name)
        return getattr(self._symbols, name, None)

    def query(self, name: str) -> str | None:
        """What the text query called `name` answers; None if the library has no such query or it answers NULL."""
        function = self.function(name)
        result = function() if function else None
        return text(result) if result else None

    def open_device(self) -> Device:
        """A device of the library's functions. The first one starts the library, closing the last one ends it.

        VendorError when it can't be started.
        """
        with self._lock:
            if not self._devices:
                self._services = self._start()
            device = _LibraryDevice.from_pointers(self._services)
            device.library = self
            self._devices += 1
        return device

    def release(self) -> None:
        """One device fewer; CallError if the library was to be ended and could not."""
        with self._lock:
            self._devices -= 1
            finalize = self.function("finalizeLibrary") if not self._devices else None
            if finalize and (code := finalize()):
                raise CallError(Error.ErrorOccurred, f"finalizeLibrary of {self.path} returned {code}")

    def _start(self) -> Mapping[str, Any]:
        """Start the library; the functions it offers, by service."""
        try:
            with Device.from_initializer(self._register) as device:
                return device.pointers
        except RuntimeError as error:
            raise VendorError(f"vendor {self.path}: {error}") from error

    def _register(self) -> int:
        """Register what has a well-known name; `initLibrary` may register more, or something else."""
        for service in SERVICES:
            function = self.function(service.well_known or "diopiGetLastErrorString")
            if function:
                check(getattr(lib, service.register)(ffi.cast(service.pointer, function)))
        initialize = self.function("initLibrary")
        return int(initialize()) if initialize else 0


@final
class _LibraryDevice(Device):
    """A device that keeps its library started."""

    __slots__ = ("library",)
    library: Library

    def _release(self, handle: Any) -> None:
        super()._release(handle)
        self.library.release()
