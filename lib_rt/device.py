"""Devices: the functions one vendor provides to the runtime. Several can live in a process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol, Self, final

from diopi_proto.registration import SERVICES, RuntimeFunctions, Service
from lib_rt.library import address, check, ffi, lib, made, pointer, text
from lib_rt.owner import Parent

_COUNTS = ffi.typeof("int64_t[2]")

_NUMBER = {service.name: number for number, service in enumerate(SERVICES)}


class Device(Parent):
    """A device a vendor registered. Closing it closes the streams on it.

    Args:
        functions: what the vendor provides.
        host_addressable: whether device memory can be read and written by the host directly.
    """

    __slots__ = ("_callbacks", "host_addressable")

    def __init__(self, functions: RuntimeFunctions | None = None, *, host_addressable: bool = False) -> None:
        super().__init__()
        self._handle = made(lib.diopirt_device_create, "diopirt_device_t")
        self._callbacks = callbacks(functions) if functions else {}
        self.host_addressable = host_addressable
        for name, callback in self._callbacks.items():
            self._exchange(name, callback)

    @classmethod
    def from_pointers(cls, pointers: Mapping[str, Any], *, host_addressable: bool = False) -> Self:
        """A device of compiled functions: service name → C function pointer (cffi, or its address as a number)."""
        device = cls(host_addressable=host_addressable)
        for name, function in pointers.items():
            device._exchange(name, function)
        return device

    @classmethod
    def from_initializer(cls, initialize: Callable[[], int], *, host_addressable: bool = False) -> Self:
        """A device filled by `initialize`, a vendor library's `initLibrary`, through the registration functions.

        RuntimeError when `initialize` does not return 0.
        """
        device = cls(host_addressable=host_addressable)
        with device._current():
            code = initialize()
        if code:
            device.close()
            raise RuntimeError(f"the vendor's initialisation returned {code}")
        return device

    @property
    def pointers(self) -> dict[str, Any]:
        """The C function of each service that is registered. Not to be asked for while the device is in use."""
        taken = {name: self._exchange(name, None) for name in _NUMBER}
        for name, function in taken.items():
            self._exchange(name, function)
        return {name: function for name, function in taken.items() if function}

    @property
    def live_blocks(self) -> int:
        """Number of tensor memories alive on the device, those in host memory included."""
        return self._live()[0]

    @property
    def live_bytes(self) -> int:
        """Bytes of the tensor memories alive on the device, guards not counted."""
        return self._live()[1]

    @property
    def allocations(self) -> int:
        """Number of pieces of device memory alive: those of tensors, and bare ones."""
        return int(made(lib.diopirt_device_allocations, "int64_t", self.handle))

    @property
    def last_error(self) -> str:
        """The vendor's own last error text."""
        return text(made(lib.diopirt_device_last_error, "char const*", self.handle))

    def malloc(self, nbytes: int) -> int:
        """Address of `nbytes` of bare device memory, without guards; CallError when the vendor has not enough."""
        return address(made(lib.diopirt_device_malloc, "void*", self.handle, nbytes))

    def free(self, address: int) -> None:
        """Free bare device memory."""
        check(lib.diopirt_device_free(self.handle, pointer(address)))

    @contextmanager
    def unregistered(self, name: str) -> Iterator[None]:
        """While it lasts the device lacks the service `name`, a field of `RuntimeFunctions`."""
        previous = self._exchange(name, None)
        try:
            yield
        finally:
            self._exchange(name, previous)

    def _exchange(self, name: str, function: Any) -> Any:
        if name not in _NUMBER:
            raise KeyError(f"{name!r} is no service, they are {', '.join(_NUMBER)}")
        previous = ffi.new("diopirt_function_t*")
        new = ffi.cast("diopirt_function_t", function or 0)
        check(lib.diopirt_device_exchange(self.handle, _NUMBER[name], new, previous))
        return previous[0]

    def _live(self) -> tuple[int, int]:
        counts = ffi.new(_COUNTS)
        check(lib.diopirt_device_live(self.handle, counts, counts + 1))
        return counts[0], counts[1]

    @contextmanager
    def _current(self) -> Iterator[None]:
        with _registration_lock:
            previous = lib.diopirt_device_current()
            check(lib.diopirt_device_use(self.handle))
            try:
                yield
            finally:
                check(lib.diopirt_device_use(previous))

    def _release(self, handle: Any) -> None:
        for stream in self._living():
            stream.close()
        check(lib.diopirt_device_destroy(handle))


class OnDevice(Protocol):
    """Anything that belongs to a device and has a handle: a context, a tensor, a generator."""

    @property
    def device(self) -> Device:
        """Where it is."""

    @property
    def handle(self) -> Any:
        """Its C handle, a cffi pointer."""


_registration_lock = threading.Lock()

_NUMERIC = {"diopiStreamHandle_t*": "uintptr_t*", "uint64_t": "uint64_t", "int32_t": "int32_t", "void": "void"}
"""The C types of services as callbacks have them; all others are pointers, which Python gets cheaper as numbers."""


def _numeric_signature(service: Service) -> str:
    returns, *arguments = (
        _NUMERIC.get(kind, "uintptr_t") for kind in (service.returns, *(kind for kind, _ in service.arguments))
    )
    return f"{returns}(*)({', '.join(arguments) or 'void'})"


@final
class _ErrorText(threading.local):
    """The last error of each thread: an exception's text until it was read, and the C string handed out last."""

    raised = ""
    handed_out: Any = None


def compiled(name: str, function: Any) -> Any:
    """A C function that serves as `name`, for `RuntimeFunctions`: called from Python it takes numbers."""
    return ffi.cast(_numeric_signature(SERVICES[_NUMBER[name]]), function)


def callbacks(functions: RuntimeFunctions) -> dict[str, Any]:
    """The C functions through which a runtime calls `functions`, by service; they live as long as the result."""
    errors = _ErrorText()
    provided = ((service, getattr(functions, service.name)) for service in SERVICES)
    return {
        service.name: _callback(service, function, errors) for service, function in provided if function is not None
    }


def _callback(service: Service, function: Any, errors: _ErrorText) -> Any:
    if isinstance(function, ffi.CData):
        return function
    return ffi.callback(_numeric_signature(service), _wrapper(service)(function, errors))


def _caught(function: Callable[..., Any], errors: _ErrorText, failure: int | None) -> Callable[..., Any]:
    """`function`, returning `failure` instead of raising."""

    def call(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except Exception as error:
            errors.raised = f"{type(error).__name__}: {error}"
            return failure

    return call


def _coded(function: Callable[..., int | None], errors: _ErrorText) -> Callable[..., int]:
    return _caught(lambda *arguments: function(*arguments) or 0, errors, 1)


def _created(function: Callable[[], int], errors: _ErrorText) -> Callable[[Any], int]:
    def create(result: Any) -> int:
        result[0] = function()
        return 0

    return _caught(create, errors, 1)


def _allocated(function: Callable[[int], int], errors: _ErrorText) -> Callable[[int], int]:
    return _caught(function, errors, 0)


def _freed(function: Callable[[int], None], errors: _ErrorText) -> Callable[[int], None]:
    return _caught(function, errors, None)


def _explained(function: Callable[[], str], errors: _ErrorText) -> Callable[[], int]:
    def last_error() -> int:
        latest, errors.raised = errors.raised or function(), ""
        errors.handed_out = ffi.new("char[]", latest.encode())
        return address(errors.handed_out)

    return _caught(last_error, errors, 0)


_Wrapper = Callable[[Any, _ErrorText], Callable[..., Any]]

_WRAPPERS: dict[str, _Wrapper] = {
    "int32_t": _coded,
    "void*": _allocated,
    "void": _freed,
    "const char*": _explained,
}
"""How a function is made one that C can call, by what its service returns."""


def _wrapper(service: Service) -> _Wrapper:
    return _created if service.gives_by_pointer else _WRAPPERS[service.returns]
