"""Call a function on many items in several processes, which end when their parent process ends."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from typing import Protocol, TypeVar

SINGLE_THREAD_VARIABLES = dict.fromkeys(
    ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)
"""Environment variables that limit NumPy's linear algebra to one thread.

Threads of several processes would compete for cores, and their number determines the order of rounding in sums."""

Item = TypeVar("Item")
Result = TypeVar("Result")


class ParallelMap(Protocol):
    """A function that calls another one on many items in several processes, on this machine or on others."""

    def __call__(self, work: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[Item, Result]]:
        """Yield each item with the result of `work(item)` in order of completion."""
        ...


def process_map(workers: int) -> ParallelMap:
    """Return a map over `workers` processes of this machine."""

    def spread(work: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[Item, Result]]:
        """Call the function on the items in new processes, which end with the iteration."""
        return map_in_processes(work, items, workers)

    return spread


def map_in_processes(
    work: Callable[[Item], Result], items: Sequence[Item], workers: int
) -> Iterator[tuple[Item, Result]]:
    """Yield each item with the result of `work(item)` in order of completion.

    If a call fails, its exception is raised, and the calls that have not started are canceled.

    Args:
        work: A function that the processes can import.
        items: The items.
        workers: The number of processes.

    Yields:
        An item and its result.
    """
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_start_parent_watch) as pool:
        with _set_environment(SINGLE_THREAD_VARIABLES):  # each job may start a process
            jobs = {pool.submit(work, item): item for item in items}
        try:
            for job in as_completed(jobs):
                yield jobs[job], job.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


@contextmanager
def _set_environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Return a context manager in which environment variables are set for the processes that are started."""
    previous = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(previous)


def _start_parent_watch() -> None:
    """Start a thread that ends this process as soon as the parent process has ended."""
    threading.Thread(target=_end_after_parent, daemon=True).start()


def _end_after_parent() -> None:
    """Wait for the parent process to end, then end this process."""
    if (parent := parent_process()) is not None:
        parent.join()  # waits for a pipe that only the parent holds open
    os._exit(1)
