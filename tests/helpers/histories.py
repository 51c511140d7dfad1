"""Histories with runs whose results change in known ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from case_records import case_record, report_of

from diopi_test.execution.timing import Timing
from diopi_test.execution.verdict import CheckResult
from diopi_test.reporting.history.database import History
from diopi_test.reporting.history.entry import CauseEntry
from diopi_test.results.records import BaselineInfo, CaseRecord, Report, RunOrigin


def accurate_case(case_id: str, ratio: float) -> CaseRecord:
    """Return a case that passed with this error / budget."""
    return case_record(case_id, "passed", "", CheckResult(check="values", passed=True, ratio=ratio))


def timed_case(case_id: str, seconds: float) -> CaseRecord:
    """Return a case that passed, and whose call took this many seconds."""
    return replace(
        case_record(case_id, "passed"),
        timing=Timing(seconds=seconds, repeats=20, bytes=4096, operations=512, bandwidth=1e10),
    )


def report_of_day(day: int, records: Sequence[CaseRecord], *, device: str = "chip", vendor: str = "small") -> Report:
    """Return the report of a run on a day of January 2026."""
    origin = RunOrigin(
        started=f"2026-01-{day:02}T10:00:00.000000+00:00",
        host="board-07",
        processor="a processor",
        workers=2,
        device=device,
        driver="1.0",
        commit=f"{day:040x}",
    )
    return replace(report_of(records, vendor), origin=origin, baseline=BaselineInfo("smoke", "0" * 64))


def cause(name: str, cases: int, waived: int = 0) -> CauseEntry:
    """Return a cause with these numbers of failed and waived cases."""
    return CauseEntry(cause=name, severity="major", sentence=f"{name} is lost", cases=cases, functions=1, waived=waived)


def add_runs(path: Path) -> None:
    """Add four runs, the third on another device. The latest run is less accurate and slower and has a new cause."""
    with History.opened(path, create=True) as history:
        for day, ratio, seconds, device in (
            (1, 0.2, 1e-4, "chip"),
            (2, 0.2, 1e-4, "chip"),
            (3, 0.1, 1e-4, "chip B"),
            (4, 0.9, 5e-4, "chip"),
        ):
            records = [
                accurate_case("diopiAdd[float32-row]", ratio),
                timed_case("diopiMul[float32-row]", seconds),
                case_record("diopiSub[float32-row]", "flaky" if day in (1, 4) else "passed"),
            ]
            report = report_of_day(day, records, device=device)
            assert report.origin is not None
            causes = [cause("c1", 5 - day)] + ([cause("c2", 7)] if day == 4 else [])
            history.add(report, report.origin, [found for found in causes if found.cases])
