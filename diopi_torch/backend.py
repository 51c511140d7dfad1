"""The vendor that implements the devices; it is opened when the first tensor or random number is requested."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, final
from weakref import WeakSet

from diopi_impl.base import BaseVendor
from diopi_impl.plugins import find_vendor
from diopi_torch.memory import CachingAllocator, make_allocator
from diopi_torch.runtime import DeviceRuntime, RegisteredRuntime, current_device
from diopi_torch.settings import DEVICE_STRATEGY, HOST_STRATEGY, NAME, runtime_library, vendor_name
from diopi_torch.streams import DeviceStream, StreamChoice
from diopi_torch.vendor_runtime import VendorRuntime
from lib_rt import Generator

DEFAULT_SEED = 67280421310721
"""The seed of the generator until the program sets one."""


class BackendError(RuntimeError):
    """The device can't be used as requested; the message states the reason."""


@final
class Backend:
    """An open device of a vendor, with its streams, memory and generator.

    Args:
        vendor: the vendor.
        first: device 0 of the same vendor; None for device 0 itself, which opens the runtime.
        index: the number of the device.

    Attributes:
        vendor: the vendor.
        runtime: the runtime of all devices of the vendor.
        index: the number of the device.
        device: the device of `lib_rt` that operators use.
        process: the ID of the process that opened the device; a fork of that process can't use the device.
        default_stream: the stream of threads that have not selected one.
        streams: the current stream of each thread.
        allocator: allocates the memory of tensors.
        generator: the default generator of random numbers.
        before_close: functions to call before the device is closed.
        plans: the steps of operators by the form of their calls, see `diopi_torch.plans`.
    """

    def __init__(self, vendor: BaseVendor, first: Backend | None = None, index: int = 0) -> None:
        self.vendor = vendor
        self.runtime: DeviceRuntime = first.runtime if first else open_runtime(vendor)
        self.index = index
        self.device = self.runtime.open_device(index)
        self.process = os.getpid()
        self._first = first or self
        self._peers: dict[int, Backend] = {}
        self._lock = threading.Lock()
        self._streams: WeakSet[DeviceStream] = WeakSet()
        self.allocator = make_allocator(DEVICE_STRATEGY, self.device, self.drop_unused_memory)
        self.default_stream = DeviceStream(self)
        self.register_stream(self.default_stream)
        self.streams = StreamChoice(self.default_stream)
        self.generator = Generator(self.device, DEFAULT_SEED)
        self.plans: dict[Hashable, Any] = {}
        self.before_close: list[Callable[[], None]] = []

    @property
    def stream(self) -> DeviceStream:
        """The current stream of this thread."""
        return self.streams.current

    @cached_property
    def host_allocator(self) -> CachingAllocator:
        """Allocates pinned host memory; all devices share one allocator."""
        if self._first is not self:
            return self._first.host_allocator
        return make_allocator(HOST_STRATEGY, self.runtime.host_memory(), self._synchronize_all)

    def device_at(self, index: int) -> Backend:
        """Return the device with this number, which the first call opens; raise BackendError if there is none."""
        first = self._first
        if index == 0:
            return first
        if not 0 < index < self.runtime.device_count:
            raise BackendError(f"there is no device {NAME}:{index}: {describe_devices(self.runtime.device_count)}")
        with first._lock:
            if index not in first._peers:
                first._peers[index] = Backend(self.vendor, first, index)
            return first._peers[index]

    def open_devices(self) -> Sequence[Backend]:
        """Return the devices of the vendor that are open."""
        return self._first, *self._first._peers.values()

    def _synchronize_all(self) -> None:
        """Wait for the streams of all devices."""
        for device in self.open_devices():
            device.synchronize()

    def register_stream(self, stream: DeviceStream) -> None:
        """Let `synchronize` also wait for this stream, for as long as the stream exists."""
        self._streams.add(stream)

    def synchronize(self) -> None:
        """Wait for all streams."""
        for stream in list(self._streams):
            stream.synchronize()

    def drop_unused_memory(self) -> None:
        """Wait for all streams and let them drop their references to memory that no tensor uses."""
        for stream in list(self._streams):
            stream.synchronize()
            stream.drop_cached_tensors()

    def close(self) -> None:
        """Wait for all devices of the vendor and close them, pinned memory and the runtime.

        Tensors that still exist can only be deleted. In a fork of the process that opened the device, do nothing.
        """
        if self.process != os.getpid():
            return
        devices = self.open_devices()
        for function in [function for device in devices for function in device.before_close]:
            function()
        if "host_allocator" in vars(self._first):
            self.host_allocator.close()
        for device in devices:  # streams of other devices may use the memory of a device
            device.allocator.close()
        for device in devices:
            device._close_streams()
        self.runtime.close()

    def _close_streams(self) -> None:
        """Close the streams, the generator and the `lib_rt` device."""
        for stream in list(self._streams):
            stream.close()
        self.generator.close()
        self.device.close()


def open_runtime(vendor: BaseVendor) -> DeviceRuntime:
    """Return the runtime of a vendor's devices: its own one if there is one, otherwise the registered functions."""
    library = find_runtime_library(vendor)
    if library is None:
        return RegisteredRuntime(vendor)
    runtime = VendorRuntime(vendor, library)
    if runtime.device_count == 0:
        runtime.close()
        raise BackendError(f"the device runtime {library} has no device")
    return runtime


def find_runtime_library(vendor: BaseVendor) -> Path | None:
    """Return the library with the device runtime that the environment names or the vendor has; None without one."""
    return runtime_library() or vendor.device_runtime


def describe_devices(count: int) -> str:
    """Return a sentence about the devices that exist, for error messages."""
    return f"the only one is {NAME}:0" if count == 1 else f"the devices are {NAME}:0 to {NAME}:{count - 1}"


_lock = threading.Lock()
"""Protects the following variables."""

_backend: Backend | None = None
"""The open device; None until its first use."""

_vendor_name: str | None = None
"""The vendor that the program has selected; None for the vendor that the environment names, or the default."""


def use_vendor(name: str) -> None:
    """Select the vendor of the device.

    Args:
        name: a registered name, `module:attribute` or the path of a library.

    Raises:
        BackendError: if another vendor is already in use.
        VendorError: if there is no such vendor.
    """
    global _vendor_name
    with _lock:
        if _backend is not None and selected_vendor() != name:
            raise BackendError(f"the device is {_backend.vendor.name} already, {name} can't become it in this process")
        find_vendor(name)
        _vendor_name = name


def selected_vendor() -> str:
    """Return the name of the vendor that the device uses or will use."""
    return _vendor_name or vendor_name()


def is_open() -> bool:
    """Return whether the device has been used."""
    return _backend is not None


def is_forked() -> bool:
    """Return whether the process was forked after the device was used, so that it can't use the device."""
    return _backend is not None and _backend.process != os.getpid()


def backend() -> Backend:
    """Return the current device of this thread, which the first call opens.

    Raises:
        BackendError: the process was forked after the device had been opened.
    """
    global _backend
    if _backend is None:
        with _lock:
            if _backend is None:
                _backend = Backend(find_vendor(selected_vendor()))
                atexit.register(_backend.close)
    if _backend.process != os.getpid():
        raise BackendError(
            "the device was in use when this process was forked from it; start processes that use it with the method "
            "'spawn' (torch.multiprocessing.set_start_method)"
        )
    index = current_device.index
    return _backend.device_at(index) if index else _backend


def device_count() -> int:
    """Return the number of devices; the vendor is opened only if it has its own device runtime."""
    if _backend is None and find_runtime_library(find_vendor(selected_vendor())) is None:
        return 1
    return (_backend or backend()).runtime.device_count


def has_several_devices() -> bool:
    """Return whether the vendor is open and has more than one device."""
    return _backend is not None and _backend.runtime.device_count > 1
