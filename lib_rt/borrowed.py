"""Wrappers for contexts and generators that belong to a framework, and that an operator receives in a call.

A vendor that is written in Python receives handles of the framework that calls it. The objects of this module wrap the
handles, so that the vendor can use them like objects of `lib_rt`. The framework keeps ownership: closing a wrapper
releases nothing.

- Only the framework understands its handles. Therefore every query of a handle calls the framework's implementation of
  `diopirt.h`.
- The framework allocates memory and creates streams with the functions that the vendor registered. Therefore copies and
  synchronization also call the vendor's registered functions.
"""

from __future__ import annotations

from typing import Any, final

from diopi_proto import types
from diopi_proto.registration import SERVICES, RuntimeFunctions
from diopi_proto.types import Error
from lib_rt.context import Context
from lib_rt.device import Device
from lib_rt.dtypes import Array
from lib_rt.errors import CallError
from lib_rt.generator import Generator
from lib_rt.library import address, array_pointer, call_for_output, ffi, pointer
from lib_rt.stream import Stream
from lib_rt.tensor import Tensor

_ERROR_IF_MISSING = {service.name: service.missing for service in SERVICES}
"""The error code for a call of a function that the vendor has not registered, by the name of the function."""


@final
class BorrowedDevice(Device):
    """The device of the vendor that a framework calls.

    The framework has no handle for a device, so `_handle` is None.

    Args:
        functions: The runtime functions that the vendor registered.
        api: An object whose attributes are the framework's functions of `diopirt.h`.
        host_addressable: Whether the host can read and write device memory directly.
    """

    __slots__ = ("api", "functions")

    def __init__(self, functions: RuntimeFunctions, api: Any, *, host_addressable: bool = False) -> None:
        self._handle = None
        self.functions = functions
        self.api = api
        self.host_addressable = host_addressable

    def call_service(self, service: str, *arguments: int) -> None:
        """Call the vendor's function for `service`.

        Args:
            service: Name of a field of `RuntimeFunctions`.
            *arguments: Handles, addresses and byte counts, as the C function takes them.

        Raises:
            CallError: The vendor does not provide the function, or it returns an error code.
        """
        function = getattr(self.functions, service)
        if function is None:
            raise CallError(_ERROR_IF_MISSING[service], f"the vendor has no {service}")
        if code := function(*arguments):
            reason = self.functions.last_error() if self.functions.last_error else ""
            raise CallError(Error.ErrorOccurred, f"{service} returned {code}: {reason}")


@final
class BorrowedStream(Stream):
    """The stream of a borrowed context. Copies go through the vendor's registered functions.

    `diopirt.h` has no functions of streams that are independent of a context, so `_handle` is None.

    Args:
        device: The vendor's device.
        native: The vendor's stream handle, as a number.
    """

    __slots__ = ("_native",)

    def __init__(self, device: BorrowedDevice, native: int) -> None:
        self._handle = None
        self.device = device
        self._native = native

    def __del__(self) -> None:
        """Do nothing: the framework owns the stream."""

    @property
    def native(self) -> int:
        """The vendor's stream handle, as a number."""
        return self._native

    def synchronize(self) -> None:
        """Wait until all work enqueued on the stream is complete."""
        self._call_service("stream_sync", self._native)

    def h2d(self, destination: int, source: int, nbytes: int) -> None:
        """Enqueue a copy of `nbytes` from host address `source` to device address `destination`."""
        self._call_service("h2d", self._native, destination, source, nbytes)

    def d2h(self, destination: int, source: int, nbytes: int) -> None:
        """Enqueue a copy of `nbytes` from device address `source` to host address `destination`."""
        self._call_service("d2h", self._native, destination, source, nbytes)

    def d2d(self, destination: int, source: int, nbytes: int) -> None:
        """Enqueue a copy of `nbytes` between two device addresses."""
        self._call_service("d2d", self._native, destination, source, nbytes)

    def _call_service(self, service: str, *arguments: int) -> None:
        """Call the vendor's function for `service`, see `BorrowedDevice.call_service`."""
        assert isinstance(self.device, BorrowedDevice)
        self.device.call_service(service, *arguments)


@final
class BorrowedContext(Context):
    """A context of the framework, which owns it.

    Args:
        device: The vendor's device in the framework.
        handle: The framework's context handle, a cffi pointer.
        stream: The vendor's stream handle as a number; queried from the framework if None.
    """

    __slots__ = ("_native", "api")

    def __init__(self, device: BorrowedDevice, handle: Any, stream: int | None = None) -> None:
        self.device: BorrowedDevice = device
        self.api = device.api
        self._handle = handle
        self._stream = None
        self._owns_stream = False
        if stream is None:
            stream = address(call_for_output(self.api.diopiGetStream, "diopiStreamHandle_t", handle))
        self._native = stream

    def _wrap_stream(self) -> BorrowedStream:
        """Return an object for the stream of the context; the framework keeps the ownership of the stream."""
        return BorrowedStream(self.device, self._native)

    def synchronize(self) -> None:
        """Wait until all work enqueued on the context's stream is complete."""
        self.device.call_service("stream_sync", self._native)

    def fetch(self, tensor: Tensor, start: int, span: Array) -> None:
        """Copy `span.nbytes` bytes of the tensor's storage, from byte `start`, into `span`; waits for the stream."""
        source, destination = _storage_address(tensor) + start, address(array_pointer(span))
        if tensor.memory_kind is types.Device.device:
            self.stream.d2h(destination, source, span.nbytes)
        self.stream.synchronize()
        if tensor.memory_kind is types.Device.host:
            ffi.memmove(pointer(destination), pointer(source), span.nbytes)

    def store(self, tensor: Tensor, start: int, span: Array) -> None:
        """Copy `span` to byte `start` of the tensor's storage; waits for the stream."""
        source, destination = address(array_pointer(span)), _storage_address(tensor) + start
        if tensor.memory_kind is types.Device.device:
            self.stream.h2d(destination, source, span.nbytes)
        self.stream.synchronize()
        if tensor.memory_kind is types.Device.host:
            ffi.memmove(pointer(destination), pointer(source), span.nbytes)

    def _release(self, handle: Any) -> None:
        """Do nothing: the framework owns the context."""

    def __del__(self) -> None:
        """Do nothing: the framework owns the context."""


@final
class BorrowedGenerator(Generator):
    """A random generator of the framework, which owns it.

    Args:
        device: The vendor's device in the framework.
        handle: The framework's generator handle, a cffi pointer.
    """

    __slots__ = ("api",)

    def __init__(self, device: BorrowedDevice, handle: Any) -> None:
        self.device = device
        self.api = device.api
        self._handle = handle

    def _release(self, handle: Any) -> None:
        """Do nothing: the framework owns the generator."""


def _storage_address(tensor: Tensor) -> int:
    """Return the address of the first byte of the tensor's storage."""
    return tensor.data_ptr - tensor.storage_offset * tensor.element_size
