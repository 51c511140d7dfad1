"""Run generated calls on a vendor like stored cases: in workers, with all checks."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import final

from diopi_impl import Numerics
from diopi_test.baseline import store
from diopi_test.execution.verdict import Outcome
from diopi_test.oracle.records import BaselineCase
from diopi_test.run.collection import Collected
from diopi_test.run.isolation.description import Description
from diopi_test.run.isolation.executor import Executor, ScheduledCase
from diopi_test.run.limits import CaseOptions, Limits

LEVEL = "smoke"
"""The level in the files of generated calls, so that `run --data` and `show --data` can read them."""


def write_calls(path: Path, calls: Sequence[BaselineCase]) -> None:
    """Write calls of one function to a baseline file; raise BaselineError if that fails."""
    store.write_baseline_file(path, calls[0].function, calls, store.Provenance(LEVEL, "", {}))


@final
class TrialRunner:
    """Runs generated calls of one vendor in a worker, which is replaced if it dies or on request."""

    def __init__(self, vendor: str, timeout: float, numerics: Numerics | None = None) -> None:
        self._stack = ExitStack()
        self._folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="diopi-fuzz-")))
        limits, options = Limits(timeout, lost=2**62), CaseOptions(numerics=numerics)
        self._executor = self._stack.enter_context(Executor(vendor, 1, limits, options))
        self._numbers = count()

    def __enter__(self) -> TrialRunner:
        return self

    def __exit__(self, *raised: object) -> None:
        self._stack.close()

    def describe(self) -> Description:
        """Return the description of the vendor; raise VendorError with the reason if it does not start."""
        return self._executor.describe()

    def restart_worker(self) -> None:
        """End the worker: the next call runs in a new one."""
        self._executor.renew()

    def run(
        self, calls: Sequence[BaselineCase], derived: Sequence[Collected] = (), *, new_worker: bool = False
    ) -> list[Outcome]:
        """Run the calls of one function.

        If a call fails in a worker that has run other calls, it is repeated in a new worker. It is `flaky` if it passes
        there.

        Args:
            calls: the calls, in order.
            derived: calls that are derived from these calls, and run after them.
            new_worker: whether to start a new worker first.

        Returns:
            The outcome of each call, then of each derived call.

        Raises:
            VendorError: if the vendor no longer starts.
        """
        if new_worker:
            self.restart_worker()
        folder = self._folder / str(next(self._numbers))  # a new folder, because workers cache files
        folder.mkdir()
        path = store.baseline_file(folder, calls[0].function)
        write_calls(path, calls)
        ended: dict[str, Outcome] = {}

        def report(case: Collected, outcome: Outcome, seconds: float) -> None:
            """Store the outcome of a call by its label."""
            ended[case.label] = outcome

        scheduled = [*map(to_collected, calls), *derived]
        self._executor.run([[ScheduledCase(path, case) for case in scheduled]], report)
        shutil.rmtree(folder)
        return [ended[case.label] for case in scheduled]


def to_collected(call: BaselineCase) -> Collected:
    """Return a generated call in the form in which a run handles a case."""
    return Collected(function=call.function, label=call.label, dtype=call.dtype.name, case_class=call.case_class)
