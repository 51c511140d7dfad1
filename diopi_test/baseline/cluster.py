"""Distribute calls over a Dask cluster. If a worker dies, the cluster repeats its calls on another worker."""

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
"""The Dask resource that workers offer; its amount is the number of calls that the worker runs at a time."""

QUEUED_PER_RUNNING = 2
"""The number of calls submitted per running call.

More than 1, so that no worker waits; few, because a dying worker loses all of them."""

CONNECT_TIMEOUT, WORKER_TIMEOUT = 10.0, 60.0
"""Seconds to wait for the scheduler, and for a worker if there is none."""

_POLL_INTERVAL, _GATHER_TIMEOUT = 2.0, 30.0
"""Seconds between two checks of the number of workers, and to wait for the transfer of a result."""

_WORK_LOCK = Lock()
"""The lock that a worker holds during each call, because Dask may start several calls in threads of one process."""


class ClusterError(Exception):
    """The cluster can't be used, or no longer; the message gives the reason."""


@cache
def required_versions() -> dict[str, str]:
    """Return the versions of the software that must be the same on all machines."""
    return {name: version(name) for name in ("diopi", "numpy", "scipy")}


def worker_name() -> str:
    """Return a text with the address and the host of this worker process, for messages."""
    from distributed import get_worker

    return f"{get_worker().address} ({gethostname()})"


def check_versions(expected: dict[str, str]) -> None:
    """Raise ClusterError if this machine has another version of the software than expected."""
    for name, actual in required_versions().items():
        if actual != expected[name]:
            raise ClusterError(
                f"{name} has version {actual} on {gethostname()}, expected {expected[name]} as on the calling machine"
            )


def call_with_versions(expected: dict[str, str], work: Callable[[Item], Result], item: Item) -> Result:
    """Return `work(item)` on a worker, which may have joined late, after comparing its software with `expected`."""
    check_versions(expected)
    return work(item)


def call_exclusively(work: Callable[[Item], Result], item: Item) -> Result:
    """Return `work(item)`, called in this worker process, one call at a time even if the worker has several threads."""
    with _WORK_LOCK:
        return work(item)


@final
class Cluster:
    """A connection to a Dask cluster, which is open inside its context.

    All methods raise ClusterError if the cluster can't be used, or no longer.

    Args:
        address: The address of the scheduler, such as `tcp://host:8786`.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self._client: Client
        # the time of the last check, and the number of calls that the workers could run at a time
        self._last_capacity = (-_POLL_INTERVAL, 0)

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
        self._client.close()  # cancels calls that have not started

    def _check_workers(self) -> None:
        """Raise ClusterError if there is no worker, or if a worker has other software versions."""
        if not self._capacity():
            raise ClusterError(
                f"no worker of {self.address} offers the resource {RESOURCE!r}: start them with "
                f'`dask worker {self.address} --nthreads 1 --resources "{RESOURCE}=1"`'
            )
        for worker, result in self.run_on_all_workers(check_versions, required_versions()).items():
            if isinstance(result, Exception):
                raise ClusterError(f"worker {worker} can't be used: {type(result).__name__}: {result}")

    def run_on_all_workers(self, function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
        """Run a short function on every worker, without waiting for its calls to end.

        Returns:
            For each worker, the result of the function or the exception that it raised.
        """
        try:
            results: dict[str, Any] = self._client.run(function, *arguments, on_error="return")
        except (OSError, TimeoutError) as error:
            raise self._connection_lost(error) from error
        return results

    def spread(self, work: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[tuple[Item, Result]]:
        """Yield each item with the result of `work(item)` in order of completion.

        Args:
            work: The function to call on workers, one call at a time per process.
            items: The items.

        Returns:
            An iterator of items and results. It raises the exception of a call that fails.
        """

        def report_killed(item: Item) -> None:
            """Raise ClusterError: every worker that ran the item died."""
            raise ClusterError(f"{item}: every worker that ran it died")

        remaining = iter(items)
        return self.run_calls(partial(call_exclusively, work), lambda: next(remaining, None), report_killed)

    def run_calls(
        self,
        work: Callable[[Item], Result],
        next_item: Callable[[], Item | None],
        report_killed: Callable[[Item], None],
    ) -> Iterator[tuple[Item, Result]]:
        """Yield each item with the result of `work(item)` in order of completion; raise the exception of a failed call.

        Args:
            work: The function to call on workers.
            next_item: Returns the next item, or None if there is none at the moment.
            report_killed: Receives an item that is not tried again, because several workers died while they ran it.

        Yields:
            An item and its result.
        """
        from distributed import KilledWorker

        running: dict[Future[Any], Item] = {}
        while self._submit(running, work, next_item):
            for future in self._wait_for_any(running):
                try:
                    result = self._gather_result(future)
                except TimeoutError:  # its worker has died since: the cluster repeats the call
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
        """Submit calls up to the limit.

        Args:
            running: the items by the future of their call; the submitted calls are added.
            work: the function to call.
            next_item: returns the next item, or None if there are no more.

        Returns:
            Whether any call is running.
        """
        limit = QUEUED_PER_RUNNING * max(1, self._capacity())
        while len(running) < limit and (item := next_item()) is not None:
            future = self._client.submit(
                call_with_versions, required_versions(), work, item, pure=False, resources={RESOURCE: 1}
            )
            running[future] = item
        return bool(running)

    def _wait_for_any(self, running: Collection[Future[Any]]) -> Collection[Future[Any]]:
        """Return the finished calls, after at least one has finished.

        Raises:
            ClusterError: The scheduler no longer responds, or the cluster has no worker for `WORKER_TIMEOUT`.
        """
        from distributed import wait

        end = time.monotonic() + WORKER_TIMEOUT
        while True:
            try:
                completed: Collection[Future[Any]] = wait(
                    list(running), timeout=_POLL_INTERVAL, return_when="FIRST_COMPLETED"
                ).done
                return completed
            except CancelledError as error:
                raise self._connection_lost(error) from error
            except TimeoutError:
                if self._capacity():
                    end = time.monotonic() + WORKER_TIMEOUT
            if time.monotonic() >= end:
                raise ClusterError(f"{self.address} has had no worker with a {RESOURCE} for {WORKER_TIMEOUT:g} s")

    def _gather_result(self, future: Future[Any]) -> Any:
        """Return the result of a finished call.

        Args:
            future: The call. If it failed, its exception is raised.

        Returns:
            The result.

        Raises:
            TimeoutError: The result does not arrive, because its worker has died.
        """
        if future.status == "error" and (error := future.exception()) is not None:
            raise error
        try:
            return future.result(timeout=_GATHER_TIMEOUT)
        except CancelledError as error:
            raise self._connection_lost(error) from error

    def _capacity(self) -> int:
        """Return the number of calls that the workers can run at a time; check it at most every `_POLL_INTERVAL`."""
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
        """Return the error for a scheduler that no longer responds."""
        return ClusterError(f"the Dask scheduler at {self.address} no longer responds: {error}")
