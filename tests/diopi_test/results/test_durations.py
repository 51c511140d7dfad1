"""The durations of a run, and calls that are slow for the bytes they move."""

from __future__ import annotations

import io
from dataclasses import replace

from case_records import case_record, report_of
from rich.console import Console

from diopi_test.execution.timing import Timing
from diopi_test.reporting import markdown
from diopi_test.results.durations import compare_with_copies, group_by_function, show_durations, slowest
from diopi_test.results.records import CaseRecord


def case(name: str, seconds: float, timing: Timing | None = None) -> CaseRecord:
    """Return a passed case with this duration."""
    return replace(case_record(name, "passed"), seconds=seconds, timing=timing)


def timing(seconds: float, nbytes: int, bandwidth: float | None = 1e9) -> Timing:
    """Return the timing of a call that took this long and moved this many bytes."""
    return Timing(seconds=seconds, repeats=20, bytes=nbytes, bandwidth=bandwidth)


CASES = [
    case("diopiAdd[float32-a]", 1.0, timing(1e-5, 100)),
    case("diopiAdd[float32-b]", 2.0, timing(4e-5, 10_000)),
    case("diopiMul[float32-a]", 2.5, timing(1e-4, 1000)),
    case("diopiSub[float32-a]", 0.25, timing(1e-4, 1000, None)),
    case("diopiSub[float32-b]", 0.0),
]


def test_functions_and_cases_are_sorted_by_duration() -> None:
    assert [(entry.function, entry.cases, entry.seconds) for entry in group_by_function(CASES)] == [
        ("diopiAdd", 2, 3.0),
        ("diopiMul", 1, 2.5),
        ("diopiSub", 2, 0.25),
    ]
    assert [entry.id for entry in slowest(CASES)][:2] == ["diopiMul[float32-a]", "diopiAdd[float32-b]"]


def test_the_call_that_moves_most_bytes_represents_a_function() -> None:
    found = [(entry.id, round(entry.times, 6)) for entry in compare_with_copies(CASES)]
    assert found == [("diopiMul[float32-a]", 100.0), ("diopiAdd[float32-b]", 4.0)]


def test_a_call_without_memory_traffic_has_no_distance() -> None:
    assert timing(1.0, 0).relative_to_copy is None


def test_durations_are_shown_in_the_report() -> None:
    output = io.StringIO()
    show_durations(CASES, 2, Console(file=output, width=120))
    printed = output.getvalue()
    assert "diopiSub" not in printed
    assert "farthest from memory bandwidth" in printed
    text = markdown.render_report(report_of(CASES), durations=1)
    assert "| `diopiAdd` | 2 | 3.00 s |" in text
    assert "| `diopiMul[float32-a]` | 100.0 µs | 100 |" in text
