"""The part of `ClusterExecutor` on a Dask worker. It runs batches of cases in worker processes, which it reuses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock, Timer
from typing import final

from diopi_impl import VendorError, VendorNotFoundError
from diopi_test.baseline.cluster import ClusterError, worker_name
from diopi_test.baseline.codec import from_json, to_json
from diopi_test.execution.runtime_cases import RUNTIME
from diopi_test.execution.verdict import Outcome
from diopi_test.run.collection import Collected
from diopi_test.run.declaration_check import NUMERICS
from diopi_test.run.failure_policy import FailurePolicy
from diopi_test.run.isolation.description import Description
from diopi_test.run.isolation.executor import Executor, ScheduledCase
from diopi_test.run.isolation.fork_server import ForkServerError
from diopi_test.run.limits import CaseOptions, Limits

MAX_IDLE_SECONDS = 60.0
"""Seconds without a batch after which an idle executor closes its device, because the client may have died."""


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Cases that a Dask worker runs in order; a batch without cases asks for the vendor's description.

    Attributes:
        run: the unique name of the run to which the cases belong.
        vendor, limits, options: the arguments of `Executor`.
        scheduled: the cases.
        policy: which of their failures count, and which cases are known flakes.
    """

    run: str
    vendor: str
    limits: Limits
    options: CaseOptions
    scheduled: tuple[ScheduledCase, ...] = ()
    policy: FailurePolicy = field(default_factory=FailurePolicy)


@dataclass(frozen=True)
class EndedCase:
    """The outcome of a case and the seconds that it took."""

    case: Collected
    outcome: Outcome
    seconds: float


@dataclass(frozen=True, kw_only=True)
class BatchResult:
    """The result of a batch.

    Attributes:
        worker: the worker that ran the batch, in words for people.
        vendor: the vendor's name, version and declared arithmetic on the worker.
        description: the description of the vendor, if it was requested.
        ended: the outcomes of the cases that ended.
        notes: problems that are not verdicts of cases.
        stopped: why the vendor does not start; None if it does.
        is_vendor_there: whether the vendor exists on the worker.
    """

    worker: str
    vendor: str
    description: Description | None
    ended: tuple[EndedCase, ...]
    notes: tuple[str, ...]
    stopped: str | None
    is_vendor_there: bool


@final
class IdleExecutors:
    """The idle executors of this Dask worker, which the next batches use again. They belong to the latest run.

    Executors of earlier runs are closed, because another run may need the device.

    Attributes:
        abandoned: the runs whose results are no longer needed.
    """

    def __init__(self) -> None:
        self.abandoned: set[str] = set()
        self._lock = Lock()
        self._run = ""
        self._idle: list[Executor] = []
        self._timer = Timer(MAX_IDLE_SECONDS, self.close)

    @contextmanager
    def lend(self, batch: Batch) -> Iterator[Executor]:
        """Lend an executor to a batch, and take it back at the end of the context, or close it after an exception.

        Yields:
            An idle executor of the same run, or a new one.
        """
        with self._lock:
            self._timer.cancel()
            leaving = [] if batch.run == self._run else self._take_all()
            self._run = batch.run
            executor = self._idle.pop() if self._idle else None
        _close(leaving)
        executor = executor or Executor(batch.vendor, 1, batch.limits, batch.options).__enter__()
        try:
            yield executor
        except BaseException as error:
            executor.__exit__(type(error))
            raise
        self._return(batch.run, executor)

    def _return(self, run: str, executor: Executor) -> None:
        """Add an executor to the idle executors of its run; close it if another run has begun or the run is abandoned.

        A timer closes an idle executor unless a batch uses it first.
        """
        with self._lock:
            is_wanted = run == self._run and run not in self.abandoned
            if is_wanted:
                self._idle.append(executor)
                self._timer.cancel()
                self._timer = Timer(MAX_IDLE_SECONDS, self.close)
                self._timer.daemon = True
                self._timer.start()
        if not is_wanted:
            _close([executor])

    def close(self, run: str | None = None) -> list[str]:
        """Close the idle executors of a run, or all idle executors if `run` is None; return their notes."""
        with self._lock:
            leaving = self._take_all() if run in (None, self._run) else []
        return _close(leaving)

    def _take_all(self) -> list[Executor]:
        """Remove and return all idle executors."""
        idle, self._idle = self._idle, []
        return idle


IDLE_EXECUTORS = IdleExecutors()
"""The idle executors of this process."""


def run_batch(text: str) -> str:
    """Run a `Batch` and return its `BatchResult`, both as JSON.

    A batch that fails because of a passing problem of this machine is run a second time.

    Args:
        text: The batch.

    Returns:
        The result.

    Raises:
        ClusterError: This Dask worker lacks a baseline file, or the run was interrupted.
        ForkServerError: The processes can't be started.
    """
    batch = from_json(Batch, json.loads(text))
    _check_files(batch)
    try:
        result = _run(batch)
    except ForkServerError:  # a passing problem of this machine, such as too little memory
        result = _run(batch)
    return json.dumps(to_json(result))


def _run(batch: Batch) -> BatchResult:
    """Return the result of running a batch of cases once; a vendor that does not start becomes part of the result."""
    ended: list[EndedCase] = []

    def report(case: Collected, outcome: Outcome, seconds: float) -> None:
        ended.append(EndedCase(case, outcome, seconds))
        if batch.run in IDLE_EXECUTORS.abandoned:
            raise ClusterError("the run was interrupted")

    try:
        with IDLE_EXECUTORS.lend(batch) as executor:
            vendor = executor.describe()
            executor.run([batch.scheduled] if batch.scheduled else [], report, batch.policy)
            notes, executor.notes = tuple(executor.notes), []
    except VendorError as error:
        is_there = not isinstance(error, VendorNotFoundError)
        return BatchResult(
            worker=worker_name(),
            vendor="",
            description=None,
            ended=tuple(ended),
            notes=(),
            stopped=str(error),
            is_vendor_there=is_there,
        )
    description = None if batch.scheduled else vendor
    return BatchResult(
        worker=worker_name(),
        vendor=f"{vendor.name} {vendor.version} with numerics {vendor.numerics.name} ({vendor.numerics.digest[:8]})",
        description=description,
        ended=tuple(ended),
        notes=notes,
        stopped=None,
        is_vendor_there=True,
    )


def _check_files(batch: Batch) -> None:
    """Raise `ClusterError` if this worker lacks a baseline file of the batch."""
    for path in {scheduled.path for scheduled in batch.scheduled if scheduled.case.function not in (RUNTIME, NUMERICS)}:
        if not path.is_file():
            raise ClusterError(
                f"worker {worker_name()} has no baseline file {path}: all workers need the baseline under the path it "
                "has where the run was started"
            )


async def close_devices(run: str) -> list[str]:
    """Close the idle executors of a run on this Dask worker, and return their notes."""
    return await asyncio.to_thread(IDLE_EXECUTORS.close, run)


async def abandon(run: str) -> list[str]:
    """End a run on this Dask worker: close idle executors at once, and the others after their current case.

    Args:
        run: the ID of the run.

    Returns:
        What `close_devices` returns for the idle executors.
    """
    IDLE_EXECUTORS.abandoned.add(run)
    return await close_devices(run)


def _close(executors: list[Executor]) -> list[str]:
    """Close executors and return their notes."""
    for executor in executors:
        executor.__exit__(None)
    return [note for executor in executors for note in executor.notes]
