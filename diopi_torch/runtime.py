"""The interface between the PyTorch device and the software that manages devices, streams, events and memory.

`DeviceRuntime` has two implementations:

- `RegisteredRuntime` uses the nine functions that every vendor of operators registers. They know one device, cannot
  tell whether a stream has finished, and have no events. Where a program orders streams, the host waits.
- `VendorRuntime` (`vendor_runtime.py`) uses the 38 functions of the vendor's own device runtime.

Each thread has a current device, which `current_device.index` names. `DeviceRuntime.set_device` changes it.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol, final

from diopi_impl.base import BaseVendor
from diopi_impl.host_runtime import HostRuntime
from diopi_torch.memory import MemorySource
from lib_rt import Device, Stream


@final
class CurrentDevice(threading.local):
    """The device that a thread has selected; a new thread begins with device 0.

    Attributes:
        index: the number of the device.
    """

    index = 0


current_device = CurrentDevice()
"""The current device of each thread."""


@final
@dataclass(frozen=True, kw_only=True)
class RuntimeProperties:
    """What a runtime knows about a device.

    Attributes:
        name: the name of the device; empty if it is unknown.
        total_memory: the size of the memory in bytes; None if it is unknown.
        major, minor: the version of the hardware; 0 if it is unknown.
        multi_processor_count: the number of processors; 0 if it is unknown.
    """

    name: str = ""
    total_memory: int | None = None
    major: int = 0
    minor: int = 0
    multi_processor_count: int = 0


class RuntimeStream(Protocol):
    """A stream as runtimes and events need it; `DeviceStream` implements it."""

    @property
    def device_index(self) -> int:
        """The number of the stream's device."""

    @property
    def handle(self) -> int:
        """The vendor's handle of the stream."""

    def synchronize(self) -> None:
        """Wait until all enqueued work is complete."""


class RuntimeEvent(ABC):
    """A point in the work of a stream; an event that was never recorded delays nothing."""

    @abstractmethod
    def record(self, stream: RuntimeStream) -> None:
        """Move the event to the end of the current work of a stream."""

    @abstractmethod
    def delay(self, stream: RuntimeStream) -> None:
        """Let later work on `stream` start only after the event."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait on the host until the work before the event is complete."""

    @abstractmethod
    def query(self) -> bool:
        """Return whether the work before the event is complete."""

    @abstractmethod
    def milliseconds_until(self, end: RuntimeEvent) -> float | None:
        """Return the time from this event to `end`, or None if one of them has not recorded the time."""


class DeviceRuntime(ABC):
    """The devices of a process and what they can do besides operators.

    Attributes:
        device_count: the number of devices.
        has_events: whether events and queries do not wait, and pinned memory lets copies run asynchronously.
        library: the path of the vendor's library with this runtime; None if there is none.
    """

    has_events: ClassVar[bool]
    device_count: int
    library: Path | None = None

    @abstractmethod
    def set_device(self, index: int) -> None:
        """Make a device the current device of this thread."""

    @abstractmethod
    def open_device(self, index: int) -> Device:
        """Return a new `lib_rt` device that operators use for this device; the caller closes it."""

    @abstractmethod
    def open_stream(self, device: Device, index: int, *, has_priority: bool) -> Stream:
        """Return a new stream of the device with this index, which `open_device` has returned."""

    @abstractmethod
    def is_idle(self, stream: RuntimeStream) -> bool:
        """Return whether all work on a stream is complete."""

    @abstractmethod
    def create_event(self, *, has_time: bool) -> RuntimeEvent:
        """Return a new event; only with `has_time` must it record the time."""

    @abstractmethod
    def copy_between_devices(
        self, stream: RuntimeStream, to: tuple[int, int], source: tuple[int, int], nbytes: int
    ) -> None:
        """Enqueue a copy from the memory of one device to that of another one.

        Args:
            stream: a stream of one of the two devices.
            to: the index of a device and an address in its memory.
            source: the index of the other device and an address in its memory.
            nbytes: the number of bytes.
        """

    @abstractmethod
    def host_memory(self) -> MemorySource:
        """Return the source of pinned host memory."""

    @abstractmethod
    def properties(self, index: int) -> RuntimeProperties:
        """Return what the runtime knows about a device."""

    @abstractmethod
    def memory_info(self, index: int) -> tuple[int, int] | None:
        """Return the free and the total memory of a device in bytes, or None if the runtime can't report them."""

    @abstractmethod
    def close(self) -> None:
        """End the runtime, after all of its devices have been closed."""

    @contextmanager
    def on_device(self, index: int) -> Iterator[None]:
        """Return a context manager in which the device `index` is the current device of this thread."""
        previous = current_device.index
        if previous == index:
            yield
            return
        self.set_device(index)
        try:
            yield
        finally:
            self.set_device(previous)


@final
class RegisteredRuntime(DeviceRuntime):
    """The runtime of a vendor that has only the nine functions which it registers for operators.

    Args:
        vendor: the vendor.
    """

    has_events = False
    device_count = 1

    def __init__(self, vendor: BaseVendor) -> None:
        self._vendor = vendor

    def set_device(self, index: int) -> None:
        """Do nothing: there is one device."""

    def open_device(self, index: int) -> Device:
        """Open and return the vendor's device."""
        return self._vendor.open_device()

    def open_stream(self, device: Device, index: int, *, has_priority: bool) -> Stream:
        """Return a new stream; the functions have no priorities."""
        return Stream(device)

    def is_idle(self, stream: RuntimeStream) -> bool:
        """Wait for the stream and return True, because the functions can't tell whether a stream is idle."""
        stream.synchronize()
        return True

    def create_event(self, *, has_time: bool) -> RuntimeEvent:
        """Return a new event that waits for its whole stream."""
        return WaitingEvent(has_time=has_time)

    def copy_between_devices(
        self, stream: RuntimeStream, to: tuple[int, int], source: tuple[int, int], nbytes: int
    ) -> None:
        """Raise NotImplementedError: the vendor has only one device."""
        raise NotImplementedError("the vendor has one device")

    def host_memory(self) -> MemorySource:
        """Return ordinary host memory: the functions copy from and to any memory of the host."""
        return Device(HostRuntime().functions())

    def properties(self, index: int) -> RuntimeProperties:
        """Return properties without values: the functions report none."""
        return RuntimeProperties()

    def memory_info(self, index: int) -> None:
        """Return None: the functions do not report memory sizes."""
        return

    def close(self) -> None:
        """Do nothing: the devices are closed already."""


@final
class WaitingEvent(RuntimeEvent):
    """An event for a runtime without events: it remembers its stream and waits for the whole stream.

    The wait may be longer than necessary, but never shorter.

    Args:
        has_time: whether `record` waits for the stream and stores the time.
    """

    def __init__(self, *, has_time: bool) -> None:
        self._has_time = has_time
        self._stream: RuntimeStream | None = None
        self._nanoseconds: int | None = None

    def record(self, stream: RuntimeStream) -> None:
        """Remember the stream; store the time if the event has the time."""
        self._stream = stream
        if self._has_time:
            self.synchronize()
            self._nanoseconds = time.perf_counter_ns()

    def delay(self, stream: RuntimeStream) -> None:
        """Wait on the host, so that later work on `stream` starts after the event."""
        self.synchronize()

    def synchronize(self) -> None:
        """Wait until the recorded work is complete; return at once if nothing was recorded."""
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.synchronize()

    def query(self) -> bool:
        """Wait and return True; see `RegisteredRuntime.is_idle`."""
        self.synchronize()
        return True

    def milliseconds_until(self, end: RuntimeEvent) -> float | None:
        """Return the time between the two records, or None if one of them has not recorded the time."""
        if not isinstance(end, WaitingEvent) or self._nanoseconds is None or end._nanoseconds is None:
            return None
        return (end._nanoseconds - self._nanoseconds) / 1e6
