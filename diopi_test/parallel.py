"""Work on many functions in several processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_processes(work: Callable[[Item], Result], items: Sequence[Item], workers: int) -> Iterator[tuple[Item, Result]]:
    """Each item with what `work` made of it, as they are finished.

    Raises what the first failing call raised; what hasn't begun by then is dropped.
    """
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        jobs = {pool.submit(work, item): item for item in items}
        try:
            for job in as_completed(jobs):
                yield jobs[job], job.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
