"""Streams and events of the device.

The runtime of the standard has no events; a program can only wait for a whole stream. Therefore an event remembers its
stream and waits for the stream when a program waits for the event. The wait may be longer than necessary, but never
shorter.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, final

import torch

from diopi_torch.layout import TensorLayout
from diopi_torch.settings import NAME
from lib_rt import Context, Device, Tensor
from lib_rt import Stream as NativeStream

MAX_CACHED_TENSORS = 2**13
"""Maximum number of native tensors that a stream caches (`open_tensor`), and of tensors that it retains (`retain`)."""

_numbers = itertools.count()
"""The numbers of streams, which PyTorch calls stream IDs."""


class DeviceStream:
    """A queue of the device; work on one stream runs in order, and events order the work of different streams.

    Attributes:
        stream_id: the number of the stream in this process, from 0.
    """

    def __init__(self, device: Device) -> None:
        self.stream_id = next(_numbers)
        self._native = NativeStream(device)
        self._context: Context | None = None
        self._tensors: dict[Hashable, Tensor] = {}
        self._used: list[torch.Tensor] = []
        self._lock = threading.Lock()

    @property
    def device(self) -> torch.device:
        """The only device."""
        return torch.device(NAME, 0)

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
        found = self._tensors.get(place)
        if found is None:
            found = self._tensors[place] = self._create_tensor(tensor, layout)
            if len(self._tensors) > MAX_CACHED_TENSORS:
                self._tensors.pop(next(iter(self._tensors)), None)
        return found

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
            found = tensors.get((tensor.data_ptr(), layout))
            arguments[place] = self.open_tensor(tensor, layout) if found is None else found

    def _create_tensor(self, tensor: torch.Tensor, layout: TensorLayout) -> Tensor:
        """Create a native tensor over the bytes of `tensor`, not of its storage: later storages differ in size."""
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
        used, self._used = self._used, []
        self._native.synchronize()
        used.clear()

    def retain(self, tensor: torch.Tensor) -> None:
        """Keep the memory of a tensor alive until the next `synchronize`, because enqueued work may use it."""
        if len(self._used) == MAX_CACHED_TENSORS:
            self.synchronize()
        self._used.append(tensor.detach())

    def query(self) -> bool:
        """Wait for the stream and return True, because the runtime can't tell whether a stream is idle."""
        self.synchronize()
        return True

    def record_event(self, event: DeviceEvent | None = None) -> DeviceEvent:
        """Record `event` on this stream and return it; if it is None, record and return a new event."""
        recorded = event or DeviceEvent()
        recorded.record(self)
        return recorded

    def wait_event(self, event: DeviceEvent) -> None:
        """Let later work on this stream start after the event: the host waits until the event's work is complete."""
        event.synchronize()

    def wait_stream(self, stream: DeviceStream) -> None:
        """Let later work on this stream start after the current work of `stream`: the host waits for that work."""
        stream.synchronize()

    def __repr__(self) -> str:
        return f"<diopi stream {self.stream_id}>"


class DeviceEvent:
    """A point in the work of a stream.

    Args:
        enable_timing: whether `record` stores the time for `elapsed_time`; if so, it waits for the stream first.
        blocking: has no effect; waiting never spins.
    """

    def __init__(self, enable_timing: bool = False, blocking: bool = False) -> None:
        self.enable_timing = enable_timing
        self.blocking = blocking
        self._stream: DeviceStream | None = None
        self._nanoseconds: int | None = None

    def record(self, stream: DeviceStream) -> None:
        """Record the current work of `stream`."""
        self._stream = stream
        if self.enable_timing:
            self.synchronize()
            self._nanoseconds = time.perf_counter_ns()

    def wait(self, stream: DeviceStream) -> None:
        """Let later work on `stream` start after the event: the host waits until the event's work is complete."""
        stream.wait_event(self)

    def synchronize(self) -> None:
        """Wait until the recorded work is complete; return at once if nothing was recorded."""
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.synchronize()

    def query(self) -> bool:
        """Wait and return True; see `DeviceStream.query`."""
        self.synchronize()
        return True

    def elapsed_time(self, end: DeviceEvent) -> float:
        """Return the milliseconds from this event to `end`; raise ValueError unless both recorded the time."""
        if self._nanoseconds is None or end._nanoseconds is None:
            raise ValueError("elapsed_time needs two events that were made with enable_timing=True and recorded")
        return (end._nanoseconds - self._nanoseconds) / 1e6


@final
class StreamChoice(threading.local):
    """The current stream of each thread; threads that have not selected a stream use `default`."""

    def __init__(self, default: DeviceStream) -> None:
        self.current = default

    @contextmanager
    def use_stream(self, stream: DeviceStream) -> Iterator[DeviceStream]:
        """Use `stream` in this thread during the context, and the previous stream afterwards."""
        before, self.current = self.current, stream
        try:
            yield stream
        finally:
            self.current = before
