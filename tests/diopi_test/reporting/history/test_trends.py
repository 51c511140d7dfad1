"""Trends are what changed between the runs of one vendor at one level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from case_records import case_record
from histories import add_runs, cause, measured_case, report_of_day, timed_case

from diopi_impl import find_numerics
from diopi_test.reporting.history.database import History
from diopi_test.reporting.history.entry import CauseEntry
from diopi_test.reporting.history.trends import (
    Series,
    accuracy_drifts,
    cause_trends,
    latest_by_place,
    place_differences,
    rank_flaky_cases,
    read_series,
    speed_changes,
)
from diopi_test.results.numerics import IEEE_INFO, NumericsInfo
from diopi_test.results.records import CaseRecord

CHIP, CHIP_B = "chip (driver 1.0) on board-07", "chip B (driver 1.0) on board-07"


def read(path: Path) -> Sequence[Series]:
    """Return the series of the history at a path."""
    with History.opened(path) as history:
        return read_series(history)


@pytest.fixture
def series(tmp_path: Path) -> Series:
    """Return the only series of a history of several runs."""
    add_runs(tmp_path / "h")
    (found,) = read(tmp_path / "h")
    return found


def test_causes_are_new_present_or_gone_over_time(series: Series) -> None:
    found = [(trend.cause.cause, trend.state, list(trend.cases)) for trend in cause_trends(series)]
    assert found == [("c2", "new", [0, 0, 0, 7]), ("c1", "present", [4, 3, 2, 1])]


def test_a_cause_that_the_latest_run_does_not_have_is_gone(series: Series) -> None:
    earlier = replace(series, runs=[series.runs[3], series.runs[0]])
    assert {trend.cause.cause: trend.state for trend in cause_trends(earlier)} == {"c1": "present", "c2": "gone"}


def test_a_cause_is_waived_and_not_gone_if_only_waived_cases_have_it(tmp_path: Path) -> None:
    with History.opened(tmp_path / "h", create=True) as history:
        for day, found in ((1, cause("c1", 4)), (2, cause("c1", 3, waived=1)), (3, cause("c1", 0, waived=4))):
            report = report_of_day(day, [])
            assert report.origin is not None
            history.add(report, report.origin, [found])
    (series,) = read(tmp_path / "h")
    (trend,) = cause_trends(series)
    assert (trend.state, list(trend.cases), list(trend.waived)) == ("waived", [4, 3, 0], [0, 1, 4])
    assert [run.failing_causes for run in series.runs] == [1, 1, 0]
    (without_waiver,) = cause_trends(replace(series, runs=[series.runs[2], series.runs[0]]))
    assert without_waiver.state == "present"


def add_run_of_cause(history: History, day: int, records: Sequence[CaseRecord], *causes: CauseEntry) -> None:
    """Add a run on a day of January 2026 with these cases and causes."""
    report = report_of_day(day, records)
    assert report.origin is not None
    history.add(report, report.origin, causes)


def test_a_cause_is_not_run_if_the_latest_run_tested_none_of_its_functions(tmp_path: Path) -> None:
    failed = replace(case_record("diopiAdd[float32-row]", "failed"), cause="c1")
    with History.opened(tmp_path / "h", create=True) as history:
        add_run_of_cause(history, 1, [failed, case_record("diopiSub[float32-row]", "passed")], cause("c1", 1))
        add_run_of_cause(history, 2, [case_record("diopiSub[float32-row]", "passed")])
    (trend,) = cause_trends(read(tmp_path / "h")[0])
    assert (trend.state, list(trend.tested_cases)) == ("not_run", [1, None])


@pytest.mark.parametrize(("verdict", "state"), [("passed", "gone"), ("failed", "gone"), ("not_implemented", "not_run")])
def test_a_cause_is_gone_only_if_a_case_of_its_functions_ran(tmp_path: Path, verdict: str, state: str) -> None:
    failed = replace(case_record("diopiAdd[float32-row]", "failed"), cause="c1")
    with History.opened(tmp_path / "h", create=True) as history:
        add_run_of_cause(history, 1, [failed], cause("c1", 1))
        add_run_of_cause(history, 2, [case_record("diopiAdd[float32-row]", verdict)])
    (trend,) = cause_trends(read(tmp_path / "h")[0])
    assert trend.state == state


@pytest.mark.parametrize(("failed_before", "state"), [(True, "present"), (False, "new")])
def test_a_cause_is_new_relative_to_the_last_run_that_tested_it(
    tmp_path: Path, failed_before: bool, state: str
) -> None:
    failed = replace(case_record("diopiAdd[float32-row]", "failed"), cause="c1")
    passed = case_record("diopiAdd[float32-row]", "passed")
    with History.opened(tmp_path / "h", create=True) as history:
        add_run_of_cause(history, 1, [failed if failed_before else passed], *([cause("c1", 1)] * failed_before))
        add_run_of_cause(history, 2, [case_record("diopiSub[float32-row]", "passed")])
        add_run_of_cause(history, 3, [failed], cause("c1", 1))
    (trend,) = cause_trends(read(tmp_path / "h")[0])
    assert trend.state == state


def test_the_state_of_a_cause_does_not_depend_on_which_device_ran_last(tmp_path: Path) -> None:
    with History.opened(tmp_path / "h", create=True) as history:
        for day, device, found in ((1, "chip", True), (2, "chip B", False), (3, "chip", True), (4, "chip B", False)):
            record = (
                replace(case_record("diopiAdd[a]", "failed"), cause="c1")
                if found
                else case_record("diopiAdd[a]", "passed")
            )
            report = report_of_day(day, [record], device=device)
            assert report.origin is not None
            history.add(report, report.origin, [cause("c1", 3)] if found else [])
    (trend,) = cause_trends(read(tmp_path / "h")[0])
    assert (trend.state, trend.latest) == ("present", (3, 0))
    assert trend.states == {"chip": "present", "chip B": "gone"}


def test_accuracy_drift_compares_the_latest_run_with_older_runs_on_the_same_device(series: Series) -> None:
    (drift,) = accuracy_drifts(series)
    assert (drift.function, drift.place, drift.before, drift.after) == ("diopiAdd", CHIP, 0.2, 0.9)
    assert drift.case == "diopiAdd[float32-row]" and list(drift.ratios) == [0.2, 0.2, 0.9]


def series_of(path: Path, days: Sequence[tuple[str, Sequence[CaseRecord]]]) -> Series:
    """Return the series of a history with a run per day, each on a device and with these cases."""
    with History.opened(path / "h", create=True) as history:
        for day, (device, records) in enumerate(days, 1):
            report = report_of_day(day, records, device=device)
            assert report.origin is not None
            history.add(report, report.origin)
    (series,) = read(path / "h")
    return series


def test_a_device_that_is_less_accurate_than_another_has_no_drift(tmp_path: Path) -> None:
    days = [
        ("chip B" if day % 2 else "chip", [measured_case("diopiAdd[a]", 0.9 if day % 2 else 0.1)]) for day in range(6)
    ]
    series = series_of(tmp_path, days)
    assert accuracy_drifts(series) == []
    assert [row.function for row in place_differences(series)] == ["diopiAdd"]


def test_a_function_that_becomes_a_little_less_accurate_in_every_run_has_a_drift(tmp_path: Path) -> None:
    series = series_of(tmp_path, [("chip", [measured_case("diopiAdd[a]", 0.2 + 0.05 * day)]) for day in range(10)])
    (drift,) = accuracy_drifts(series)
    assert (drift.before, drift.after) == pytest.approx((0.3, 0.65))


def test_a_run_of_other_functions_does_not_hide_what_became_worse(tmp_path: Path) -> None:
    days = [
        (device, [measured_case("diopiAdd[a]", ratio), timed_case("diopiMul[a]", seconds)])
        for device, ratio, seconds in [("chip B", 0.1, 1e-4), ("chip", 0.1, 1e-4), ("chip", 0.9, 5e-4)]
    ]
    series = series_of(tmp_path, [*days, ("chip", [timed_case("diopiSub[a]", 1e-4)])])
    assert [drift.function for drift in accuracy_drifts(series)] == ["diopiAdd"]
    assert [row.function for row in place_differences(series)] == ["diopiAdd"]
    assert [change.function for change in speed_changes(series)] == ["diopiMul"]


def test_a_function_that_becomes_a_little_slower_in_every_run_is_slower(tmp_path: Path) -> None:
    series = series_of(tmp_path, [("chip", [timed_case("diopiMul[a]", 1e-4 * 1.2**day)]) for day in range(10)])
    (change,) = speed_changes(series)
    assert (change.before, change.after) == pytest.approx((1e-4 * 1.2**2, 1e-4 * 1.2**9))


def test_only_cases_that_both_runs_timed_are_compared(tmp_path: Path) -> None:
    days = [("chip", [timed_case(f"diopiMul[{name}]", 1e-4) for name in names]) for names in ("a", "abcdef")]
    assert speed_changes(series_of(tmp_path, days)) == []


def test_runs_with_other_baselines_are_not_compared(series: Series) -> None:
    earlier = [replace(run, entry=replace(run.entry, baseline="old")) for run in series.runs[:-1]]
    renewed = replace(series, runs=[*earlier, series.latest])
    assert accuracy_drifts(renewed) == [] and list(latest_by_place(renewed)) == [CHIP]


def test_flaky_cases_are_ranked(series: Series) -> None:
    (flaky,) = rank_flaky_cases(series)
    assert (flaky.case, flaky.flaky, flaky.runs) == ("diopiSub[float32-row]", 2, 4)
    assert flaky.last.startswith("2026-01-04")


def test_devices_are_compared_by_their_latest_runs(series: Series) -> None:
    assert list(latest_by_place(series)) == [CHIP, CHIP_B]
    found = {row.function: (list(row.ratios), list(row.unsuccessful)) for row in place_differences(series)}
    assert found == {"diopiAdd": ([0.9, 0.1], [0, 0]), "diopiSub": ([None, None], [1, 0])}


def test_slower_calls_are_compared_on_the_same_device(series: Series) -> None:
    (change,) = speed_changes(series)
    assert (change.function, change.place) == ("diopiMul", CHIP)
    assert (change.before, change.after) == (1e-4, 5e-4)


def test_vendors_and_levels_are_separate_series(tmp_path: Path) -> None:
    with History.opened(tmp_path / "h", create=True) as history:
        for vendor in ("one chip", "another chip"):
            report = report_of_day(1, [case_record("diopiAdd[a]", "passed")], vendor=vendor)
            assert report.origin is not None
            history.add(report, report.origin)
    assert [found.vendor for found in read(tmp_path / "h")] == ["another chip", "one chip"]


def test_runs_with_different_numerics_are_different_series(tmp_path: Path) -> None:
    tf32 = NumericsInfo.from_declaration(find_numerics("tf32"))
    with History.opened(tmp_path / "h", create=True) as history:
        for day, numerics in ((1, IEEE_INFO), (2, tf32)):
            report = replace(report_of_day(day, [case_record("diopiAdd[float32-row]", "passed")]), numerics=numerics)
            assert report.origin is not None
            history.add(report, report.origin)
    assert [(found.numerics, len(found.runs)) for found in read(tmp_path / "h")] == [("ieee", 1), (tf32.title, 1)]
