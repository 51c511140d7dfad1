"""A runtime that delays copies as long as the interface allows."""

from __future__ import annotations

from diopi_impl.host_runtime import HostRuntime
from diopi_proto.types import Error


class LateRuntime(HostRuntime):
    """A runtime that copies when a program waits for the stream."""

    def __init__(self) -> None:
        super().__init__()
        self.queued: dict[int, list[tuple[int, int, int]]] = {}

    def copy(self, stream: int, destination: int, source: int, nbytes: int) -> int:
        self.queued.setdefault(stream, []).append((destination, source, nbytes))
        return Error.Success

    def stream_sync(self, stream: int) -> int:
        for task in self.queued.pop(stream, []):
            super().copy(stream, *task)
        return super().stream_sync(stream)
