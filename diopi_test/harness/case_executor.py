"""Who runs the cases of a run: device processes of this machine, or of the workers of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, Self

from diopi_test.execution.verdict import Outcome
from diopi_test.harness.collection import Collected
from diopi_test.harness.isolation.description import Description
from diopi_test.harness.isolation.executor import Executor, ScheduledCase
from diopi_test.harness.options import RunOptions


class CaseExecutor(Protocol):
    """Runs cases of one vendor; see `isolation.executor.Executor`."""

    notes: list[str]

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: object, *_: object) -> None: ...

    def describe(self) -> Description: ...

    def run(
        self,
        batches: Iterable[Sequence[ScheduledCase]],
        report: Callable[[Collected, Outcome, float], None],
        retries: Callable[[str], int] = ...,
    ) -> None: ...


def executor_of(options: RunOptions) -> CaseExecutor:
    """Who runs the cases of a run with these options."""
    if options.dask is None:
        return Executor(options.vendor, options.workers, options.limits, options.of_cases)
    from diopi_test.harness.cluster import ClusterExecutor

    return ClusterExecutor(options.dask, options.vendor, options.limits, options.of_cases)
