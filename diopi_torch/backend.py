"""The vendor that implements the device; it is opened when the first tensor or random number is requested."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Hashable
from typing import Any, final
from weakref import WeakSet

from diopi_impl.base import BaseVendor
from diopi_impl.plugins import find_vendor
from diopi_torch.memory import make_allocator
from diopi_torch.settings import DEVICE_STRATEGY, vendor_name
from diopi_torch.streams import DeviceStream, StreamChoice
from lib_rt import Generator

DEFAULT_SEED = 67280421310721
"""The seed of the generator until the program sets one."""


class BackendError(RuntimeError):
    """The device can't be used as requested; the message states the reason."""


@final
class Backend:
    """An open device of a vendor, with its streams, memory and generator.

    Attributes:
        vendor: the vendor.
        device: the device of the runtime.
        process: the ID of the process that opened the device; a fork of that process can't use the device.
        default_stream: the stream of threads that have not selected one.
        streams: the current stream of each thread.
        allocator: allocates the memory of tensors.
        generator: the default generator of random numbers.
        plans: the steps of operators by the form of their calls, see `diopi_torch.plans`.
    """

    def __init__(self, vendor: BaseVendor) -> None:
        self.vendor = vendor
        self.device = vendor.open_device()
        self.process = os.getpid()
        self._streams: WeakSet[DeviceStream] = WeakSet()
        self.default_stream = DeviceStream(self.device)
        self.register_stream(self.default_stream)
        self.streams = StreamChoice(self.default_stream)
        self.allocator = make_allocator(DEVICE_STRATEGY, self.device, self.drop_unused_memory)
        self.generator = Generator(self.device, DEFAULT_SEED)
        self.plans: dict[Hashable, Any] = {}

    @property
    def stream(self) -> DeviceStream:
        """The current stream of this thread."""
        return self.streams.current

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
        """Wait for the vendor's device and close it; tensors that still exist can only be deleted.

        In a fork of the process that opened the device, do nothing.
        """
        if self.process != os.getpid():
            return
        self.allocator.close()
        for stream in list(self._streams):
            stream.close()
        self.generator.close()
        self.device.close()


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
    """Return the open device, which the first call opens; raise BackendError in a process forked after that."""
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
    return _backend
