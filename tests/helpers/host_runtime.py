"""A synchronous vendor runtime in host memory, written in Python."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field

import numpy as np

from lib_rt import RuntimeFunctions

ALIGNMENT = 256
"""The bytes to which addresses are aligned, as on common accelerators."""


@dataclass
class HostRuntime:
    """A runtime whose device memory is NumPy memory and whose copies are done at once.

    Attributes:
        memory: the allocated blocks by address.
        streams: the numbers of the existing streams.
        synchronized: how many times a program has waited for a stream.
        limit: the largest number of bytes of an allocation; a larger one fails.
        error: the message of the last failed allocation.
    """

    memory: dict[int, np.ndarray] = field(default_factory=dict)
    streams: set[int] = field(default_factory=set)
    synchronized: int = 0
    limit: int = 1 << 40
    error: str = ""

    def stream_create(self) -> int:
        stream = max(self.streams, default=0) + 1
        self.streams.add(stream)
        return stream

    def stream_destroy(self, stream: int) -> None:
        self.streams.remove(stream)

    def stream_sync(self, stream: int) -> None:
        self.synchronized += 1

    def malloc(self, nbytes: int) -> int:
        """Return the address of a new block; 0 beyond the limit."""
        if nbytes > self.limit:
            self.error = f"{nbytes} bytes are more than {self.limit}"
            return 0
        block = np.empty(nbytes + ALIGNMENT, np.uint8)
        address = -(-block.ctypes.data // ALIGNMENT) * ALIGNMENT
        self.memory[address] = block
        return address

    def free(self, address: int) -> None:
        del self.memory[address]

    def copy(self, stream: int, destination: int, source: int, nbytes: int) -> None:
        ctypes.memmove(destination, source, nbytes)

    def last_error(self) -> str:
        return self.error

    def functions(self) -> RuntimeFunctions:
        """Return the functions for registration."""
        return RuntimeFunctions(
            stream_create=self.stream_create,
            stream_destroy=self.stream_destroy,
            stream_sync=self.stream_sync,
            malloc=self.malloc,
            free=self.free,
            h2d=self.copy,
            d2h=self.copy,
            d2d=self.copy,
            last_error=self.last_error,
        )
