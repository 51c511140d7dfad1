"""Work spread over a Dask cluster: calls of functions that its workers import, each of which is answered once.

A call whose worker dies is made again on another; who dies is the cluster's matter, not that of the work.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import CancelledError
from functools import cache, partial
from importlib.metadata import version
from socket import gethostname
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar, final

if TYPE_CHECKING:
    from distributed import Client, Future

Item = TypeVar("Item")
Result = TypeVar("Result")

RESOURCE = "device"
"""What a worker offers as many of as there are calls it makes at a time."""

QUEUED_PER_RUNNING = 2
"""Calls that are handed over for each that is being made, so that no worker waits; few, as all share its death."""

CONNECT_TIMEOUT, WORKER_TIMEOUT = 10.0, 60.0
"""Seconds to find the scheduler, and to wait for a worker when there is none."""

_POLL_INTERVAL, _GATHER_TIMEOUT = 2.0, 30.0
"""Seconds between two looks at how many workers there are, and for an answer to come from the worker that has it."""

_WORK_LOCK = Lock()


class ClusterError(Exception):
    """The cluster can't be used, or no longer; the message says why."""


@cache
def required_versions() -> dict[str, str]:
    """The software that must be the same on all machines."""
    return {name: version(name) for name in ("diopi", "numpy", "scipy")}


def worker_name() -> str:
    """The worker process this is, for people."""
    from distributed import get_worker

    return f"{get_worker().address} ({gethostname()})"


def check_versions(expected: dict[str, str]) -> None:
    """ClusterError if a version is another on this machine."""
    for name, found in required_versions().items():
        if found != expected[name]:
            raise ClusterError(f"{name} is {found} on {gethostname()}, and {expected[name]} where it was called from")


def call_with_versions(expected: dict[str, str], work: Callable[[Item], Result], item: Item) -> Result:
    """What a worker does: `work`, if its software is what is expected (it may have joined late)."""
    check_versions(expected)
    return work(item)


def call_exclusively(work: Callable[[Item], Result], item: Item) -> Result:
    """The same for work that was written for a process of its own: one at a time, whatever a worker offers."""
    with _WORK_LOCK:
        return work(item)


@final
class Cluster:
    """A connection to a Dask cluster, made when its context is entered. All methods raise ClusterError."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._client: Client
        self._last_capacity = (-_POLL_INTERVAL, 0)  # when, and how many calls can be made at a time

    def __enter__(self) -> Cluster:
        from distributed import Client

        try:
            self._client = Client(self.address, timeout=CONNECT_TIMEOUT)
        except (OSError, TimeoutError, ValueError) as error:
            raise ClusterError(f"there is no Dask scheduler at {self.address}: {error}") from error
        try:
            self._check_workers()
        except BaseException:
            self._client.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()  # which cancels what has not begun

    def _check_workers(self) -> None:
        if not self._capacity():
            raise ClusterError(
                f"no worker of {self.address} offers the resource {RESOURCE!r}: start them with "
                f'`dask worker {self.address} --nthreads 1 --resources "{RESOURCE}=1"`'
            )
        for worker, result in self.run_on_all_workers(check_versions, required_versions()).items():
            if isinstance(result, Exception):
                raise ClusterError(f"worker {worker} can't be used: {type(result).__name__}: {result}")

    def run_on_all_workers(self, function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
        """What a short function returns, or raises, on each worker that there is, beside the calls it makes."""
        try:
            results: dict[str, Any] = self._client.run(function, *arguments, on_error="return")
        except (OSError, TimeoutError) as error:
            raise self._connection_lost(error) from error
        return results

    def spread(self, work: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[Item, Result]]:
        """Each item with what `work` made of it, as they are finished; what a call raises is raised."""

        def killed(item: Item) -> None:
            raise ClusterError(f"{item}: every worker that was given it has died")

        remaining = iter(items)
        return self.calls(partial(call_exclusively, work), lambda: next(remaining, None), killed)

    def calls(
        self,
        work: Callable[[Item], Result],
        next_item: Callable[[], Item | None],
        report_killed: Callable[[Item], None],
    ) -> Iterator[tuple[Item, Result]]:
        """Each item with what `work` made of it, as they are finished; `next_item` gives None if there is none now.

        `killed` is told of an item whose workers have died several times, so that it is no longer tried. What a call
        raises is raised.
        """
        from distributed import KilledWorker

        running: dict[Future[Any], Item] = {}
        while self._submit(running, work, next_item):
            for future in self._wait_for_any(running):
                try:
                    result = self._result(future)
                except TimeoutError:  # its worker has died since: the call is made again
                    continue
                except KilledWorker:
                    report_killed(running.pop(future))
                else:
                    yield running.pop(future), result

    def _submit(
        self,
        running: dict[Future[Any], Item],
        work: Callable[[Item], Result],
        next_item: Callable[[], Item | None],
    ) -> bool:
        """Hand over calls while workers can take some; whether any is running."""
        limit = QUEUED_PER_RUNNING * max(1, self._capacity())
        while len(running) < limit and (item := next_item()) is not None:
            future = self._client.submit(
                call_with_versions, required_versions(), work, item, pure=False, resources={RESOURCE: 1}
            )
            running[future] = item
        return bool(running)

    def _wait_for_any(self, running: Collection[Future[Any]]) -> Collection[Future[Any]]:
        """At least one of the calls, as soon as it has come to something."""
        from distributed import wait

        end = time.monotonic() + WORKER_TIMEOUT
        while True:
            try:
                done: Collection[Future[Any]] = wait(
                    list(running), timeout=_POLL_INTERVAL, return_when="FIRST_COMPLETED"
                ).done
                return done
            except CancelledError as error:
                raise self._connection_lost(error) from error
            except TimeoutError:
                if self._capacity():
                    end = time.monotonic() + WORKER_TIMEOUT
            if time.monotonic() >= end:
                raise ClusterError(f"{self.address} has had no worker with a {RESOURCE} for {WORKER_TIMEOUT:g} s")

    def _result(self, future: Future[Any]) -> Any:
        """What a call returned; TimeoutError if that does not arrive."""
        if future.status == "error" and (error := future.exception()) is not None:
            raise error
        try:
            return future.result(timeout=_GATHER_TIMEOUT)
        except CancelledError as error:
            raise self._connection_lost(error) from error

    def _capacity(self) -> int:
        """How many calls can be made at a time, by the latest look."""
        checked_at, capacity = self._last_capacity
        if time.monotonic() - checked_at >= _POLL_INTERVAL:
            try:
                workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
            except (OSError, TimeoutError) as error:
                raise self._connection_lost(error) from error
            capacity = int(sum(worker["resources"].get(RESOURCE, 0) for worker in workers))
            self._last_capacity = time.monotonic(), capacity
        return capacity

    def _connection_lost(self, error: BaseException) -> ClusterError:
        return ClusterError(f"the Dask scheduler at {self.address} does not answer any more: {error}")
