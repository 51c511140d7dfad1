"""The fixture of the cases: the collectives of a rank, memory for elements, and checks of results.

All ranks run the same case at the same time. A case raises `RuntimeViolationError` if the collectives violate the
interface. It releases what it allocates if it passes. The processes of all ranks end after a failed case.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from diopi_proto.types import Dtype
from diopi_test.collectives.combination import TYPE_BY_DTYPE, Elements
from diopi_test.device_runtime.bench import (
    GUARD,
    RuntimeBench,
    RuntimeViolationError,
    UnsupportedCaseError,
    check_bytes,
    check_that,
)
from lib_rt.collectives_client import CollectivesClient
from lib_rt.device_runtime_client import RuntimeCallError
from lib_rt.dtypes import to_numpy

CASES: dict[str, Callable[[CollectivesBench], None]] = {}
"""All cases by name."""

LARGE_CASES: set[str] = set()
"""The names of the cases that run only at level full."""

MARGIN = 64
"""The number of guard bytes before and after a buffer."""

LIMIT_VARIABLE = "DICL_TIMEOUT"
"""The environment variable of the time limit."""

GRACE_SECONDS = 10.0
"""The time after the time limit within which an error must be reported."""


def collective_case(function: Callable[[CollectivesBench], None]) -> Callable[[CollectivesBench], None]:
    """Return the function unchanged, after registering it as a case under its name."""
    CASES[function.__name__] = function
    return function


@final
@dataclass(kw_only=True)
class DeviceBuffer:
    """Elements in device memory between guard bytes.

    Attributes:
        bench: the bench that has allocated the memory.
        address: the address of the first element.
        dtype: the element type.
        count: the number of elements.
    """

    bench: CollectivesBench
    address: int
    dtype: Dtype
    count: int

    @property
    def nbytes(self) -> int:
        """The size of the elements in bytes."""
        return self.count * to_numpy(self.dtype).itemsize

    def element(self, index: int) -> int:
        """Return the address of an element."""
        return self.address + index * to_numpy(self.dtype).itemsize

    def store(self, elements: Elements) -> None:
        """Copy elements to the beginning of the buffer."""
        if elements.size:
            self.bench.runtime.upload(self.address, np.ascontiguousarray(elements).view(np.uint8))

    def load(self, subject: str) -> Elements:
        """Return the elements, a vector; raise RuntimeViolationError, which names `subject`, if guard bytes changed."""
        actual = self.bench.runtime.download(self.address - MARGIN, self.nbytes + 2 * MARGIN)
        check_bytes(f"{subject}: bytes before the buffer", actual[:MARGIN], GUARD)
        check_bytes(f"{subject}: bytes after the buffer", actual[MARGIN + self.nbytes :], GUARD)
        return actual[MARGIN : MARGIN + self.nbytes].view(to_numpy(self.dtype))


@final
@dataclass(kw_only=True)
class CollectivesBench:
    """The collectives under test in the process of a rank.

    Attributes:
        client: calls the functions of the collectives.
        runtime: calls the functions of the device runtime of the same library.
        rank: the rank of this process.
        ranks: the number of ranks.
        exchange: sends a value to all ranks and returns the values of all ranks in order; None for a rank that has
            ended the case or its process.
        announce_end: tells the process that started the ranks that this process is going to end on purpose.
    """

    client: CollectivesClient
    runtime: RuntimeBench
    rank: int
    ranks: int
    exchange: Callable[[Any], list[Any]]
    announce_end: Callable[[], None]
    _world: list[int] = field(default_factory=list)

    def call(self, name: str, *inputs: Any) -> None:
        """Call a function, see `CollectivesClient.call`."""
        self.client.call(name, *inputs)

    def require_ranks(self, count: int) -> None:
        """Raise UnsupportedCaseError if there are fewer ranks."""
        if self.ranks < count:
            raise UnsupportedCaseError(f"needs {count} ranks; the run has {self.ranks}")

    @property
    def world(self) -> int:
        """The handle of a communicator of all ranks, which the first use creates and all cases share."""
        if not self._world:
            self._world.append(self.create_communicator())
        return self._world[0]

    def create_communicator(self, members: list[int] | None = None) -> int:
        """Return the handle of a new communicator.

        Args:
            members: the ranks of the communicator, in its order; by default all ranks. Every rank that calls this
                function must be a member, and every rank that has not ended must call it.
        """
        ranks = list(range(self.ranks)) if members is None else members
        is_first = self.rank == ranks[0]
        ids = self.exchange(self.client.create_unique_id().hex() if is_first else None)
        unique_id = bytes.fromhex(ids[ranks[0]])
        return self.client.create_communicator(len(ranks), unique_id, ranks.index(self.rank), -1)

    @contextmanager
    def communicator(self, members: list[int] | None = None) -> Iterator[int]:
        """Create a communicator, and destroy it at the end of the `with` statement unless an exception ends it.

        Args:
            members: the ranks of the communicator in order; None for all ranks.

        Yields:
            The handle of the communicator.
        """
        comm = self.create_communicator(members)
        yield comm
        self.call("diclCommDestroy", comm)

    @contextmanager
    def buffer(self, dtype: Dtype, count: int, elements: Elements | None = None) -> Iterator[DeviceBuffer]:
        """Allocate a buffer between guard bytes, and free it at the end of the `with` statement.

        Args:
            dtype: the element type.
            count: the number of elements.
            elements: the elements at the beginning of the buffer; None fills it with guard bytes.

        Yields:
            The buffer.
        """
        size = count * to_numpy(dtype).itemsize + 2 * MARGIN
        with self.runtime.memory(size, GUARD) as memory:
            buffer = DeviceBuffer(bench=self, address=memory + MARGIN, dtype=dtype, count=count)
            if elements is not None:
                buffer.store(elements)
            yield buffer

    def synchronize(self, comm: int, stream: int) -> None:
        """Wait for a stream, and raise RuntimeCallError if the communicator has failed."""
        self.runtime.call("syncStream", stream)
        self.call("diclGetCommAsyncError", comm)

    @contextmanager
    def time_limit(self, seconds: float) -> Iterator[None]:
        """Return a context manager in which new IDs and communicators have a time limit of `seconds`."""
        previous = os.environ.get(LIMIT_VARIABLE)
        os.environ[LIMIT_VARIABLE] = f"{seconds:g}"
        yield
        if previous is None:
            del os.environ[LIMIT_VARIABLE]
        else:
            os.environ[LIMIT_VARIABLE] = previous

    def await_failure(self, subject: str, comm: int, seconds: float) -> float:
        """Return the seconds until the communicator reports an error; raise RuntimeViolationError after `seconds`."""
        start = time.monotonic()
        while time.monotonic() - start < seconds:
            try:
                self.call("diclGetCommAsyncError", comm)
            except RuntimeCallError:
                return time.monotonic() - start
            time.sleep(0.01)
        raise RuntimeViolationError(f"{subject}: diclGetCommAsyncError reports no error within {seconds:g} s")


def type_code(dtype: Dtype) -> int:
    """Return the number of an element type in PyTorch's enumeration `at::ScalarType`."""
    return TYPE_BY_DTYPE[dtype].value


def check_elements(subject: str, actual: Elements, expected: Elements) -> None:
    """Check that all elements have the expected bits; the message of the exception names the first wrong element.

    Args:
        subject: what is checked, for the message.
        actual: the elements, a vector.
        expected: the expected elements, in the same element type.

    Raises:
        RuntimeViolationError: if the numbers of elements or an element differ.
    """
    width = actual.itemsize
    actual_bytes = np.ascontiguousarray(actual).view(np.uint8).reshape(-1, width)
    expected_bytes = np.ascontiguousarray(expected).view(np.uint8).reshape(-1, width)
    check_that(
        actual_bytes.shape == expected_bytes.shape,
        f"{subject}: {len(actual_bytes)} elements, expected {len(expected_bytes)}",
    )
    places = np.flatnonzero((actual_bytes != expected_bytes).any(1))
    if places.size:
        first = int(places[0])
        raise RuntimeViolationError(
            f"{subject}: {places.size:,} of {len(actual_bytes):,} elements are wrong; the first is element {first:,}: "
            f"{actual[first]!r}, expected {expected[first]!r}"
        )
