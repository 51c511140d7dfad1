"""Streams and events of the device, as programs use them; `diopi_torch.runtime` describes what they wait for."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, final

import torch

from diopi_torch.layout import TensorLayout
from diopi_torch.memory import CachingAllocator
from diopi_torch.runtime import DeviceRuntime
from diopi_torch.settings import NAME
from lib_rt import Context, Device, Tensor
from lib_rt import Stream as NativeStream

MAX_CACHED_TENSORS = 2**13
"""Maximum number of native tensors that a stream caches (`open_tensor`), and of tensors that it retains (`retain`)."""

_numbers = itertools.count()
"""The numbers of streams, which PyTorch calls stream IDs."""


class StreamOwner(Protocol):
    """The device of a stream; `Backend` implements it."""

    @property
    def runtime(self) -> DeviceRuntime:
        """The runtime of all devices."""

    @property
    def device(self) -> Device:
        """The device of `lib_rt`."""

    @property
    def index(self) -> int:
        """The number of the device."""

    @property
    def allocator(self) -> CachingAllocator:
        """Allocates the memory of the device."""


class DeviceStream:
    """A queue of the device; work on one stream runs in order, and events order the work of different streams.

    Args:
        owner: the device.
        priority: a negative number if the device shall prefer the work of this stream.

    Attributes:
        stream_id: the number of the stream in this process, from 0.
        device_index: the number of the device.
        handle: the vendor's handle of the stream.
    """

    def __init__(self, owner: StreamOwner, priority: int = 0) -> None:
        self.stream_id = next(_numbers)
        self.device_index = owner.index
        self._owner = owner
        self._native = owner.runtime.open_stream(owner.device, owner.index, has_priority=priority < 0)
        self.handle = self._native.native
        self._context: Context | None = None
        self._tensors: dict[Hashable, Tensor] = {}
        self._used: list[torch.Tensor] = []
        self._lock = threading.Lock()

    @property
    def device(self) -> torch.device:
        """The device in PyTorch."""
        return torch.device(NAME, self.device_index)

    @property
    def native(self) -> NativeStream:
        """The stream of `lib_rt` behind this stream, which enqueues copies."""
        return self._native

    @property
    def context(self) -> Context:
        """The context of `lib_rt` for functions on the stream; created at the first access."""
        context = self._context
        if context is None:
            with self._lock:
                context = self._context = self._context or Context(self._native.device, self._native)
        return context

    def open_tensor(self, tensor: torch.Tensor, layout: TensorLayout) -> Tensor:
        """Return a `lib_rt` tensor over the memory of `tensor`, and cache it for later calls.

        If the cache is full, the tensor that was inserted first leaves it.

        Args:
            tensor: the tensor.
            layout: the layout of the tensor.

        Returns:
            The tensor for operators on the stream.
        """
        place = tensor.data_ptr(), layout
        native = self._tensors.get(place)
        if native is None:
            native = self._tensors[place] = self._create_tensor(tensor, layout)
            if len(self._tensors) > MAX_CACHED_TENSORS:
                self._tensors.pop(next(iter(self._tensors)), None)
        return native

    def insert_tensors(
        self, arguments: list[Any], places: Iterable[tuple[int, int, TensorLayout]], values: Sequence[torch.Tensor]
    ) -> None:
        """Write native tensors for `values` into a list of arguments.

        Args:
            arguments: the list to change.
            places: for each tensor, its position in `arguments`, its index in `values`, and its layout.
            values: the tensors of the call, and other values that no place refers to.
        """
        tensors = self._tensors
        for place, number, layout in places:
            tensor = values[number]
            native = tensors.get((tensor.data_ptr(), layout))
            arguments[place] = self.open_tensor(tensor, layout) if native is None else native

    def _create_tensor(self, tensor: torch.Tensor, layout: TensorLayout) -> Tensor:
        """Return a native tensor over the bytes of `tensor`, not of its storage: later storages differ in size."""
        storage = tensor.untyped_storage()
        memory = (tensor.data_ptr(), layout.nbytes) if layout.nbytes else (storage.data_ptr(), storage.nbytes())
        return Tensor.from_memory(self.context, *memory, layout.shape, layout.dtype, layout.strides)

    def drop_cached_tensors(self) -> None:
        """Drop all cached tensors, because their memory is about to be reused."""
        self._tensors = {}

    def end_context(self) -> None:
        """Wait for the stream and close its context, with all tensors in it; the next call gets a new context."""
        with self._lock:
            context, self._context = self._context, None
            self._tensors = {}
        if context is not None:
            context.close()

    def close(self) -> None:
        """Wait for the stream and destroy it."""
        self.end_context()
        self._native.close()

    def synchronize(self) -> None:
        """Wait until all enqueued work is complete."""
        retained, self._used = self._used, []
        self._native.synchronize()
        retained.clear()

    def retain(self, tensor: torch.Tensor) -> None:
        """Delay the reuse of a tensor's memory, because work on this stream may use it.

        With events, the memory is reused when the work is complete that this stream has when the memory is released.
        Without events, the tensor is kept alive until the next `synchronize`.
        """
        if self._owner.runtime.has_events:
            if tensor.numel():
                self._owner.allocator.record_use(tensor.untyped_storage().data_ptr(), self)
            return
        if len(self._used) == MAX_CACHED_TENSORS:
            self.synchronize()
        self._used.append(tensor.detach())

    def query(self) -> bool:
        """Return whether all work is complete; without events, wait for it."""
        return self._owner.runtime.is_idle(self)

    def record_event(self, event: DeviceEvent | None = None) -> DeviceEvent:
        """Record `event` on this stream and return it; if it is None, record and return a new event."""
        recorded = event or DeviceEvent(self._owner.runtime)
        recorded.record(self)
        return recorded

    def wait_event(self, event: DeviceEvent) -> None:
        """Let later work on this stream start after the event; without events, the host waits."""
        event.wait(self)

    def wait_stream(self, stream: DeviceStream) -> None:
        """Let later work on this stream start after the current work of `stream`; without events, the host waits."""
        if self._owner.runtime.has_events:
            self.wait_event(stream.record_event())
        else:
            stream.synchronize()

    def __repr__(self) -> str:
        return f"<{self.device} stream {self.stream_id}>"


class DeviceEvent:
    """A point in the work of a stream.

    Args:
        runtime: the runtime of the devices.
        enable_timing: whether the event records the time for `elapsed_time`.
        blocking: has no effect; waiting never spins.
    """

    def __init__(self, runtime: DeviceRuntime, enable_timing: bool = False, blocking: bool = False) -> None:
        self.enable_timing = enable_timing
        self.blocking = blocking
        self._event = runtime.create_event(has_time=enable_timing)

    def record(self, stream: DeviceStream) -> None:
        """Record the current work of `stream`."""
        self._event.record(stream)

    def wait(self, stream: DeviceStream) -> None:
        """Let later work on `stream` start after the event; without events of the vendor, the host waits."""
        self._event.delay(stream)

    def synchronize(self) -> None:
        """Wait until the recorded work is complete; return at once if nothing was recorded."""
        self._event.synchronize()

    def query(self) -> bool:
        """Return whether the recorded work is complete; without events of the vendor, wait for it."""
        return self._event.query()

    def elapsed_time(self, end: DeviceEvent) -> float:
        """Return the milliseconds from this event to `end`; raise ValueError unless both recorded the time."""
        milliseconds = None
        if self.enable_timing and end.enable_timing:
            milliseconds = self._event.milliseconds_until(end._event)
        if milliseconds is None:
            raise ValueError("elapsed_time needs two events that were made with enable_timing=True and recorded")
        return milliseconds


@final
class StreamChoice(threading.local):
    """The current stream of each thread; threads that have not selected a stream use `default`."""

    def __init__(self, default: DeviceStream) -> None:
        self.current = default

    @contextmanager
    def use_stream(self, stream: DeviceStream) -> Iterator[DeviceStream]:
        """Return a context manager that uses `stream` in this thread, and the previous stream afterwards."""
        previous, self.current = self.current, stream
        try:
            yield stream
        finally:
            self.current = previous
