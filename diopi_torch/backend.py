"""The vendor behind the device: opened when the first tensor or number is asked of it."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Hashable
from typing import Any, final
from weakref import WeakSet

from diopi_impl.base import BaseVendor
from diopi_impl.plugins import find_vendor
from diopi_torch.memory import CachingAllocator
from diopi_torch.settings import vendor_name
from diopi_torch.streams import Stream, StreamChoice
from lib_rt import Generator

DEFAULT_SEED = 67280421310721
"""Of the generator before anybody seeds it."""


class BackendError(RuntimeError):
    """The device can't be used as asked; the message says why."""


@final
class Backend:
    """A vendor's device in use: its streams, its memory, its generator, and how operators are done on it."""

    def __init__(self, vendor: BaseVendor) -> None:
        self.vendor = vendor
        self.device = vendor.open_device()
        self.process = os.getpid()
        self._streams: WeakSet[Stream] = WeakSet()
        self.default_stream = Stream(self.device)
        self.include(self.default_stream)
        self.streams = StreamChoice(self.default_stream)
        self.allocator = CachingAllocator(self.device, self.leave_memory)
        self.generator = Generator(self.device, DEFAULT_SEED)
        self.plans: dict[Hashable, Any] = {}

    @property
    def stream(self) -> Stream:
        """The current stream of this thread."""
        return self.streams.current

    def include(self, stream: Stream) -> None:
        """Wait for this stream too where all are waited for, as long as it lives."""
        self._streams.add(stream)

    def synchronize(self) -> None:
        """Wait for all streams."""
        for stream in list(self._streams):
            stream.synchronize()

    def leave_memory(self) -> None:
        """Wait for all streams, which keep nothing that is about memory that nobody uses."""
        for stream in list(self._streams):
            stream.synchronize()
            stream.forget()

    def close(self) -> None:
        """End the vendor's device, after waiting for it. Tensors that are left can be dropped, and nothing else."""
        if self.process != os.getpid():
            return
        self.allocator.empty_cache()
        for stream in list(self._streams):
            stream.close()
        self.generator.close()
        self.device.close()


_lock = threading.Lock()
_backend: Backend | None = None
_chosen: str | None = None


def use_vendor(name: str) -> None:
    """Make the vendor called `name` the device: a registered name, `module:attribute`, or the path of a library.

    BackendError if another one is in use; VendorError if there is none of that name.
    """
    global _chosen
    with _lock:
        if _backend is not None and chosen_vendor() != name:
            raise BackendError(f"the device is {_backend.vendor.name} already, {name} can't become it in this process")
        find_vendor(name)
        _chosen = name


def chosen_vendor() -> str:
    """The name of the vendor that is, or will be, the device."""
    return _chosen or vendor_name()


def is_open() -> bool:
    """Whether the device was used."""
    return _backend is not None


def is_forked() -> bool:
    """Whether the device was used before this process was forked, so that it can't be used here."""
    return _backend is not None and _backend.process != os.getpid()


def backend() -> Backend:
    """The device, opened the first time. BackendError in a process forked from one that uses it."""
    global _backend
    if _backend is None:
        with _lock:
            if _backend is None:
                _backend = Backend(find_vendor(chosen_vendor()))
                atexit.register(_backend.close)
    if _backend.process != os.getpid():
        raise BackendError(
            "the device was in use when this process was forked from it; start processes that use it with the method "
            "'spawn' (torch.multiprocessing.set_start_method)"
        )
    return _backend
