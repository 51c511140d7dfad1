"""The built-in device: aligned host memory, and a worker thread a stream that does its copies in order.

Copies are really asynchronous: a call returns before the bytes have moved, and nothing orders two streams. Code that
forgets to synchronise fails here as it would on a chip.
"""

from __future__ import annotations

import itertools
import threading
from queue import SimpleQueue
from typing import Any, final

from cffi import FFI

from diopi_proto.types import Error
from lib_rt import RuntimeFunctions

ALIGNMENT = 256
"""Bytes to which every allocation is aligned."""

LARGE = 2**16
"""Bytes from which on a copy lets the program go on meanwhile; for fewer that costs more than it brings."""

_ffi = FFI()
_ffi.cdef(
    "int posix_memalign(void **memory, size_t alignment, size_t size); void free(void *memory);"
    "void *memmove(void *destination, const void *source, size_t size);"
)
_libc: Any = _ffi.dlopen(None)

_Copy = tuple[int, int, int]


@final
class StreamWorker:
    """One stream: a thread that takes copies (destination, source, bytes) off a queue, one after the other."""

    def __init__(self, handle: int) -> None:
        self._tasks: SimpleQueue[_Copy | threading.Event | None] = SimpleQueue()
        self._enqueuing = threading.Lock()
        self._enqueued = self._copied = 0
        self._thread = threading.Thread(target=self._work, name=f"stream {handle}", daemon=True)
        self._thread.start()

    def copy(self, destination: int, source: int, nbytes: int) -> None:
        """Queue a copy of `nbytes` bytes between two addresses."""
        with self._enqueuing:
            self._enqueued += 1
            self._tasks.put((destination, source, nbytes))

    def synchronize(self) -> None:
        """Wait until everything queued so far is done."""
        enqueued = self._enqueued
        if self._copied >= enqueued:
            return  # two changes of thread saved, which cost more than most operators
        done = threading.Event()
        self._tasks.put(done)
        done.wait()

    def close(self) -> None:
        """Finish what is queued and end the thread."""
        self._tasks.put(None)
        self._thread.join()

    def _work(self) -> None:
        cast = _ffi.cast
        while (task := self._tasks.get()) is not None:
            if isinstance(task, threading.Event):
                task.set()
            else:
                destination, source, nbytes = task
                move = _libc.memmove if nbytes >= LARGE else _ffi.memmove  # the former releases Python's lock
                move(cast("char *", destination), cast("char *", source), nbytes)
                self._copied += 1


class HostRuntime:
    """The nine runtime functions on host memory. Streams are numbered from 1."""

    def __init__(self) -> None:
        self._streams: dict[int, StreamWorker] = {}
        self._numbers = itertools.count(1)
        self._last_error = ""

    def functions(self) -> RuntimeFunctions:
        """The nine, ready to be registered."""
        return RuntimeFunctions(
            stream_create=self.stream_create,
            stream_destroy=self.stream_destroy,
            stream_sync=self.stream_sync,
            malloc=self.malloc,
            free=self.free,
            h2d=self.copy,
            d2h=self.copy,
            d2d=self.copy,
            last_error=lambda: self._last_error,
        )

    def stream_create(self) -> int:
        """Start a stream and return its number."""
        number = next(self._numbers)
        self._streams[number] = StreamWorker(number)
        return number

    def stream_destroy(self, stream: int) -> Error:
        """Finish a stream's work and end it."""
        worker = self._streams.pop(stream, None)
        if worker is None:
            return self._unknown(stream)
        worker.close()
        return Error.Success

    def stream_sync(self, stream: int) -> Error:
        """Wait for a stream's work."""
        worker = self._streams.get(stream)
        if worker is None:
            return self._unknown(stream)
        worker.synchronize()
        return Error.Success

    def malloc(self, nbytes: int) -> int:
        """Address of `nbytes` fresh bytes, 0 when there is no memory left."""
        memory = _ffi.new("void **")
        if _libc.posix_memalign(memory, ALIGNMENT, max(nbytes, 1)) != 0:
            self._last_error = f"out of memory: {nbytes} bytes were asked for"
            return 0
        return int(_ffi.cast("uintptr_t", memory[0]))

    def free(self, address: int) -> None:
        """Release what `malloc` gave; address 0 is allowed."""
        _libc.free(_ffi.cast("void *", address))

    def copy(self, stream: int, destination: int, source: int, nbytes: int) -> Error:
        """Queue a copy on a stream; host and device memory are the same here."""
        worker = self._streams.get(stream)
        if worker is None:
            return self._unknown(stream)
        worker.copy(destination, source, nbytes)
        return Error.Success

    def _unknown(self, stream: int) -> Error:
        self._last_error = f"stream {stream} does not exist: open are {sorted(self._streams) or 'none'}"
        return Error.ErrorOccurred
