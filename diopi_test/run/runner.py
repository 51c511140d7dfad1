"""`run`: runs the suite on one vendor, with the cases in workers and every event in a log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import final

from rich.console import Console

from diopi_impl import VendorError, VendorNotFoundError
from diopi_test.baseline.cluster import ClusterError
from diopi_test.baseline.errors import BaselineError
from diopi_test.baseline.level import StoredLevel
from diopi_test.baseline.readability import check_readable
from diopi_test.baseline.store import BaselineFile
from diopi_test.execution.runtime_cases import RUNTIME
from diopi_test.execution.verdict import PROCESS_LOST, Outcome, Verdict
from diopi_test.results.claims import compare_claims
from diopi_test.results.log import LogError, LogWriter
from diopi_test.run.case_executor import CaseExecutor, executor_of
from diopi_test.run.collection import Collected
from diopi_test.run.declaration_check import check_declaration
from diopi_test.run.dump import DumpError, dump
from diopi_test.run.failure_policy import FailurePolicy
from diopi_test.run.family_results import FamilyResults, family_of
from diopi_test.run.identical_failures import IdenticalFailures
from diopi_test.run.isolation.executor import ScheduledCase
from diopi_test.run.isolation.fork_server import ForkServerError
from diopi_test.run.keywords import SelectionError
from diopi_test.run.limits import CaseOptions
from diopi_test.run.lookup import load_case
from diopi_test.run.options import RunOptions
from diopi_test.run.progress import VisibleProgress
from diopi_test.run.recorder import LogContent, Recorder
from diopi_test.run.selection import Selection
from diopi_test.run.source import CaseSource
from diopi_test.waivers.rules import Waivers

BATCH = 32
"""Number of cases that a worker receives at a time."""


class FailureLimitError(Exception):
    """The maximum number of failures was reached; the message says so."""


class IdenticalFailuresError(FailureLimitError):
    """The vendor fails in the same way again and again; the message says so."""


WaitForCases = Callable[[Sequence[Collected]], None]
"""A function that waits until cases can be run; it raises VendorError if they never can."""


def run(
    options: RunOptions,
    log: Path,
    console: Console,
    *,
    resumed: bool = False,
    wait_for: WaitForCases | None = None,
) -> LogContent:
    """Run the suite with these options and record every event in a log.

    Args:
        options: The options of the run.
        log: The path of the log.
        console: The console for progress.
        resumed: Whether to continue the run of an existing log with the cases that have no verdict there.
        wait_for: The function that is called before each batch of cases; None if all cases can be run.

    Returns:
        The content of the log at the end, also if the run ended early.

    Raises:
        TableError: A waiver file is invalid. With this and the following errors, no case was run and no new log exists.
        NumericsError: The declaration of the arithmetic is missing or invalid.
        VendorNotFoundError: There is no such vendor.
        SelectionError: There is no such case.
        BaselineError: The baseline is unusable.
        LogError: The log is unusable.
        KeyboardInterrupt: The run was interrupted before its beginning was recorded.
    """
    waivers = Waivers.read(options.waivers)
    source, execution = options.source, options.execution
    errors = source.prepare(console, options.workers)
    recorder = options.recorder(LogWriter(log, resumed=resumed))
    start = time.monotonic()
    try:
        executor = executor_of(options.vendor, options.limits, execution, workers=options.workers, dask=options.dask)
        with executor:
            scheduled = _begin(source, recorder, resumed)  # while the executor comes up
            if scheduled:
                monitor = Monitor(recorder, [item.case.function for item in scheduled], console, options)
                batches = _await_batches(scheduled, wait_for)
                _run_cases(scheduled, batches, executor, recorder, waivers, monitor)
                _check_numerics(executor, recorder, options.check_numerics)
                if execution.dump is not None:
                    _dump_lost(scheduled, recorder, execution, execution.dump)
        for note in (*errors, *executor.notes):
            recorder.error(note)
    except (VendorNotFoundError, SelectionError, BaselineError, LogError):
        if not resumed:
            recorder.discard()
        raise
    except (VendorError, ForkServerError, ClusterError, FailureLimitError) as error:
        recorder.stopped(str(error))
    except KeyboardInterrupt as interrupt:
        if not recorder.has_begun:
            recorder.discard()
            raise
        recorder.stopped(str(interrupt) or "interrupted")
    recorder.end(time.monotonic() - start)
    return recorder.content()


def _begin(source: CaseSource, recorder: Recorder, resumed: bool) -> Sequence[ScheduledCase]:
    """Record that a run begins or is resumed, and its cases; return the cases that have no verdict yet, in order."""
    level, cases = source.collect()
    functions = sorted({case.function for case in cases} - {RUNTIME})
    level.verify(functions)
    ids = [case.id for case in cases]
    if resumed:
        completed_ids = _resume(recorder, level, ids)
    else:
        recorder.begin(level.digest)
        recorder.schedule(ids)
        completed_ids = set()
    if not cases:
        recorder.stopped(source.selection.explain_empty(level.functions, cases))
    files = {RUNTIME: (Path(), None), **{name: (level.path(name), level.sha256(name)) for name in functions}}
    left = order_cases([case for case in cases if case.id not in completed_ids], source.selection)
    located = [(case, *files[case.function]) for case in left]
    return [ScheduledCase(path, case, sha256) for case, path, sha256 in located]


def order_cases(cases: Iterable[Collected], selection: Selection) -> Sequence[Collected]:
    """Return cases in the order in which they are run: by family unless they are shuffled.

    Args:
        cases: The selected cases.
        selection: The selection.

    Returns:
        The cases.
    """
    if selection.seed is not None:
        return list(cases)
    return sorted(cases, key=lambda case: family_of(case.function))  # so that results by family come early


def _resume(recorder: Recorder, level: StoredLevel, ids: Sequence[str]) -> set[str]:
    """Return the IDs of the cases that have a verdict, and record that the run is resumed.

    Args:
        recorder: The recorder of the resumed log.
        level: The level, which must have the digest that the log contains.
        ids: The IDs of all cases of the run. They are recorded if the log does not contain them yet.

    Returns:
        The IDs of the cases that need not run again.

    Raises:
        LogError: The log belongs to a run on another baseline.
    """
    content = recorder.content()
    if content.header.baseline.digest != level.digest:
        raise LogError(
            f"{content.path} is of a run on another baseline, with the digest {content.header.baseline.digest}; "
            f"{level.folder} has the digest {level.digest}"
        )
    recorder.resume()
    if content.schedule is None:
        recorder.schedule(ids)
    return {case.id for case in content.cases.values() if case.verdict is not Verdict.not_run}


def _run_cases(
    scheduled: Sequence[ScheduledCase],
    batches: Iterator[Sequence[ScheduledCase]],
    executor: CaseExecutor,
    recorder: Recorder,
    waivers: Waivers,
    monitor: Monitor,
) -> None:
    """Record the vendor and the waivers, run the cases in batches, and record whether the vendor's claims are true."""
    description = executor.describe()
    recorder.vendor(description)
    waivers += Waivers.from_vendor(description.name, description.waivers)
    recorder.waivers(waivers)
    monitor.policy = replace(monitor.policy, waivers=waivers)
    with monitor:
        try:
            executor.run(batches, monitor.report, monitor.policy)
        except IdenticalFailuresError as error:
            monitor.record_not_run([item.case for item in scheduled], str(error))
            raise
    if description.claims:
        paths = sorted({item.path for item in scheduled if item.case.function != RUNTIME})
        try:
            if claims := compare_claims(description.claims, recorder.content().report().cases, paths):
                recorder.claims(claims)
        except BaselineError as error:
            recorder.error(str(error))


def _check_numerics(executor: CaseExecutor, recorder: Recorder, requested: bool | None) -> None:
    """Compare the declared arithmetic with measurements if it is requested, or else if it is not IEEE 754."""
    declared = executor.describe().numerics
    if not declared.is_ieee if requested is None else requested:
        recorder.declaration_check(check_declaration(executor, declared))


def _dump_lost(scheduled: Sequence[ScheduledCase], recorder: Recorder, options: CaseOptions, folder: Path) -> None:
    """Write the dumps of cases whose process died before it could write them."""
    lost = {case.id for case in recorder.content().cases.values() if case.verdict in PROCESS_LOST}
    stored = [(item, item.sha256) for item in scheduled if item.case.id in lost and item.sha256 is not None]
    try:
        if stored:
            check_readable({item.path: sha256 for item, sha256 in stored})
        for item, sha256 in stored:
            loaded = load_case(BaselineFile(item.path, sha256), item.case, options)
            dump(loaded.case, {}, folder)
    except (DumpError, BaselineError) as error:
        recorder.error(str(error))


def split_into_batches(scheduled: Sequence[ScheduledCase], size: int = BATCH) -> Iterator[Sequence[ScheduledCase]]:
    """Yield the cases in order, in batches of at most `size`."""
    return (scheduled[start : start + size] for start in range(0, len(scheduled), size))


def _await_batches(
    scheduled: Sequence[ScheduledCase], wait_for: WaitForCases | None
) -> Iterator[Sequence[ScheduledCase]]:
    """Yield the cases in batches, each when it can be run."""
    for batch in split_into_batches(scheduled):
        if wait_for is not None:
            wait_for([item.case for item in batch])
        yield batch


@final
class Monitor:
    """An object that records each outcome, shows the progress of the run, and stops it at a limit of failures.

    Args:
        recorder: The recorder of the log.
        functions: The function of each case to run.
        console: The console for progress.
        options: The options of the run.

    Attributes:
        policy: which failures count.
    """

    def __init__(self, recorder: Recorder, functions: Sequence[str], console: Console, options: RunOptions) -> None:
        self.policy = FailurePolicy(fail_on=options.fail_on, strict=options.strict)
        self._recorder = recorder
        self._max_failures = options.max_failures
        self._identical = IdenticalFailures(limit=options.stop_after_identical)
        self._failed = 0
        self._ended: set[str] = set()
        self._families = FamilyResults(functions)
        self._progress = VisibleProgress(console)
        self._task = self._progress.add_task("running", total=len(functions))

    def __enter__(self) -> Monitor:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def report(self, case: Collected, outcome: Outcome, seconds: float) -> None:
        """Record the outcome of a case.

        Raises:
            FailureLimitError: The maximum number of failures is reached.
            IdenticalFailuresError: The vendor fails in the same way again and again.
        """
        record = case.record(outcome, seconds)
        self._recorder.case(record)
        self._ended.add(case.id)
        self._progress.advance(self._task)
        final = self.policy.waivers.apply(record)
        if line := self._families.add(case.function, final.verdict):
            self._progress.console.print(line, highlight=False, markup=False, soft_wrap=True)
        self._failed += self.policy.counts(record)
        if self._max_failures is not None and self._failed >= self._max_failures:
            raise FailureLimitError(f"stopped after {self._failed} failures")
        if reason := self._identical.reason_to_stop(final):
            raise IdenticalFailuresError(reason)

    def record_not_run(self, cases: Sequence[Collected], reason: str) -> None:
        """Record for each case that has not ended why it was not run."""
        outcome = Outcome(verdict=Verdict.not_run, message=f"not run: {reason}")
        for case in cases:
            if case.id not in self._ended:
                self._recorder.case(case.record(outcome, 0.0))
