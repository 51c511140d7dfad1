"""Reports of runs on given days, and a history (database of runs) whose results change in known ways."""

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


def measured_case(case_id: str, ratio: float) -> CaseRecord:
    """Return the record of a case that passed; `ratio` is its largest error divided by the error budget."""
    return case_record(case_id, "passed", "", CheckResult(check="values", passed=True, ratio=ratio))


def timed_case(case_id: str, seconds: float) -> CaseRecord:
    """Return the record of a case that passed, and whose call took this many seconds."""
    return replace(
        case_record(case_id, "passed"),
        timing=Timing(seconds=seconds, repeats=20, bytes=4096, operations=512, bandwidth=1e10),
    )


def report_of_day(day: int, records: Sequence[CaseRecord], *, device: str = "chip", vendor: str = "small") -> Report:
    """Return the report of a run that started at 10:00 on a day of January 2026.

    Args:
        day: the day of the month; the commit of the run is this number in 40 hexadecimal digits.
        records: the results of the cases. A cause in a record replaces the cause that the report would find.
        device: the name of the device.
        vendor: the name of the vendor.
    """
    origin = RunOrigin(
        started=f"2026-01-{day:02}T10:00:00.000000+00:00",
        host="board-07",
        processor="a processor",
        workers=2,
        device=device,
        driver="1.0",
        commit=f"{day:040x}",
    )
    report = report_of(records, vendor)
    cases = tuple(
        replace(case, cause=record.cause or case.cause) for case, record in zip(report.cases, records, strict=True)
    )
    return replace(report, cases=cases, origin=origin, baseline=BaselineInfo("smoke", "0" * 64))


def cause(name: str, cases: int, waived: int = 0) -> CauseEntry:
    """Return a cause (a group of failures with the same explanation) with these numbers of failed and waived cases."""
    return CauseEntry(cause=name, severity="major", sentence=f"{name} is lost", cases=cases, functions=1, waived=waived)


def add_runs(path: Path) -> None:
    """Add runs of January 1 to 4, 2026, to the history at a path, which is created if it does not exist.

    - Run 3 was on another device.
    - In run 4, `diopiAdd` is less accurate, and `diopiMul` is slower.
    - `diopiSub` is flaky in runs 1 and 4.
    - The cause c1 is in all runs, with 4, 3, 2 and 1 failed cases. The cause c2 is in run 4 only, with 7 failed cases.
      The numbers of causes are not derived from the records, which contain one waived case per cause.
    """
    with History.opened(path, create=True) as history:
        for day, ratio, seconds, device in (
            (1, 0.2, 1e-4, "chip"),
            (2, 0.2, 1e-4, "chip"),
            (3, 0.1, 1e-4, "chip B"),
            (4, 0.9, 5e-4, "chip"),
        ):
            records = [
                measured_case("diopiAdd[float32-row]", ratio),
                timed_case("diopiMul[float32-row]", seconds),
                case_record("diopiSub[float32-row]", "flaky" if day in (1, 4) else "passed"),
                replace(case_record("diopiNeg[float32-row]", "waived"), cause="c1"),
                replace(case_record("diopiAbs[float32-row]", "waived"), cause="c2")
                if day == 4
                else case_record("diopiAbs[float32-row]", "passed"),
            ]
            report = report_of_day(day, records, device=device)
            assert report.origin is not None
            causes = [cause("c1", 5 - day)] + ([cause("c2", 7)] if day == 4 else [])
            history.add(report, report.origin, causes)
