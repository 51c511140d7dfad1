"""Limits of the time and memory that the reference may use for a random call."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from diopi_test.run.isolation.ending import MEMORY_STATISTICS

MAX_SECONDS = 10.0
"""Time limit in seconds. The drawn sizes are small enough that a call normally takes much less."""

MAX_BYTES = 4 * 2**30
"""Memory limit in bytes, which a call normally does not reach either."""


@contextmanager
def limit_resources(seconds: float = MAX_SECONDS, memory: int = MAX_BYTES) -> Iterator[None]:
    """Return a context manager that limits the time and the memory of its body.

    The body raises TimeoutError if it takes longer than `seconds`, or MemoryError if it needs more than `memory`
    additional bytes.
    """
    with _limit_time(seconds), _limit_memory(memory):
        yield


@contextmanager
def _limit_time(seconds: float) -> Iterator[None]:
    """Return a context manager whose body raises TimeoutError in the main thread after this many seconds."""

    def raise_timeout(*_: object) -> None:
        """Raise TimeoutError when the timer's signal arrives."""
        raise TimeoutError(f"not done after {seconds:g} s")

    previous_handler = signal.signal(signal.SIGALRM, raise_timeout)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous_handler)


@contextmanager
def _limit_memory(memory: int) -> Iterator[None]:
    """Return a context manager whose body raises MemoryError if it needs more than this many additional bytes."""
    if not MEMORY_STATISTICS.exists():  # the system does not report the memory in use
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(MEMORY_STATISTICS.read_text().split()[0])
    limit = pages * os.sysconf("SC_PAGE_SIZE") + memory
    limits = [limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min([limit, *limits]), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
