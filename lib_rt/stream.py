"""Streams: the work queues of a device. Work on one stream runs in order; separate streams are unordered."""

from __future__ import annotations

from typing import Any, Self

from lib_rt.device import Device
from lib_rt.library import address, call_for_output, check, lib, pointer
from lib_rt.owner import Owner, Parent


class Stream(Parent):
    """A stream that the vendor created. Closing it closes the contexts on it and waits for its work."""

    __slots__ = ("device",)

    def __init__(self, device: Device) -> None:
        self._attach(device, call_for_output(lib.diopirt_stream_create, "diopirt_stream_t", device.handle))

    @classmethod
    def adopt(cls, device: Device, handle: Any) -> Self:
        """Take over the stream behind `handle`, which a context owned; None stands for a destroyed stream."""
        stream = cls.__new__(cls)
        stream._attach(device, handle)
        return stream

    def _attach(self, device: Device, handle: Any) -> None:
        """Set the handle and the device, and register the stream with the device."""
        super().__init__()
        self._handle = handle
        self.device = device
        device._add(self)

    @property
    def native(self) -> int:
        """The vendor's stream handle, `diopiStreamHandle_t`, as a number."""
        return address(call_for_output(lib.diopirt_stream_native, "diopiStreamHandle_t", self.handle))

    def synchronize(self) -> None:
        """Wait until all work enqueued on the stream is complete."""
        check(lib.diopirt_stream_synchronize(self.handle))

    def h2d(self, destination: int, source: int, nbytes: int) -> None:
        """Enqueue a copy of `nbytes` from host to device memory; both must stay allocated until it is complete."""
        self._copy(lib.diopirt_h2d_service, destination, source, nbytes)

    def d2h(self, destination: int, source: int, nbytes: int) -> None:
        """Enqueue a copy of `nbytes` from device to host memory; both must stay allocated until it is complete."""
        self._copy(lib.diopirt_d2h_service, destination, source, nbytes)

    def d2d(self, destination: int, source: int, nbytes: int) -> None:
        """Enqueue a copy of `nbytes` within device memory; both must stay allocated until it is complete."""
        self._copy(lib.diopirt_d2d_service, destination, source, nbytes)

    def _copy(self, service: int, destination: int, source: int, nbytes: int) -> None:
        """Enqueue a copy of `nbytes` by one of the three copy services, from the address `source` to `destination`."""
        check(lib.diopirt_stream_copy(self.handle, service, pointer(destination), pointer(source), nbytes))

    def _release(self, handle: Any) -> None:
        """Close the contexts on the stream, and destroy it."""
        for context in self._living_children():
            Owner.close(context)  # not Context.close, which would close this stream
        check(lib.diopirt_stream_destroy(handle))
        self.device._remove(self)
