"""Memory of large results, used again: fresh pages cost more than most operators.

XLA can't write into memory of the caller's, but a program can take an array of XLA's that nobody needs any more, and
write its result there. So large results are lent: when nothing refers to their elements any more, which is when they
have been copied to the caller's tensor, the memory is there for the next result of this shape and element type.
"""

from __future__ import annotations

from collections import deque
from math import prod
from threading import Lock
from typing import Any, final

import numpy as np
from jax import Array
from numpy.typing import NDArray

LARGE = 2**24
"""Bytes a result has more than that is lent: memory for smaller ones is at hand, as malloc keeps what was freed."""

MAX_SPARES = 16
"""Arrays at most that are kept to be written again."""


@final
class ResultMemory:
    """The last arrays of XLA's that are free to be written, no more than `limit` bytes. Threads may share it."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = Lock()
        self._spares: list[Array] = []  # those given back last at the end
        self._returned: deque[Array] = deque()  # at any time, also while the lock is held, as garbage is collected

    def take(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array | NDArray[Any]:
        """What a program may write a result to; of no array of XLA's it makes one itself."""
        with self._lock:
            self._collect()
            for i in reversed(range(len(self._spares))):
                if self._spares[i].shape == shape and self._spares[i].dtype == dtype:
                    return self._spares.pop(i)
        return np.empty(shape, dtype)

    def lend(self, array: Array) -> NDArray[Any]:
        """The elements of a result; when nothing refers to them any more its memory is free."""
        flat: NDArray[Any] = np.asarray(_LentBytes(self, array))
        return flat.view(array.dtype).reshape(array.shape)

    def release(self, array: Array) -> None:
        """Free an array."""
        self._returned.append(array)

    def _collect(self) -> None:
        while self._returned:
            self._spares.append(self._returned.popleft())
        spare_bytes = sum(array.nbytes for array in self._spares)
        while spare_bytes > self._limit or len(self._spares) > MAX_SPARES:
            spare_bytes -= self._spares.pop(0).nbytes


@final
class _LentBytes:
    """The bytes of an array, which is free when this is."""

    def __init__(self, memory: ResultMemory, array: Array) -> None:
        self._memory = memory
        self._array = array
        self.__array_interface__ = {
            "version": 3,
            "typestr": "|u1",
            "shape": (prod(array.shape) * array.dtype.itemsize,),
            "data": (array.unsafe_buffer_pointer(), True),
        }

    def __del__(self) -> None:
        self._memory.release(self._array)
