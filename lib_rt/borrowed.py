"""What a framework lends a vendor for one call: contexts, tensors and generators of its own runtime.

Only that runtime's functions understand the handles, so they answer for them; bytes are moved and streams waited for
by the vendor's own functions, with which the framework made its memory and streams. Closing what is borrowed releases
nothing.
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
from lib_rt.library import address, array_pointer, ffi, made, pointer
from lib_rt.stream import Stream
from lib_rt.tensor import Tensor

_MISSING = {service.name: service.missing for service in SERVICES}


@final
class BorrowedDevice(Device):
    """The vendor's device in a framework.

    Args:
        functions: the vendor's.
        api: the functions of `diopirt.h` as the framework provides them, as attributes.
        host_addressable: whether device memory can be read and written by the host directly.
    """

    __slots__ = ("api", "functions")

    def __init__(self, functions: RuntimeFunctions, api: Any, *, host_addressable: bool = False) -> None:
        self._handle = None
        self.functions = functions
        self.api = api
        self.host_addressable = host_addressable

    def serve(self, service: str, *arguments: int) -> None:
        """Call the vendor's function for `service`; CallError if there is none or it fails."""
        function = getattr(self.functions, service)
        if function is None:
            raise CallError(_MISSING[service], f"the vendor has no {service}")
        if code := function(*arguments):
            reason = self.functions.last_error() if self.functions.last_error else ""
            raise CallError(Error.ErrorOccurred, f"{service} returned {code}: {reason}")


@final
class BorrowedStream(Stream):
    """The stream of a borrowed context; `native` is the vendor's own handle."""

    __slots__ = ("_native",)

    def __init__(self, device: BorrowedDevice, native: int) -> None:
        self._handle = None
        self.device = device
        self._native = native

    def __del__(self) -> None:
        """Nothing, as of the context."""

    @property
    def native(self) -> int:
        return self._native

    def synchronize(self) -> None:
        self._serve("stream_sync", self._native)

    def h2d(self, destination: int, source: int, nbytes: int) -> None:
        self._serve("h2d", self._native, destination, source, nbytes)

    def d2h(self, destination: int, source: int, nbytes: int) -> None:
        self._serve("d2h", self._native, destination, source, nbytes)

    def d2d(self, destination: int, source: int, nbytes: int) -> None:
        self._serve("d2d", self._native, destination, source, nbytes)

    def _serve(self, service: str, *arguments: int) -> None:
        assert isinstance(self.device, BorrowedDevice)
        self.device.serve(service, *arguments)


@final
class BorrowedContext(Context):
    """The context behind `handle`, a cffi pointer, on `device`; `stream` is the vendor's own handle, if it is known."""

    __slots__ = ("_native", "api")

    def __init__(self, device: BorrowedDevice, handle: Any, stream: int | None = None) -> None:
        self.device: BorrowedDevice = device
        self.api = device.api
        self._handle = handle
        self._stream = None
        self._owns_stream = False
        if stream is None:
            stream = address(made(self.api.diopiGetStream, "diopiStreamHandle_t", handle))
        self._native = stream

    def _taken(self) -> BorrowedStream:
        return BorrowedStream(self.device, self._native)

    def synchronize(self) -> None:
        self.device.serve("stream_sync", self._native)

    def fetch(self, tensor: Tensor, start: int, span: Array) -> None:
        source, destination = _storage(tensor) + start, address(array_pointer(span))
        if tensor.where is types.Device.device:
            self.stream.d2h(destination, source, span.nbytes)
        self.stream.synchronize()
        if tensor.where is types.Device.host:
            ffi.memmove(pointer(destination), pointer(source), span.nbytes)

    def store(self, tensor: Tensor, start: int, span: Array) -> None:
        source, destination = address(array_pointer(span)), _storage(tensor) + start
        if tensor.where is types.Device.device:
            self.stream.h2d(destination, source, span.nbytes)
        self.stream.synchronize()
        if tensor.where is types.Device.host:
            ffi.memmove(pointer(destination), pointer(source), span.nbytes)

    def _release(self, handle: Any) -> None:
        pass

    def __del__(self) -> None:
        """Nothing, without a detour: one is made for each call."""


@final
class BorrowedGenerator(Generator):
    """The generator behind `handle`, a cffi pointer, on `device`."""

    __slots__ = ("api",)

    def __init__(self, device: BorrowedDevice, handle: Any) -> None:
        self.device = device
        self.api = device.api
        self._handle = handle

    def _release(self, handle: Any) -> None:
        pass


def _storage(tensor: Tensor) -> int:
    """Address of the tensor's storage."""
    return tensor.data_ptr - tensor.storage_offset * tensor.element_size
