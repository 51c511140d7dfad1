"""Load, initialize and finalize a compiled vendor library.

Importing `lib_rt` loads the runtime with global symbols. The library's references to the runtime, by `-ldiopirt` or
undefined, are bound to that copy. The library's symbols are bound immediately: with lazy binding, the first use of a
missing symbol would terminate the process.
"""

from __future__ import annotations

import ctypes
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
    """Declare `initLibrary` and `finalizeLibrary` to cffi, once."""
    ffi.cdef(lifetime_cdef())


@cache
def _declare(name: str) -> None:
    """Declare a standard function to cffi; declaring all of them would take most of a second."""
    if prototype := prototypes().get(name):
        ffi.cdef(f"{declaration(prototype)};")


RESULT_TYPES = (
    *("diopirt_device_t", "diopirt_stream_t", "diopiContextHandle_t", "diopiStreamHandle_t", "diopiTensorHandle_t"),
    *("diopiGeneratorHandle_t", "diopiConstTensorHandle_t", "diopiSize_t", "diopiDtype_t", "diopiDevice_t"),
    *("void*", "void const*", "char const*", "int64_t", "size_t", "bool"),
)
"""The types of the runtime's results, which cffi needs milliseconds to parse for the first time."""


def prepare() -> None:
    """Declare the names that every library needs, so that forks of this process inherit the declarations."""
    _declare_lifetime()
    for name in TEXT_QUERIES:
        _declare(name)
    for kind in (*(service.pointer for service in SERVICES), *(f"{kind}*" for kind in RESULT_TYPES)):
        ffi.typeof(kind)


@final
class Library:
    """A loaded vendor library. The constructor raises VendorError with the linker's reason if loading fails."""

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
        """Return the function called `name`; None if the library has none."""
        _declare(name)
        return getattr(self._symbols, name, None)

    def exports(self, name: str) -> bool:
        """Return whether the library exports a symbol that is not a function of the standard."""
        return hasattr(ctypes.CDLL(str(self.path.resolve())), name)

    def query(self, name: str) -> str | None:
        """Return the text that the query called `name` returns; None if there is no query or it returns NULL."""
        function = self.function(name)
        result = function() if function else None
        return text(result) if result else None

    def open_device(self) -> Device:
        """Open and return a device with the library's functions.

        The first device initializes the library, and closing the last one finalizes it. VendorError is raised if the
        initialization fails.

        Returns:
            The device.
        """
        with self._lock:
            if not self._devices:
                self._services = self._start()
            device = _LibraryDevice.from_pointers(self._services)
            device.library = self
            self._devices += 1
        return device

    def release(self) -> None:
        """Release a device, and finalize the library after the last one; raise CallError if that fails."""
        with self._lock:
            self._devices -= 1
            finalize = self.function("finalizeLibrary") if not self._devices else None
            if finalize and (code := finalize()):
                raise CallError(Error.ErrorOccurred, f"finalizeLibrary of {self.path} returned {code}")

    def _start(self) -> Mapping[str, Any]:
        """Initialize the library and return its functions by service; raise VendorError if it fails."""
        try:
            with Device.from_initializer(self._register) as device:
                return device.pointers
        except RuntimeError as error:
            raise VendorError(f"vendor {self.path}: {error}") from error

    def _register(self) -> int:
        """Register the functions with well-known names; `initLibrary` may register others."""
        for service in SERVICES:
            function = self.function(service.well_known or "diopiGetLastErrorString")
            if function:
                check(getattr(lib, service.register)(ffi.cast(service.pointer, function)))
        initialize = self.function("initLibrary")
        return int(initialize()) if initialize else 0


@final
class _LibraryDevice(Device):
    """A device that keeps its library initialized."""

    __slots__ = ("library",)
    library: Library

    def _release(self, handle: Any) -> None:
        """Destroy the device, and release the library."""
        super()._release(handle)
        self.library.release()
