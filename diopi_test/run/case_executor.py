"""The executor of a run: workers on this machine, or on the machines of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, Self

from diopi_test.execution.verdict import Outcome
from diopi_test.run.collection import Collected
from diopi_test.run.isolation.description import Description
from diopi_test.run.isolation.executor import Executor, ScheduledCase
from diopi_test.run.options import RunOptions


class CaseExecutor(Protocol):
    """An executor of cases of one vendor; see `isolation.executor.Executor`."""

    notes: list[str]

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: object, *_: object) -> None: ...

    def describe(self) -> Description:
        """Return the vendor's description of itself."""

    def run(
        self,
        batches: Iterable[Sequence[ScheduledCase]],
        report: Callable[[Collected, Outcome, float], None],
        retries: Callable[[str], int] = ...,
    ) -> None:
        """Run the cases and report each of them once."""


def executor_of(options: RunOptions) -> CaseExecutor:
    """Return the executor for a run with these options."""
    if options.dask is None:
        return Executor(options.vendor, options.workers, options.limits, options.of_cases)
    from diopi_test.run.cluster import ClusterExecutor

    return ClusterExecutor(options.dask, options.vendor, options.limits, options.of_cases)
