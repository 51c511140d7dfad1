"""The built-in device: aligned host memory, and streams that do their copies when they are waited for.

Copies are as late as they may be: a call returns before the bytes have moved, and nothing orders two streams. Code that
forgets to synchronise fails here, each time, as it would now and then on a chip.

It is compiled, in `lib_rt/src/host.c`, as a call of a vendor needs some twenty of its functions.
"""

from __future__ import annotations

from typing import Any

from lib_rt import RuntimeFunctions
from lib_rt.device import cast_to_service
from lib_rt.library import check, ffi, lib, text

ALIGNMENT: int = lib.DIOPIRT_HOST_ALIGNMENT
"""Bytes to which every allocation is aligned."""

CAPACITY: int = lib.DIOPIRT_HOST_COPIES
"""Copies a stream takes; when it has so many it does them."""


class HostRuntime:
    """The nine runtime functions on host memory. A class derived from it may have its own of any."""

    stream_destroy: Any = cast_to_service("stream_destroy", lib.diopirt_host_stream_destroy)
    stream_sync: Any = cast_to_service("stream_sync", lib.diopirt_host_stream_sync)
    malloc: Any = cast_to_service("malloc", lib.diopirt_host_malloc)
    free: Any = cast_to_service("free", lib.diopirt_host_free)
    copy: Any = cast_to_service("h2d", lib.diopirt_host_copy)

    def stream_create(self) -> int:
        """The handle of a new stream."""
        stream = ffi.new("uintptr_t*")
        check(_stream_create(stream))
        return int(stream[0])

    def last_error(self) -> str:
        """Why the latest failure in this thread was one."""
        return text(lib.diopirt_host_last_error())

    def functions(self) -> RuntimeFunctions:
        """The nine, ready to be registered."""
        is_own = type(self).stream_create is not HostRuntime.stream_create
        return RuntimeFunctions(
            stream_create=self.stream_create if is_own else _stream_create,
            stream_destroy=self.stream_destroy,
            stream_sync=self.stream_sync,
            malloc=self.malloc,
            free=self.free,
            h2d=self.copy,
            d2h=self.copy,
            d2d=self.copy,
            last_error=self.last_error,
        )


_stream_create = cast_to_service("stream_create", lib.diopirt_host_stream_create)
