"""The built-in device: aligned host memory, and streams that do their copies when they are waited for.

Copies are as late as they may be: a call returns before the bytes have moved, and nothing orders two streams. Code that
forgets to synchronise fails here, each time, as it would now and then on a chip.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from typing import Any, final

from cffi import FFI

from diopi_proto.types import Error
from lib_rt import RuntimeFunctions

ALIGNMENT = 256
"""Bytes to which every allocation is aligned."""

LARGE = 2**16
"""Bytes from which on a copy lets the program's other threads go on; for fewer that costs more than it brings."""

CAPACITY = 1024
"""Copies a stream takes; when it is full it does them."""

_ffi = FFI()
_ffi.cdef(
    "int posix_memalign(void **memory, size_t alignment, size_t size); void free(void *memory);"
    "void *memmove(void *destination, const void *source, size_t size);"
)
_libc: Any = _ffi.dlopen(None)
_CHARACTERS, _ADDRESS = _ffi.typeof("char *"), _ffi.typeof("uintptr_t")


@final
class _Stream:
    """The copies (destination, source, bytes) that are queued, done in their order. Threads may share it."""

    def __init__(self) -> None:
        self._copies: deque[tuple[int, int, int]] = deque()
        self._at_work = threading.Lock()

    def copy(self, destination: int, source: int, nbytes: int) -> None:
        """Queue a copy of `nbytes` bytes between two addresses."""
        self._copies.append((destination, source, nbytes))
        if len(self._copies) >= CAPACITY:
            self.synchronize()

    def synchronize(self) -> None:
        """Do everything queued so far, or wait for the thread that does it."""
        cast = _ffi.cast
        with self._at_work:
            for _ in range(len(self._copies)):
                destination, source, nbytes = self._copies.popleft()
                move = _libc.memmove if nbytes >= LARGE else _ffi.memmove  # the former releases Python's lock
                move(cast(_CHARACTERS, destination), cast(_CHARACTERS, source), nbytes)


class HostRuntime:
    """The nine runtime functions on host memory. Streams are numbered from 1."""

    def __init__(self) -> None:
        self._streams: dict[int, _Stream] = {}
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
        """The number of a new stream."""
        number = next(self._numbers)
        self._streams[number] = _Stream()
        return number

    def stream_destroy(self, stream: int) -> Error:
        """Finish a stream's work and end it."""
        queue = self._streams.pop(stream, None)
        if queue is None:
            return self._unknown(stream)
        queue.synchronize()
        return Error.Success

    def stream_sync(self, stream: int) -> Error:
        """Wait for a stream's work."""
        queue = self._streams.get(stream)
        if queue is None:
            return self._unknown(stream)
        queue.synchronize()
        return Error.Success

    def malloc(self, nbytes: int) -> int:
        """Address of `nbytes` fresh bytes, 0 when there is no memory left."""
        memory = _ffi.new("void **")
        if _libc.posix_memalign(memory, ALIGNMENT, max(nbytes, 1)) != 0:
            self._last_error = f"out of memory: {nbytes} bytes were asked for"
            return 0
        return int(_ffi.cast(_ADDRESS, memory[0]))

    def free(self, address: int) -> None:
        """Release what `malloc` gave; address 0 is allowed."""
        _libc.free(_ffi.cast("void *", address))

    def copy(self, stream: int, destination: int, source: int, nbytes: int) -> Error:
        """Queue a copy on a stream; host and device memory are the same here."""
        queue = self._streams.get(stream)
        if queue is None:
            return self._unknown(stream)
        queue.copy(destination, source, nbytes)
        return Error.Success

    def _unknown(self, stream: int) -> Error:
        self._last_error = f"stream {stream} does not exist: open are {sorted(self._streams) or 'none'}"
        return Error.ErrorOccurred
