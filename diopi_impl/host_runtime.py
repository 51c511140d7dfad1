"""The built-in device: aligned host memory, and streams that copy only when they are synchronized or full.

Copies happen late: a call returns before the bytes have moved, unless the stream already has `CAPACITY` pending copies.
Streams are not ordered with each other. Code that forgets to synchronize therefore fails on every run, where it would
fail sporadically on a chip.

The functions are compiled, in `lib_rt/src/host.c`, because each call of a vendor needs about twenty of them.
"""

from __future__ import annotations

from typing import Any

from lib_rt import RuntimeFunctions
from lib_rt.device import cast_to_service
from lib_rt.library import check, ffi, lib, text

ALIGNMENT: int = lib.DIOPIRT_HOST_ALIGNMENT
"""The alignment of every allocation in bytes."""

CAPACITY: int = lib.DIOPIRT_HOST_COPIES
"""The number of pending copies at which a stream performs all of them."""


class HostRuntime:
    """The nine runtime functions on host memory. Derived classes may override any of them.

    The attributes are C functions with the parameters of the fields of `RuntimeFunctions`; `copy` serves all copies.
    """

    stream_destroy: Any = cast_to_service("stream_destroy", lib.diopirt_host_stream_destroy)
    stream_sync: Any = cast_to_service("stream_sync", lib.diopirt_host_stream_sync)
    malloc: Any = cast_to_service("malloc", lib.diopirt_host_malloc)
    free: Any = cast_to_service("free", lib.diopirt_host_free)
    copy: Any = cast_to_service("h2d", lib.diopirt_host_copy)

    def stream_create(self) -> int:
        """Create a stream and return its handle."""
        stream = ffi.new("uintptr_t*")
        check(_stream_create(stream))
        return int(stream[0])

    def last_error(self) -> str:
        """Return the reason of this thread's latest failure."""
        return text(lib.diopirt_host_last_error())

    def functions(self) -> RuntimeFunctions:
        """Return the nine functions, ready to be registered."""
        is_overridden = type(self).stream_create is not HostRuntime.stream_create
        return RuntimeFunctions(
            stream_create=self.stream_create if is_overridden else _stream_create,
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
"""Create a stream of the host's runtime, as a service that C can call."""
