"""Work on many functions in several processes, which end when the one they work for does."""

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
"""What tells NumPy's linear algebra to use one thread: threads of several processes that wait for each other cost more
than they save, and how many there are decides in which order sums are rounded."""

Item = TypeVar("Item")
Result = TypeVar("Result")


class ParallelMap(Protocol):
    """Does work on many items in several processes, here or on other machines: see `in_processes`."""

    def __call__(self, work: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[Item, Result]]: ...


def process_map(workers: int) -> ParallelMap:
    """So many processes of this machine."""

    def spread(work: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[Item, Result]]:
        return map_in_processes(work, items, workers)

    return spread


def map_in_processes(
    work: Callable[[Item], Result], items: Sequence[Item], workers: int
) -> Iterator[tuple[Item, Result]]:
    """Each item with what `work` made of it, as they are finished.

    Raises what the first failing call raised; what hasn't begun by then is dropped.
    """
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_end_with_parent) as pool:
        with _environment(SINGLE_THREAD_VARIABLES):  # each job may start a process
            jobs = {pool.submit(work, item): item for item in items}
        try:
            for job in as_completed(jobs):
                yield jobs[job], job.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Processes that are started meanwhile see these variables."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _end_with_parent() -> None:
    """End this process as soon as its parent has ended, in whatever way: nobody waits for its work any more."""
    threading.Thread(target=_end_after_parent, daemon=True).start()


def _end_after_parent() -> None:
    if (parent := parent_process()) is not None:
        parent.join()  # a pipe that the parent alone holds open
    os._exit(1)
