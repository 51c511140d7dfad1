"""Limits of the time and memory that the reference may use for a random call."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from diopi_test.run.isolation.ending import STATISTICS

LONGEST = 10.0
"""Seconds, which stop no call but by mistake: sizes are drawn so that it takes less."""

LARGEST = 4 * 2**30
"""Bytes, the same."""


@contextmanager
def bounded(seconds: float = LONGEST, memory: int = LARGEST) -> Iterator[None]:
    """Raise TimeoutError if the body takes longer than the limit, or MemoryError if it needs too much memory."""
    with _at_most(seconds), _with_at_most(memory):
        yield


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    def ring(*_: object) -> None:
        raise TimeoutError(f"not done after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _with_at_most(memory: int) -> Iterator[None]:
    if not STATISTICS.exists():  # the system does not tell what was taken
        yield
        return
    before, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(STATISTICS.read_text().split()[0])
    limit = pages * os.sysconf("SC_PAGE_SIZE") + memory
    limits = [limit for limit in (before, hard) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_AS, (min([limit, *limits]), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (before, hard))
