"""The durations of a run: the slowest functions and cases, and the calls that are slow for the bytes that they move."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from diopi_test.execution.timing import Timing
from diopi_test.results.records import CaseRecord


@final
@dataclass(frozen=True)
class FunctionTime:
    """The number of cases of a function, and their total duration in seconds."""

    function: str
    cases: int
    seconds: float


@final
@dataclass(frozen=True)
class CopyComparison:
    """The timed call of a function that moves the most bytes, compared with a memory copy.

    Attributes:
        id: the ID of the case.
        timing: the duration of the call and the bytes that it moves.
        times: the duration of the call divided by the duration of a copy of the same number of bytes.
    """

    id: str
    timing: Timing
    times: float


def group_by_function(cases: Iterable[CaseRecord]) -> Sequence[FunctionTime]:
    """Return the total time of each function's cases, longest first."""
    seconds: Mapping[str, list[float]] = defaultdict(list)
    for case in cases:
        seconds[case.function].append(case.seconds)
    functions = (FunctionTime(function, len(times), sum(times)) for function, times in seconds.items())
    return sorted(functions, key=lambda entry: (-entry.seconds, entry.function))


def slowest(cases: Iterable[CaseRecord]) -> Sequence[CaseRecord]:
    """Return the cases ordered by their duration, the longest first."""
    return sorted(cases, key=lambda case: (-case.seconds, case.id))


def compare_with_copies(cases: Iterable[CaseRecord]) -> Sequence[CopyComparison]:
    """Return how much slower each timed function is than a memory copy, slowest first.

    The call of the function that moves the most bytes is compared with a copy of the same number of bytes.
    """
    largest: dict[str, CopyComparison] = {}
    for case in cases:
        timing = case.timing
        if timing is None or timing.relative_to_copy is None:
            continue
        if case.function not in largest or timing.bytes > largest[case.function].timing.bytes:
            largest[case.function] = CopyComparison(case.id, timing, timing.relative_to_copy)
    return sorted(largest.values(), key=lambda entry: (-entry.times, entry.id))


def show_durations(cases: Sequence[CaseRecord], number: int, console: Console) -> None:
    """Print tables of the slowest functions and cases, and of the timed calls that are slow for the bytes they move.

    Args:
        cases: The records of all cases.
        number: The maximum number of rows of each table.
        console: The console.
    """
    for table in _tables(cases, number):
        console.print(table)


def _tables(cases: Sequence[CaseRecord], number: int) -> Iterator[Table]:
    """Yield the tables that `show_durations` prints, each with at most `number` rows."""
    functions = _table("the functions that took longest", "seconds", "cases", "function")
    for entry in group_by_function(cases)[:number]:
        functions.add_row(f"{entry.seconds:.2f}", str(entry.cases), entry.function)
    yield functions
    longest = _table("the cases that took longest", "seconds", "case")
    for case in slowest(cases)[:number]:
        longest.add_row(f"{case.seconds:.2f}", escape(case.id))
    yield longest
    if slow_cases := compare_with_copies(cases):
        slow = _table("the calls farthest from memory bandwidth", "× a copy", "microseconds", "GB/s", "case")
        for distance in slow_cases[:number]:
            timing = distance.timing
            rate = timing.bytes / timing.seconds / 1e9
            slow.add_row(f"{distance.times:.3g}", f"{timing.seconds * 1e6:.1f}", f"{rate:.3g}", escape(distance.id))
        yield slow


def _table(title: str, *columns: str) -> Table:
    """Return an empty table with this title and these columns."""
    return Table(*columns, title=title, title_justify="left", box=None, min_width=len(title))
