"""`ClusterExecutor`: runs cases in worker processes on the machines of a Dask cluster."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import final
from uuid import uuid4

from diopi_impl import VendorError, VendorNotFoundError
from diopi_test.baseline.cluster import Cluster, ClusterError
from diopi_test.baseline.codec import from_json, to_json
from diopi_test.execution.verdict import PROCESS_LOST, Outcome, Verdict
from diopi_test.run.cluster_worker import Batch, BatchResult, abandon, close_devices, run_batch
from diopi_test.run.collection import Collected
from diopi_test.run.failure_policy import FailurePolicy
from diopi_test.run.isolation.description import Description
from diopi_test.run.isolation.executor import DEFAULT_CASE_OPTIONS, DEFAULT_LIMITS, ScheduledCase
from diopi_test.run.limits import CaseOptions, Limits

ReportCase = Callable[[Collected, Outcome, float], None]
"""A function that receives a case that ended, its outcome, and the seconds that it took."""


def split_by_function(batches: Iterable[Sequence[ScheduledCase]]) -> Iterable[Sequence[ScheduledCase]]:
    """Yield the pieces of each batch, one piece per function.

    A batch in which a function's cases are not consecutive is not split.
    """
    for batch in batches:
        pieces: dict[str, list[ScheduledCase]] = {}
        for scheduled in batch:
            pieces.setdefault(scheduled.case.function, []).append(scheduled)
        in_order = [scheduled for piece in pieces.values() for scheduled in piece] == list(batch)
        yield from pieces.values() if in_order else [batch]


@final
class ClusterExecutor:
    """An executor on a Dask cluster, with the methods of `isolation.executor.Executor`.

    The cluster assigns each batch to a Dask worker with a free device, where an `Executor` runs the batch. If the Dask
    worker dies, the cluster repeats the batch on another one, a limited number of times (Dask's setting
    `allowed-failures`). After that, the cases of the batch run one by one. A single case that also exhausts the
    repetitions is reported as crashed. Each case is reported once.

    Args:
        address: The address of the scheduler of the cluster.
        vendor: The name of the vendor or the path of its library, which `diopi_impl.find_vendor` receives on each Dask
            worker.
        limits: The resources that the cases may use.
        options: How to run and check the cases.

    Attributes:
        notes: problems of the run that belong to no case.
    """

    def __init__(
        self, address: str, vendor: str, limits: Limits = DEFAULT_LIMITS, options: CaseOptions = DEFAULT_CASE_OPTIONS
    ) -> None:
        self.notes: list[str] = []
        self._cluster = Cluster(address)
        located_vendor = str(Path(vendor).absolute()) if vendor.endswith(".so") else vendor
        dump = options.dump.absolute() if options.dump else None
        self._template = Batch(
            run=uuid4().hex, vendor=located_vendor, limits=limits, options=replace(options, dump=dump)
        )
        self._repetitions: deque[Batch] = deque()  # batches to run again because their Dask workers died
        self._lost: Counter[str] = Counter()  # the number of cases that ended their process, by function
        self._vendor = ""  # the vendor's name, version and arithmetic, after `describe`

    def __enter__(self) -> ClusterExecutor:
        self._cluster.__enter__()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """Close the devices on all workers, or abandon them after an exception; then leave the cluster."""
        try:
            end = abandon if kind else close_devices
            for worker, notes in self._cluster.run_on_all_workers(end, self._template.run).items():
                failed = isinstance(notes, Exception)
                self._add_notes(worker, [f"its devices could not be closed: {notes}"] if failed else notes)
        except ClusterError as error:
            self.notes.append(str(error))
        finally:
            self._cluster.__exit__()

    def describe(self) -> Description:
        """Return the vendor's description of itself.

        Raises:
            VendorError: The vendor does not start (VendorNotFoundError: a Dask worker does not find it), or every Dask
                worker that loaded it has died.
        """
        requests = iter([_to_json(self._template)])
        for _, reply in self._cluster.run_calls(run_batch, lambda: next(requests, None), self._on_killed):
            result = _from_json(reply)
            self._check_vendor(result)
            if result.description is not None:
                self._vendor = result.vendor
                return result.description
        raise VendorError(f"vendor {self._template.vendor} does not start: every worker that loaded it has died")

    def run(
        self,
        batches: Iterable[Sequence[ScheduledCase]],
        report: ReportCase,
        policy: FailurePolicy | None = None,
    ) -> None:
        """Run the cases and report each of them once.

        The cases of one function in a batch run in order in one process, as long as this process does not die.

        Args:
            batches: The cases.
            report: Receives each case with its outcome and duration in seconds.
            policy: Which failures count and are therefore confirmed, and which cases are known flakes.

        Raises:
            VendorError: The vendor does not start on a worker.
            ClusterError: The cluster fails; cases that were not reported have not been run.
        """
        self._report = report
        work = (self._batch(scheduled, policy or FailurePolicy()) for scheduled in split_by_function(batches))
        for _, reply in self._cluster.run_calls(run_batch, lambda: self._next(work), self._on_killed):
            result = _from_json(reply)
            for ended in result.ended:
                self._lost[ended.case.function] += ended.outcome.verdict in PROCESS_LOST
                report(ended.case, ended.outcome, ended.seconds)
            self._add_notes(result.worker, result.notes)
            self._check_vendor(result)

    def _batch(self, scheduled: Sequence[ScheduledCase], policy: FailurePolicy) -> Batch:
        """Return a batch for one task of the cluster, with absolute paths.

        Args:
            scheduled: the cases.
            policy: which failures are confirmed or retried.
        """
        located = tuple(replace(item, path=item.path.absolute()) for item in scheduled)
        return replace(
            self._template,
            scheduled=located,
            policy=policy.for_cases([item.case.id for item in scheduled]),
        )

    def _next(self, work: Iterator[Batch]) -> str | None:
        """Return the next batch as JSON, or None if no batch is left.

        Batches whose Dask workers died come first. Cases of abandoned functions are removed and reported as not run. A
        function is abandoned after `Limits.lost` of its cases have ended their process.
        """
        while batch := self._repetitions.popleft() if self._repetitions else next(work, None):
            if scheduled := tuple(item for item in batch.scheduled if not self._report_if_abandoned(item)):
                return _to_json(replace(batch, scheduled=scheduled))
        return None

    def _report_if_abandoned(self, scheduled: ScheduledCase) -> bool:
        """Return whether a case's function was abandoned; if so, report the case as not run."""
        lost = self._lost[scheduled.case.function]
        if lost < self._template.limits.lost:
            return False
        reason = f"{lost} cases of {scheduled.case.function} have crashed, hung or run out of memory"
        self._report(scheduled.case, Outcome(verdict=Verdict.not_run, message=f"not run: {reason}"), 0.0)
        return True

    def _on_killed(self, text: str) -> None:
        """Handle a batch that the cluster gave up because several Dask workers died while they ran it.

        If the batch has several cases, they run again one by one. A single case is reported as crashed.
        """
        batch = from_json(Batch, json.loads(text))
        if len(batch.scheduled) > 1:
            self._repetitions += [replace(batch, scheduled=(item,)) for item in batch.scheduled]
            return
        for item in batch.scheduled:
            self._lost[item.case.function] += 1
            self._report(
                item.case, Outcome(verdict=Verdict.crashed, message="every worker that ran it alone has died"), 0.0
            )

    def _check_vendor(self, result: BatchResult) -> None:
        """Raise an error if the vendor does not start on a Dask worker, or differs from the described vendor."""
        if result.stopped is not None:
            kind = VendorError if result.is_vendor_there else VendorNotFoundError
            raise kind(f"on worker {result.worker}: {result.stopped}")
        if self._vendor not in ("", result.vendor):
            raise ClusterError(f"the vendor is {result.vendor} on worker {result.worker}, and {self._vendor} on others")

    def _add_notes(self, worker: str, notes: Iterable[str]) -> None:
        """Add notes of a worker to the notes of the run."""
        self.notes += [f"worker {worker}: {note}" for note in notes]


def _to_json(batch: Batch) -> str:
    """Return the text in which a batch of cases is sent to a worker."""
    return json.dumps(to_json(batch))


def _from_json(text: str) -> BatchResult:
    """Read the results of a batch from the text that a worker has returned."""
    return from_json(BatchResult, json.loads(text))
