"""Streams: the queues of a device. Work on one keeps its order; between streams there is none."""

from __future__ import annotations

from typing import Any, Self

from lib_rt.device import Device
from lib_rt.library import address, check, lib, made, pointer
from lib_rt.owner import Owner, Parent


class Stream(Parent):
    """A stream made by the vendor. Closing it closes the contexts on it and waits for its work."""

    __slots__ = ("device",)

    def __init__(self, device: Device) -> None:
        self._own(device, made(lib.diopirt_stream_create, "diopirt_stream_t", device.handle))

    @classmethod
    def taken(cls, device: Device, handle: Any) -> Self:
        """The stream behind `handle`, which is a context's no longer; None for one that is destroyed."""
        stream = cls.__new__(cls)
        stream._own(device, handle)
        return stream

    def _own(self, device: Device, handle: Any) -> None:
        super().__init__()
        self._handle = handle
        self.device = device
        device._add(self)

    @property
    def native(self) -> int:
        """The vendor's own handle, `diopiStreamHandle_t`, as a number."""
        return address(made(lib.diopirt_stream_native, "diopiStreamHandle_t", self.handle))

    def synchronize(self) -> None:
        """Wait until everything enqueued on the stream is done."""
        check(lib.diopirt_stream_synchronize(self.handle))

    def h2d(self, destination: int, source: int, nbytes: int) -> None:
        """Enqueue a bare copy of `nbytes` from host to device memory; both must live until it is done."""
        self._copy(lib.diopirt_h2d_service, destination, source, nbytes)

    def d2h(self, destination: int, source: int, nbytes: int) -> None:
        """As `h2d`, from device to host memory."""
        self._copy(lib.diopirt_d2h_service, destination, source, nbytes)

    def d2d(self, destination: int, source: int, nbytes: int) -> None:
        """As `h2d`, within device memory."""
        self._copy(lib.diopirt_d2d_service, destination, source, nbytes)

    def _copy(self, service: int, destination: int, source: int, nbytes: int) -> None:
        check(lib.diopirt_stream_copy(self.handle, service, pointer(destination), pointer(source), nbytes))

    def _release(self, handle: Any) -> None:
        for context in self._living():
            Owner.close(context)  # not Context.close, which would close this stream
        check(lib.diopirt_stream_destroy(handle))
        self.device._remove(self)
