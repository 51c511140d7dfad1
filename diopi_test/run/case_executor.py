"""The executor of a run: workers on this machine, or on the machines of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, Self

from diopi_test.execution.verdict import Outcome
from diopi_test.run.collection import Collected
from diopi_test.run.failure_policy import FailurePolicy
from diopi_test.run.isolation.description import Description
from diopi_test.run.isolation.executor import Executor, ScheduledCase
from diopi_test.run.limits import CaseOptions, Limits


class CaseExecutor(Protocol):
    """The interface of executors, which run cases in workers; see `isolation.executor.Executor`.

    Attributes:
        notes: problems of the run that belong to no case, as sentences.
    """

    notes: list[str]

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: object, *_: object) -> None: ...

    def describe(self) -> Description:
        """Return the vendor's description of itself."""

    def run(
        self,
        batches: Iterable[Sequence[ScheduledCase]],
        report: Callable[[Collected, Outcome, float], None],
        policy: FailurePolicy | None = ...,
    ) -> None:
        """Run the cases and report each of them once.

        Args:
            batches: The cases.
            report: Receives each case with its outcome and its duration in seconds.
            policy: Which failures count; an executor confirms only these.
        """


def executor_of(vendor: str, limits: Limits, options: CaseOptions, *, workers: int, dask: str | None) -> CaseExecutor:
    """Return the executor of a run.

    Args:
        vendor: The vendor, as `diopi_impl.find_vendor` takes it.
        limits: The resources that the cases may use.
        options: How to run and check the cases.
        workers: The number of worker processes on this machine.
        dask: The address of the scheduler of the Dask cluster that runs the cases; None for this machine.

    Returns:
        The executor.
    """
    if dask is None:
        return Executor(vendor, workers, limits, options)
    from diopi_test.run.cluster import ClusterExecutor

    return ClusterExecutor(dask, vendor, limits, options)
