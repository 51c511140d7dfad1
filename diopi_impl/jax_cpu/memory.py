"""Reuse of the memory of large results: mapping fresh pages costs more than most operators.

XLA can't write into the caller's memory, but a program can overwrite an XLA array that is no longer needed. Large
results are therefore lent: when the last reference to their elements is gone (they have been copied to the caller's
tensor), the memory is available for the next result of the same shape and element type.
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
"""Results of more bytes than this are lent. For smaller results, malloc itself reuses freed memory."""

MAX_SPARES = 16
"""The maximum number of arrays that wait to be reused."""


@final
class ResultMemory:
    """A pool of the most recently released XLA arrays, of at most `limit` bytes. Threads may share it."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = Lock()
        self._spares: list[Array] = []  # in the order of their release
        self._returned: deque[Array] = deque()  # `release` may run at any time, even while the lock is held

    def take(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array | NDArray[Any]:
        """Return memory for a result: a spare XLA array, or a NumPy array that makes the program allocate one."""
        with self._lock:
            self._collect()
            for i in reversed(range(len(self._spares))):
                if self._spares[i].shape == shape and self._spares[i].dtype == dtype:
                    return self._spares.pop(i)
        return np.empty(shape, dtype)

    def lend(self, array: Array) -> NDArray[Any]:
        """Return the elements of a result; when the last reference to them is gone, the array is released."""
        flat: NDArray[Any] = np.asarray(_LentBytes(self, array))
        return flat.view(array.dtype).reshape(array.shape)

    def release(self, array: Array) -> None:
        """Make an array available for reuse."""
        self._returned.append(array)

    def _collect(self) -> None:
        """Move released arrays to the spare arrays, and drop the oldest ones beyond the limits."""
        while self._returned:
            self._spares.append(self._returned.popleft())
        spare_bytes = sum(array.nbytes for array in self._spares)
        while spare_bytes > self._limit or len(self._spares) > MAX_SPARES:
            spare_bytes -= self._spares.pop(0).nbytes


@final
class _LentBytes:
    """The bytes of an array; deleting the object releases the array."""

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
