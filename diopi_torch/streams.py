"""Streams and events of the device.

The runtime of the standard has no events, and a stream can only be waited for. So an event is what its stream had to do
when it was recorded, waited for at the latest when somebody asks: never too short, perhaps too long.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, final

import torch

from diopi_torch.layout import Layout
from diopi_torch.settings import NAME
from lib_rt import Context, Device, Tensor
from lib_rt import Stream as NativeStream

MAX_CACHED_TENSORS = 2**13
"""Tensors that a stream keeps of those that operators were called with last: programs come back to the same memory."""

_numbers = itertools.count()


class Stream:
    """A queue of the device. Work on one keeps its order, between two there is none but by events.

    Attributes:
        stream_id: its number in this process.
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
        """Where it is: there is one device."""
        return torch.device(NAME, 0)

    @property
    def native(self) -> NativeStream:
        """The stream of the runtime, for copies."""
        return self._native

    @property
    def context(self) -> Context:
        """What operators on the stream are called with."""
        context = self._context
        if context is None:
            with self._lock:
                context = self._context = self._context or Context(self._native.device, self._native)
        return context

    def opened(self, tensor: torch.Tensor, layout: Layout) -> Tensor:
        """What operators on the stream take for a tensor of this layout: its memory itself.

        It stays open, and is the same next time.
        """
        place = tensor.data_ptr(), layout
        found = self._tensors.get(place)
        if found is None:
            found = self._tensors[place] = self._open(tensor, layout)
            if len(self._tensors) > MAX_CACHED_TENSORS:
                self._tensors.pop(next(iter(self._tensors)), None)
        return found

    def place(
        self, arguments: list[Any], places: Iterable[tuple[int, int, Layout]], values: Sequence[torch.Tensor]
    ) -> None:
        """Put what operators take for tensors among arguments: at each place that of a number, and of a layout."""
        tensors = self._tensors
        for place, number, layout in places:
            tensor = values[number]
            found = tensors.get((tensor.data_ptr(), layout))
            arguments[place] = self.opened(tensor, layout) if found is None else found

    def _open(self, tensor: torch.Tensor, layout: Layout) -> Tensor:
        storage, offset = tensor.untyped_storage(), int(tensor.storage_offset()) if layout.nbytes else 0
        memory = storage.data_ptr(), storage.nbytes()
        return Tensor.from_memory(self.context, *memory, layout.shape, layout.dtype, layout.strides, offset)

    def forget(self) -> None:
        """Keep no tensors: their memory is about to be another's."""
        self._tensors = {}

    def end_context(self) -> None:
        """Release what operators required in the context, after waiting; the next call gets a new one."""
        with self._lock:
            context, self._context = self._context, None
            self._tensors = {}
        if context is not None:
            context.close()

    def close(self) -> None:
        """End it, after waiting for it."""
        self.end_context()
        self._native.close()

    def synchronize(self) -> None:
        """Wait until everything enqueued is done."""
        used, self._used = self._used, []
        self._native.synchronize()
        used.clear()

    def retain(self, tensor: torch.Tensor) -> None:
        """Let the memory of a tensor live at least until it was waited for: what is enqueued may use that."""
        if len(self._used) == MAX_CACHED_TENSORS:
            self.synchronize()
        self._used.append(tensor.detach())

    def query(self) -> bool:
        """True, after waiting: whether a stream is done, the runtime can't say."""
        self.synchronize()
        return True

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event, a new one if none is given."""
        recorded = event or Event()
        recorded.record(self)
        return recorded

    def wait_event(self, event: Event) -> None:
        """Let what is enqueued from now on start after the event: the host waits for it."""
        event.synchronize()

    def wait_stream(self, stream: Stream) -> None:
        """Let what is enqueued from now on start after what `stream` has to do now: the host waits for it."""
        stream.synchronize()

    def __repr__(self) -> str:
        return f"<diopi stream {self.stream_id}>"


class Event:
    """A point in the work of a stream.

    Args:
        enable_timing: whether it takes the time, for which recording it waits for the stream.
        blocking: has no effect; waiting never spins.
    """

    def __init__(self, enable_timing: bool = False, blocking: bool = False) -> None:
        self.enable_timing = enable_timing
        self.blocking = blocking
        self._stream: Stream | None = None
        self._nanoseconds: int | None = None

    def record(self, stream: Stream) -> None:
        """Mark what `stream` has to do now."""
        self._stream = stream
        if self.enable_timing:
            self.synchronize()
            self._nanoseconds = time.perf_counter_ns()

    def wait(self, stream: Stream) -> None:
        """Let what `stream` does from now on start after the event."""
        stream.wait_event(self)

    def synchronize(self) -> None:
        """Wait until the event has come; at once if none was recorded, or it was waited for."""
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.synchronize()

    def query(self) -> bool:
        """True, after waiting: see `Stream.query`."""
        self.synchronize()
        return True

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds from this event to another; ValueError unless both take the time and were recorded."""
        if self._nanoseconds is None or end._nanoseconds is None:
            raise ValueError("elapsed_time needs two events that were made with enable_timing=True and recorded")
        return (end._nanoseconds - self._nanoseconds) / 1e6


@final
class StreamChoice(threading.local):
    """The current stream of each thread; `default` where a thread has chosen none."""

    def __init__(self, default: Stream) -> None:
        self.current = default

    @contextmanager
    def choosing(self, stream: Stream) -> Iterator[Stream]:
        """Work on `stream` meanwhile."""
        before, self.current = self.current, stream
        try:
            yield stream
        finally:
            self.current = before
