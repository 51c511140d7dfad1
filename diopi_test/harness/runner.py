"""`run`: the suite on one vendor, its cases in device processes, what happens in a log."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import final

from rich.console import Console

from diopi_impl import VendorError, VendorNotFoundError
from diopi_proto.interface import prototypes
from diopi_test.baseline.cluster import ClusterError
from diopi_test.baseline.errors import BaselineError
from diopi_test.baseline.level import StoredLevel, open_level
from diopi_test.baseline.location import folder_to_read
from diopi_test.baseline.parallel import process_map
from diopi_test.baseline.readability import check_readable
from diopi_test.baseline.store import BaselineFile
from diopi_test.cases.selection import LEVELS
from diopi_test.execution.listing import list_cases
from diopi_test.execution.verdict import LOST, UNSUCCESSFUL, Outcome, Verdict
from diopi_test.harness.case_executor import CaseExecutor, executor_of
from diopi_test.harness.claims import compare_claims
from diopi_test.harness.collection import (
    RUNTIME,
    Collected,
    collect_described,
    collect_drawn,
    collect_level,
    collect_runtime,
    counting_int32_indices,
)
from diopi_test.harness.described import compute_results, described_folder, with_results
from diopi_test.harness.dump import DumpError, dump
from diopi_test.harness.isolation.executor import ScheduledCase
from diopi_test.harness.isolation.fork_server import ForkServerError
from diopi_test.harness.keywords import SelectionError
from diopi_test.harness.log import LogError, LogWriter
from diopi_test.harness.lookup import make
from diopi_test.harness.options import RunOptions
from diopi_test.harness.progress import VisibleProgress
from diopi_test.harness.recorder import LogContent, Recorder
from diopi_test.harness.waivers import Waivers

BATCH = 32
"""Cases that are handed to a device process at a time."""


class EnoughError(Exception):
    """As many cases have failed as were to be seen; the message says so."""


def run(options: RunOptions, log: Path, console: Console, *, resumed: bool = False) -> LogContent:
    """Run the suite as asked for, with what happens in the log at `log`, and return what that has in the end.

    A run that is `resumed` has part of its cases in the log: the others are run. What ends a run before its time is
    recorded. VendorNotFoundError if there is no such vendor, SelectionError if there is no such case, BaselineError if
    the baseline is unusable, LogError if the log is, TableError if waivers are: then nothing was run, and there is no
    new log.
    """
    waivers = Waivers.read(options.waivers)
    errors = prepare(options, console)
    recorder = Recorder(LogWriter(log, resumed=resumed), options)
    start = time.monotonic()
    try:
        with executor_of(options) as executor:
            scheduled = _begin(options, recorder, resumed)  # while the executor comes up
            if scheduled:
                _run_cases(scheduled, executor, recorder, waivers, Monitor(recorder, len(scheduled), console, options))
                if options.dump is not None:
                    _dump_lost(scheduled, recorder, options)
        for note in (*errors, *executor.notes):
            recorder.error(note)
    except (VendorNotFoundError, SelectionError, BaselineError, LogError):
        if not resumed:
            recorder.discard()
        raise
    except (VendorError, ForkServerError, ClusterError, EnoughError) as error:
        recorder.stopped(str(error))
    except KeyboardInterrupt as interrupt:
        recorder.stopped(str(interrupt) or "interrupted")
    recorder.end(time.monotonic() - start)
    return recorder.content()


def prepare(options: RunOptions, console: Console) -> list[str]:
    """Of a level whose inputs are drawn, make the results that are missing, or out of date, for what is selected.

    Returns a line for each internal error. BaselineError if that fails.
    """
    if not _is_drawn(options):
        return []
    from diopi_test.baseline.generate import generate  # imports the references, which other levels do not need

    def tell(function: str, count: int) -> None:
        if count:
            console.print(f"made the results of {count} cases of {function}", highlight=False)

    functions = sorted({case.function for case in list_drawn(options)} - {RUNTIME})
    if data := described_folder(options):
        return compute_results(data, options.level, functions, console, workers=options.workers)
    if functions:
        generate(functions, options.level, _folder(options), process_map(options.workers), tell, list_cases)
    return []


def _is_drawn(options: RunOptions) -> bool:
    """Whether the inputs of the cases are drawn again: those of the level, or those that the folder describes."""
    return LEVELS[options.level].is_drawn or described_folder(options) is not None


def collect(options: RunOptions) -> tuple[StoredLevel, list[Collected]]:
    """The level, and the cases of it that are selected, in their order; BaselineError if it is unusable.

    SelectionError if a case that was named is not there.
    """
    level = open_level(_folder(options))
    if described_folder(options):
        return level, with_results(level, list_drawn(options))
    if _is_drawn(options):
        return level, list_drawn(options)
    return level, _selected(options, level.functions, collect_level(level, options.selection.wants_function))


def list_cases_of(options: RunOptions) -> list[Collected]:
    """The cases that are selected, as `collect` gives them, though results may be missing."""
    return list_drawn(options) if _is_drawn(options) else collect(options)[1]


def list_drawn(options: RunOptions) -> list[Collected]:
    """The selected cases of a level whose inputs are drawn: which there are does not depend on what has been made."""
    wanted, data = options.selection.wants_function, described_folder(options)
    known = collect_described(data, wanted) if data else collect_drawn(options.level, wanted, huge=options.huge)
    return _selected(options, list(prototypes()), known)


def _folder(options: RunOptions) -> Path:
    return options.data / options.level if options.data else folder_to_read(options.level)


def _selected(options: RunOptions, functions: Sequence[str], cases: Sequence[Collected]) -> list[Collected]:
    """The cases that are selected of those there are, and of those of the runtime."""
    if options.int32_indices:
        cases = counting_int32_indices(cases, options.level)
    known = [*(collect_runtime() if options.selection.wants_function(RUNTIME) else ()), *cases]
    if absent := options.selection.absent(known):
        near = options.selection.near(functions, known)
        raise SelectionError(f"there is no case {', '.join(absent)} in {_folder(options)}.{near}")
    return options.selection.apply(known)


def _begin(options: RunOptions, recorder: Recorder, resumed: bool) -> Sequence[ScheduledCase]:
    """Record what is to be run, and return what of that is left."""
    level, cases = collect(options)
    functions = sorted({case.function for case in cases} - {RUNTIME})
    level.verify(functions)
    ids = [case.id for case in cases]
    if resumed:
        done = _resume(recorder, level, ids)
    else:
        recorder.begin(level.digest)
        recorder.schedule(ids)
        done = set()
    if not cases:
        recorder.stopped(options.selection.nothing(level.functions, cases))
    files = {RUNTIME: (Path(), None), **{name: (level.path(name), level.sha256(name)) for name in functions}}
    left = [(case, *files[case.function]) for case in cases if case.id not in done]
    return [ScheduledCase(path, case, sha256) for case, path, sha256 in left]


def _resume(recorder: Recorder, level: StoredLevel, ids: Sequence[str]) -> set[str]:
    """The ids of the cases that have a verdict; LogError if that is on another baseline.

    `ids` are recorded as those of the cases to be run if the log was cut before it had them.
    """
    content = recorder.content()
    if content.header.baseline.digest != level.digest:
        raise LogError(
            f"{content.path} is of a run on another baseline: its digest is {content.header.baseline.digest}, "
            f"that of {level.folder} is {level.digest}"
        )
    recorder.resume()
    if content.schedule is None:
        recorder.schedule(ids)
    return {case.id for case in content.cases.values() if case.verdict is not Verdict.not_run}


def _run_cases(
    scheduled: Sequence[ScheduledCase], executor: CaseExecutor, recorder: Recorder, waivers: Waivers, monitor: Monitor
) -> None:
    description = executor.describe()
    recorder.vendor(description)
    monitor.waivers = waivers + Waivers.from_vendor(description.name, description.waivers)
    recorder.waivers(monitor.waivers)
    with monitor:
        executor.run(split_into_batches(scheduled), monitor.report, monitor.waivers.retries_for)
    if description.claims:
        paths = sorted({item.path for item in scheduled if item.case.function != RUNTIME})
        try:
            if claims := compare_claims(description.claims, recorder.content().report().cases, paths):
                recorder.claims(claims)
        except BaselineError as error:
            recorder.error(str(error))


def _dump_lost(scheduled: Sequence[ScheduledCase], recorder: Recorder, options: RunOptions) -> None:
    """Write what was given to those cases that took their process with them, which could not do it."""
    assert options.dump is not None
    lost = {case.id for case in recorder.content().cases.values() if case.verdict in LOST}
    stored = [(item, item.sha256) for item in scheduled if item.case.id in lost and item.sha256 is not None]
    try:
        if stored:
            check_readable({item.path: sha256 for item, sha256 in stored})
        for item, sha256 in stored:
            count = make(BaselineFile(item.path, sha256), item.case, options.of_cases.conversions)
            dump(count.case, {}, options.dump)
    except (DumpError, BaselineError) as error:
        recorder.error(str(error))


def split_into_batches(scheduled: Sequence[ScheduledCase], size: int = BATCH) -> Iterator[Sequence[ScheduledCase]]:
    """The cases in their order, some at a time."""
    return (scheduled[start : start + size] for start in range(0, len(scheduled), size))


@final
class Monitor:
    """Records how cases end, and shows how many have.

    Attributes:
        waivers: which cases may end otherwise than passed, and are no failures.
    """

    def __init__(self, recorder: Recorder, number: int, console: Console, options: RunOptions) -> None:
        self.waivers = Waivers()
        self._recorder = recorder
        self._max_failures = options.max_failures
        self._strict = options.strict
        self._failed = 0
        self._progress = VisibleProgress(console)
        self._task = self._progress.add_task("running", total=number)

    def __enter__(self) -> Monitor:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def report(self, case: Collected, outcome: Outcome, seconds: float) -> None:
        """Take in how a case ended; EnoughError if that is one failure too many."""
        record = case.record(outcome, seconds)
        self._recorder.case(record)
        self._progress.advance(self._task)
        counts = self._strict or case.case_class.is_demanded
        is_wrong = counts and outcome.verdict in UNSUCCESSFUL
        self._failed += is_wrong and self.waivers.apply(record).verdict in UNSUCCESSFUL
        if self._max_failures is not None and self._failed >= self._max_failures:
            raise EnoughError(f"stopped after {self._failed} failures")
