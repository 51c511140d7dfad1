"""Devices: the runtime functions of one vendor. A process can have several devices."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol, Self, final

from diopi_proto.registration import SERVICES, RuntimeFunctions, Service
from lib_rt.library import address, call_for_output, check, ffi, lib, pointer, text
from lib_rt.owner import Parent

_COUNTS = ffi.typeof("int64_t[2]")
"""The C type of two integers."""

_SERVICE_NUMBER = {service.name: number for number, service in enumerate(SERVICES)}
"""The number by which the C core identifies a service, by the name of the service."""


class Device(Parent):
    """A device with the runtime functions of a vendor. Closing the device closes its streams.

    Args:
        functions: The vendor's runtime functions; a device without any if None.
        host_addressable: Whether the host can read and write device memory directly.
    """

    __slots__ = ("_callbacks", "host_addressable")

    def __init__(self, functions: RuntimeFunctions | None = None, *, host_addressable: bool = False) -> None:
        super().__init__()
        self._handle = call_for_output(lib.diopirt_device_create, "diopirt_device_t")
        self._callbacks = make_callbacks(functions) if functions else {}
        self.host_addressable = host_addressable
        for name, callback in self._callbacks.items():
            self._replace_service(name, callback)

    @classmethod
    def from_pointers(cls, pointers: Mapping[str, Any], *, host_addressable: bool = False) -> Self:
        """Create a device from compiled functions.

        Args:
            pointers: C function pointers (cffi pointers or addresses) by the names of the fields of `RuntimeFunctions`.
            host_addressable: Whether the host can read and write device memory directly.

        Returns:
            The device.
        """
        device = cls(host_addressable=host_addressable)
        for name, function in pointers.items():
            device._replace_service(name, function)
        return device

    @classmethod
    def from_initializer(cls, initialize: Callable[[], int], *, host_addressable: bool = False) -> Self:
        """Create a device that `initialize` fills through the C registration functions.

        Args:
            initialize: A vendor library's `initLibrary`; returns 0 on success.
            host_addressable: Whether the host can read and write device memory directly.

        Returns:
            The device.

        Raises:
            RuntimeError: `initialize` returned a value other than 0.
        """
        device = cls(host_addressable=host_addressable)
        with device._use_for_registration():
            code = initialize()
        if code:
            device.close()
            raise RuntimeError(f"the vendor's initLibrary returned {code}; 0 is expected")
        return device

    @property
    def pointers(self) -> dict[str, Any]:
        """The registered C functions by service name. Do not read this property while the device is in use."""
        functions = {name: self._replace_service(name, None) for name in _SERVICE_NUMBER}
        for name, function in functions.items():
            self._replace_service(name, function)
        return {name: function for name, function in functions.items() if function}

    @property
    def live_blocks(self) -> int:
        """Number of live tensor allocations, including those in host memory."""
        return self._live_allocations()[0]

    @property
    def live_bytes(self) -> int:
        """Size in bytes of the live tensor allocations, without their guard zones."""
        return self._live_allocations()[1]

    @property
    def allocations(self) -> int:
        """Number of live device allocations: those of tensors and those of `malloc`."""
        return int(call_for_output(lib.diopirt_device_allocations, "int64_t", self.handle))

    @property
    def last_error(self) -> str:
        """The text that the vendor's `last_error` function returns."""
        return text(call_for_output(lib.diopirt_device_last_error, "char const*", self.handle))

    def malloc(self, nbytes: int) -> int:
        """Allocate `nbytes` of device memory without guard zones.

        Returns:
            The address of the memory.

        Raises:
            CallError: The vendor does not have enough memory, or no allocation function.
        """
        return address(call_for_output(lib.diopirt_device_malloc, "void*", self.handle, nbytes))

    def free(self, address: int) -> None:
        """Free memory that `malloc` returned."""
        check(lib.diopirt_device_free(self.handle, pointer(address)))

    @contextmanager
    def unregistered(self, name: str) -> Iterator[None]:
        """Unregister the service `name`, a field of `RuntimeFunctions`, for the duration of the `with` block."""
        previous = self._replace_service(name, None)
        try:
            yield
        finally:
            self._replace_service(name, previous)

    def _replace_service(self, name: str, function: Any) -> Any:
        """Return the previous function of the service `name`, after registering `function` (None for no function).

        Raises:
            KeyError: There is no such service.
        """
        if name not in _SERVICE_NUMBER:
            raise KeyError(f"{name!r} is not a runtime service; the services are {', '.join(_SERVICE_NUMBER)}")
        previous = ffi.new("diopirt_function_t*")
        new = ffi.cast("diopirt_function_t", function or 0)
        check(lib.diopirt_device_exchange(self.handle, _SERVICE_NUMBER[name], new, previous))
        return previous[0]

    def _live_allocations(self) -> tuple[int, int]:
        """Return the number and the total size in bytes of the live tensor allocations."""
        counts = ffi.new(_COUNTS)
        check(lib.diopirt_device_live(self.handle, counts, counts + 1))
        return counts[0], counts[1]

    @contextmanager
    def _use_for_registration(self) -> Iterator[None]:
        """Direct the C registration functions to this device for the duration of the `with` block."""
        with _registration_lock:
            previous = lib.diopirt_device_current()
            check(lib.diopirt_device_use(self.handle))
            try:
                yield
            finally:
                check(lib.diopirt_device_use(previous))

    def _release(self, handle: Any) -> None:
        """Close the streams and destroy the device."""
        for stream in self._living_children():
            stream.close()
        check(lib.diopirt_device_destroy(handle))


class OnDevice(Protocol):
    """An object that belongs to a device and has a handle: a context, a tensor or a generator."""

    @property
    def device(self) -> Device:
        """The device that the object belongs to."""

    @property
    def handle(self) -> Any:
        """The object's C handle, a cffi pointer."""


_registration_lock = threading.Lock()
"""Protects the registration of a vendor, because two threads may register at the same time."""

_NUMERIC = {"diopiStreamHandle_t*": "uintptr_t*", "uint64_t": "uint64_t", "int32_t": "int32_t", "void": "void"}
"""C types in the signatures of callbacks. Others are pointers, which are passed to Python as numbers."""


def _numeric_signature(service: Service) -> str:
    """Return the C signature of a service with pointers as numbers, for callbacks in Python."""
    returns, *arguments = (
        _NUMERIC.get(kind, "uintptr_t") for kind in (service.returns, *(kind for kind, _ in service.arguments))
    )
    return f"{returns}(*)({', '.join(arguments) or 'void'})"


@final
class _ErrorText(threading.local):
    """The last error of each thread.

    Attributes:
        message: Text of the last exception that `last_error` has not returned yet; empty if there is none.
        c_string: The C string that was returned last; keeps its memory alive.
    """

    message = ""
    c_string: Any = None


def cast_to_service(name: str, function: Any) -> Any:
    """Return C function `function` with the signature of service `name`; callers in Python pass numbers to it."""
    return ffi.cast(_numeric_signature(SERVICES[_SERVICE_NUMBER[name]]), function)


def make_callbacks(functions: RuntimeFunctions) -> dict[str, Any]:
    """Return C functions that call `functions`, by service name; keep the result alive while C uses them."""
    errors = _ErrorText()
    provided = ((service, getattr(functions, service.name)) for service in SERVICES)
    return {
        service.name: _callback(service, function, errors) for service, function in provided if function is not None
    }


def _callback(service: Service, function: Any, errors: _ErrorText) -> Any:
    """Return a C function that calls `function`; a C function is returned unchanged."""
    if isinstance(function, ffi.CData):
        return function
    return ffi.callback(_numeric_signature(service), _wrapper(service)(function, errors))


def _return_on_error(function: Callable[..., Any], errors: _ErrorText, failure: int | None) -> Callable[..., Any]:
    """Return a function that calls `function`; if it raises, the exception is stored and `failure` is returned."""

    def call(*arguments: Any) -> Any:
        """Call the function; store an exception and return `failure`."""
        try:
            return function(*arguments)
        except Exception as error:
            errors.message = f"{type(error).__name__}: {error}"
            return failure

    return call


def _wrap_status(function: Callable[..., int | None], errors: _ErrorText) -> Callable[..., int]:
    """Return a function for services that return a status: 0 on success, 1 on failure."""
    return _return_on_error(lambda *arguments: function(*arguments) or 0, errors, 1)


def _wrap_create(function: Callable[[], int], errors: _ErrorText) -> Callable[[Any], int]:
    """Return a function for services that write a handle to a pointer and return a status."""

    def create(result: Any) -> int:
        """Write the handle that the function returns to `result`."""
        result[0] = function()
        return 0

    return _return_on_error(create, errors, 1)


def _wrap_malloc(function: Callable[[int], int], errors: _ErrorText) -> Callable[[int], int]:
    """Return a function for `malloc`: it returns NULL on failure."""
    return _return_on_error(function, errors, 0)


def _wrap_free(function: Callable[[int], None], errors: _ErrorText) -> Callable[[int], None]:
    """Return a function for services without a result; an exception is only stored."""
    return _return_on_error(function, errors, None)


def _wrap_last_error(function: Callable[[], str], errors: _ErrorText) -> Callable[[], int]:
    """Return a function for `last_error`: it returns the address of a C string, and reports stored exceptions first."""

    def last_error() -> int:
        """Return the address of the text of the last error."""
        message, errors.message = errors.message or function(), ""
        errors.c_string = ffi.new("char[]", message.encode())
        return address(errors.c_string)

    return _return_on_error(last_error, errors, 0)


_Wrapper = Callable[[Any, _ErrorText], Callable[..., Any]]
"""Makes a Python function callable from C; stores the text of errors that it raises."""

_WRAPPERS: dict[str, _Wrapper] = {
    "int32_t": _wrap_status,
    "void*": _wrap_malloc,
    "void": _wrap_free,
    "const char*": _wrap_last_error,
}
"""Wrappers that make a Python function callable from C, by the return type of the service."""


def _wrapper(service: Service) -> _Wrapper:
    """Return the wrapper that makes a Python function callable from C as this service."""
    return _wrap_create if service.returns_by_pointer else _WRAPPERS[service.returns]
