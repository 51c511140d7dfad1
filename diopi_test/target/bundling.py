"""Record the selected cases in several processes, and write them to a bundle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import groupby
from pathlib import Path
from typing import final

from diopi_test.baseline.level import StoredLevel, open_level
from diopi_test.baseline.parallel import map_in_processes
from diopi_test.baseline.store import BaselineFile
from diopi_test.execution.runtime_cases import RUNTIME
from diopi_test.run.collection import Collected
from diopi_test.run.keywords import SelectionError
from diopi_test.run.limits import CaseOptions
from diopi_test.run.lookup import load_case
from diopi_test.run.options import RunOptions
from diopi_test.run.runner import order_cases
from diopi_test.run.session import FileCache
from diopi_test.target.bundle import BundleWriter, encode_case
from diopi_test.target.recording import CallRecorder

MIN_PARALLEL_CASES = 500
"""Fewer cases are recorded in this process, because starting other processes would take longer."""


@final
@dataclass(frozen=True, kw_only=True)
class WrittenBundle:
    """The number of cases in a bundle that was written, and the cases that it lacks.

    Attributes:
        case_count, call_count: the number of cases, and of their calls.
        left_out: the selected cases that a runner can't run.
    """

    case_count: int
    call_count: int
    left_out: Sequence[Collected]


@final
@dataclass(frozen=True, kw_only=True)
class _Batch:
    """Consecutive cases of one function, which one process records.

    Attributes:
        number: the position of the batch among all batches.
        folder: the folder of the level.
        options: the options of the run that concern single cases.
        cases: the cases.
    """

    number: int
    folder: Path
    options: CaseOptions
    cases: tuple[Collected, ...]


@final
@dataclass(frozen=True)
class _Recorded:
    """The payload of a case, and the number of its calls; the payload is empty if a runner can't make the calls."""

    payload: bytes
    calls: int


def write_bundle(path: Path, options: RunOptions) -> WrittenBundle:
    """Write the selected cases to a bundle.

    Args:
        path: The path of the bundle.
        options: The options of a run; the vendor is ignored.

    Returns:
        The numbers of cases and calls, and the cases that are missing because a runner can't make their calls.

    Raises:
        SelectionError: No case is selected.
        BaselineError: The baseline can't be used.
    """
    level, cases = options.source.collect()
    if not cases:
        raise SelectionError(options.selection.explain_empty(level.functions, cases))
    level.verify(sorted({case.function for case in cases} - {RUNTIME}))
    selection = {"level": options.level, "digest": level.digest, "options": options.selection.words()}
    left_out, case_count, call_count = [], 0, 0
    with BundleWriter(path, selection) as writer:
        for case, recorded in _record_all(level, options, order_cases(cases, options.selection)):
            if recorded.payload:
                writer.write(recorded.payload)
                case_count, call_count = case_count + 1, call_count + recorded.calls
            else:
                left_out.append(case)
    return WrittenBundle(case_count=case_count, call_count=call_count, left_out=left_out)


def _record_all(
    level: StoredLevel, options: RunOptions, cases: Sequence[Collected]
) -> Iterator[tuple[Collected, _Recorded]]:
    """Yield each case with its recorded calls, in order.

    Args:
        level: the level that contains the cases.
        options: the number of workers, and how the calls are made.
        cases: the cases.

    Yields:
        The cases with their recorded calls.
    """
    groups = groupby(cases, lambda case: case.function)
    batches = [
        _Batch(number=number, folder=level.folder, options=options.execution, cases=tuple(group))
        for number, (_, group) in enumerate(groups)
    ]
    for batch, results in zip(batches, _map_in_order(batches, len(cases), options.workers), strict=True):
        yield from zip(batch.cases, results, strict=True)


def _map_in_order(batches: Sequence[_Batch], count: int, workers: int) -> Iterator[Sequence[_Recorded]]:
    """Yield the recorded cases of each batch, in order, recorded in several processes if there are many cases.

    Args:
        batches: The batches.
        count: The number of all cases.
        workers: The number of processes.
    """
    if workers == 1 or count < MIN_PARALLEL_CASES:
        yield from map(_record_batch, batches)
        return
    finished: dict[int, Sequence[_Recorded]] = {}
    following = 0
    for batch, results in map_in_processes(_record_batch, batches, workers):
        finished[batch.number] = results
        while following in finished:
            yield finished.pop(following)
            following += 1


def _record_batch(batch: _Batch) -> Sequence[_Recorded]:
    """Return the recorded calls of the cases of a batch."""
    return list(_record_cases(_open_level(batch.folder), batch.options, batch.cases))


def _record_cases(level: StoredLevel, options: CaseOptions, cases: Iterable[Collected]) -> Iterator[_Recorded]:
    """Yield the recorded calls of each case, in order; a case of the runtime has no recorded calls."""
    recorder, files = _open_recorder()
    for case in cases:
        if case.function == RUNTIME:
            yield _Recorded(b"", 0)
            continue
        file = files.get(level.path(case.function), level.sha256(case.function))

        open_file = partial(_open_file, level, files)
        groups = recorder.record(load_case(file, case, options, open_file=open_file))
        payload = encode_case(case.id, groups) if groups else b""
        yield _Recorded(payload, sum(len(group.calls) for group in groups))


def _open_file(level: StoredLevel, files: FileCache, function: str) -> BaselineFile | None:
    """Return the baseline file of a function; None if the level has none."""
    return files.get(level.path(function), level.sha256(function)) if function in level.functions else None


_open_level = cache(open_level)
"""A function that opens a level, once per process."""


@cache
def _open_recorder() -> tuple[CallRecorder, FileCache]:
    """Return the recorder and the cache of baseline files of this process."""
    return CallRecorder(), FileCache()
