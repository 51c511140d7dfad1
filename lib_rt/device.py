"""Devices: the functions one vendor provides to the runtime. Several can live in a process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self
from weakref import WeakSet

from diopi_proto.registration import SERVICES
from lib_rt.library import address, check, ffi, lib, made, pointer, text
from lib_rt.owner import Owner

if TYPE_CHECKING:
    from lib_rt.stream import Stream

_NUMBER = {service.name: number for number, service in enumerate(SERVICES)}


@dataclass(frozen=True)
class RuntimeFunctions:
    """What a vendor written in Python provides; None for what it lacks. Addresses and stream handles are numbers.

    Functions that return None succeed; any number but 0 they return, and any exception they raise, is a failure.
    """

    stream_create: Callable[[], int] | None = None
    stream_destroy: Callable[[int], int | None] | None = None
    stream_sync: Callable[[int], int | None] | None = None
    malloc: Callable[[int], int] | None = None
    """Bytes → address, 0 when there is not enough memory."""
    free: Callable[[int], None] | None = None
    h2d: Callable[[int, int, int, int], int | None] | None = None
    """Stream, destination, source, bytes; returns before the copy is done if it likes."""
    d2h: Callable[[int, int, int, int], int | None] | None = None
    d2d: Callable[[int, int, int, int], int | None] | None = None
    last_error: Callable[[], str] | None = None


class Device(Owner):
    """A device a vendor registered. Closing it closes the streams on it.

    Args:
        functions: what the vendor provides.
        host_addressable: whether device memory can be read and written by the host directly.
    """

    __slots__ = ("_callbacks", "_streams", "host_addressable")

    def __init__(self, functions: RuntimeFunctions | None = None, *, host_addressable: bool = False) -> None:
        self._handle = made(lib.diopirt_device_create, "diopirt_device_t")
        self._streams: WeakSet[Stream] = WeakSet()
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
        counts = ffi.new("int64_t[2]")
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
        for stream in list(self._streams):
            stream.close()
        check(lib.diopirt_device_destroy(handle))


_registration_lock = threading.Lock()

_NUMERIC_SIGNATURES = {
    "stream_create": "int32_t(uintptr_t*)",
    "stream_destroy": "int32_t(uintptr_t)",
    "stream_sync": "int32_t(uintptr_t)",
    "malloc": "uintptr_t(uint64_t)",
    "free": "void(uintptr_t)",
    "h2d": "int32_t(uintptr_t, uintptr_t, uintptr_t, uint64_t)",
    "d2h": "int32_t(uintptr_t, uintptr_t, uintptr_t, uint64_t)",
    "d2d": "int32_t(uintptr_t, uintptr_t, uintptr_t, uint64_t)",
    "last_error": "uintptr_t(void)",
}
"""The services with every pointer as a number, which Python callbacks get cheaper than as a pointer object."""


class _ErrorText(threading.local):
    """The last error of each thread: an exception's text until it was read, and the C string handed out last."""

    raised = ""
    handed_out: Any = None


def callbacks(functions: RuntimeFunctions) -> dict[str, Any]:
    """The C functions through which a runtime calls `functions`, by service; they live as long as the result."""
    errors = _ErrorText()
    wrapped = {
        field.name: _WRAPPERS[field.name](function, errors)
        for field in fields(functions)
        if (function := getattr(functions, field.name)) is not None
    }
    return {name: ffi.callback(_NUMERIC_SIGNATURES[name], function) for name, function in wrapped.items()}


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


_WRAPPERS: dict[str, Callable[[Any, _ErrorText], Callable[..., Any]]] = {
    **dict.fromkeys(_NUMBER, _coded),
    "stream_create": _created,
    "malloc": _allocated,
    "free": _freed,
    "last_error": _explained,
}
