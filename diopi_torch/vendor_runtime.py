"""The vendor's own device runtime beneath the PyTorch device: several devices, events, pinned memory, peer copies.

A library exports the 38 functions of the interface in `diopi_proto.device_runtime` as a table. Operators need nine
other functions (`lib_rt.RuntimeFunctions`), which call those of the table for one device.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, final

from diopi_impl.base import BaseVendor
from diopi_torch.memory import MemorySource
from diopi_torch.runtime import DeviceRuntime, RuntimeEvent, RuntimeProperties, RuntimeStream, current_device
from lib_rt import Device, RuntimeFunctions, Stream
from lib_rt.device_runtime_client import READY, DeviceRuntimeClient, MissingFunctionError, RuntimeCallError


@final
class _StreamPriority(threading.local):
    """Whether the stream that this thread is creating has priority."""

    is_high = False


@final
class VendorRuntime(DeviceRuntime):
    """The devices of a vendor with a device runtime.

    Args:
        vendor: the vendor of the operators. The runtime keeps one device of the vendor open, so that the vendor's
            library stays initialized.
        library: the path of the library with the device runtime.

    Attributes:
        client: calls the functions of the library.

    Raises:
        NoDeviceRuntimeError: the library can't be loaded, or has no table of a device runtime.
        RuntimeCallError: the device runtime can't be started.
    """

    has_events = True

    def __init__(self, vendor: BaseVendor, library: Path) -> None:
        self.library = library
        self.client = DeviceRuntimeClient(library)
        self._call_if_present("initializeVendor")
        self.device_count = self.client.call("getDeviceCount")
        self._operators = vendor.open_device()
        self._priority = _StreamPriority()
        self._is_open = True

    def set_device(self, index: int) -> None:
        """Make a device the current device of this thread, also for the vendor's functions."""
        if current_device.index != index:
            self.client.call("setDevice", index)
            current_device.index = index

    def open_device(self, index: int) -> Device:
        """Return a new `lib_rt` device whose functions call the device runtime."""
        call = self.client.call
        functions = RuntimeFunctions(
            stream_create=lambda: self._call_on(index, "createStream", self._priority.is_high),
            stream_destroy=lambda stream: call("destroyStreamOfDevice", stream, index),
            stream_sync=lambda stream: call("syncStream", stream),
            malloc=lambda nbytes: self._call_on(index, "mallocDevice", nbytes, False),
            free=partial(call, "freeDevice"),
            h2d=lambda stream, to, source, nbytes: call("memCopyH2DAsync", stream, nbytes, to, source),
            d2h=lambda stream, to, source, nbytes: call("memCopyD2HAsync", stream, nbytes, to, source),
            d2d=lambda stream, to, source, nbytes: call("memCopyD2DAsync", stream, nbytes, index, to, index, source),
        )
        return Device(functions, host_addressable=self._operators.host_addressable)

    def open_stream(self, device: Device, index: int, *, has_priority: bool) -> Stream:
        """Return a new stream of a device; `index` is the number of the device."""
        self._priority.is_high = has_priority
        try:
            return Stream(device)
        finally:
            self._priority.is_high = False

    def is_idle(self, stream: RuntimeStream) -> bool:
        """Return whether all work on a stream is complete."""
        return bool(self.client.call("isStreamEmpty", stream.handle))

    def create_event(self, *, has_time: bool) -> RuntimeEvent:
        """Return a new event; all events of the interface can record the time."""
        return VendorEvent(self)

    def copy_between_devices(
        self, stream: RuntimeStream, to: tuple[int, int], source: tuple[int, int], nbytes: int
    ) -> None:
        """Enqueue a peer copy; see `DeviceRuntime.copy_between_devices`."""
        self.client.call("memCopyD2DAsync", stream.handle, nbytes, *to, *source)

    def host_memory(self) -> MemorySource:
        """Return the source of pinned memory, which all devices can access."""
        return PinnedMemory(self.client)

    def properties(self, index: int) -> RuntimeProperties:
        """Return the properties of a device."""
        properties = self.client.call("getDeviceProperties", index)
        return RuntimeProperties(
            name=_decode(properties.name),
            total_memory=properties.totalGlobalMem,
            major=properties.major,
            minor=properties.minor,
            multi_processor_count=properties.multiProcessorCount,
        )

    def memory_info(self, index: int) -> tuple[int, int] | None:
        """Return the free and the total memory of a device in bytes, or None if the vendor left the function out."""
        with suppress(MissingFunctionError):
            status = self.client.call("getDeviceStatus", index)
            return status.freeGlobalMem, status.totalGlobalMem
        return None

    def create_event_handle(self, index: int) -> int:
        """Return the handle of a new event of a device."""
        return int(self._call_on(index, "createEvent"))

    def destroy_event_handle(self, handle: int) -> None:
        """Destroy an event; do nothing after `close`, which has destroyed all events."""
        if self._is_open:
            self.client.call("destroyEvent", handle)

    def close(self) -> None:
        """End the vendor's software, after all devices have been closed."""
        self._is_open = False
        self.set_device(0)
        self._operators.close()
        self._call_if_present("finalizeVendor")

    def _call_on(self, index: int, name: str, *inputs: Any) -> Any:
        """Return the output of a function that uses the current device of the thread, called on the device `index`."""
        with self.on_device(index):
            return self.client.call(name, *inputs)

    def _call_if_present(self, name: str) -> None:
        """Call a function that a vendor may leave out."""
        if self.client.has(name):
            self.client.call(name)


def _decode(text: Any) -> str:
    """Return a C string of fixed size as a string."""
    return b"".join(text).partition(b"\0")[0].decode(errors="replace")


@final
class PinnedMemory:
    """Pinned host memory of a device runtime, as an allocator uses it.

    Args:
        client: calls the functions of the device runtime.
    """

    def __init__(self, client: DeviceRuntimeClient) -> None:
        self._client = client

    def malloc(self, nbytes: int) -> int:
        """Return the address of new memory; raise MemoryError if there is not enough."""
        try:
            return int(self._client.call("mallocHost", nbytes))
        except RuntimeCallError as error:
            raise MemoryError(str(error)) from None

    def free(self, address: int) -> None:
        """Free the memory at an address that `malloc` has returned."""
        self._client.call("freeHost", address)


@final
class VendorEvent(RuntimeEvent):
    """An event of the vendor, which the first record creates on the stream's device.

    Args:
        runtime: the runtime.
    """

    def __init__(self, runtime: VendorRuntime) -> None:
        self._runtime = runtime
        self._handle: int | None = None

    def record(self, stream: RuntimeStream) -> None:
        """Record the event on a stream."""
        if self._handle is None:
            self._handle = self._runtime.create_event_handle(stream.device_index)
        self._runtime.client.call("recordEvent", self._handle, stream.handle)

    def delay(self, stream: RuntimeStream) -> None:
        """Let later work on `stream` start only after the event; the host does not wait."""
        if self._handle is not None:
            self._runtime.client.call("streamWaitEvent", stream.handle, self._handle)

    def synchronize(self) -> None:
        """Wait on the host until the work before the event is complete."""
        if self._handle is not None:
            self._runtime.client.call("waitEvent", self._handle)

    def query(self) -> bool:
        """Return whether the work before the event is complete."""
        return self._handle is None or self._runtime.client.call("getEventStatus", self._handle) == READY

    def milliseconds_until(self, end: RuntimeEvent) -> float | None:
        """Return the time between the two records, or None if one of them was not recorded."""
        if not isinstance(end, VendorEvent) or self._handle is None or end._handle is None:
            return None
        return float(self._runtime.client.call("eventElapsedTime", self._handle, end._handle))

    def __del__(self) -> None:
        if self._handle is not None:
            self._runtime.destroy_event_handle(self._handle)
