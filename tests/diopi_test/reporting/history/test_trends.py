"""Trends are what changed between the runs of one vendor at one level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from case_records import case_record
from histories import add_runs, cause, report_of_day

from diopi_impl import find_numerics
from diopi_test.reporting.history.database import History
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

CHIP, CHIP_B = "chip (driver 1.0) on board-07", "chip B (driver 1.0) on board-07"


def read(path: Path) -> Sequence[Series]:
    with History.opened(path) as history:
        return read_series(history)


@pytest.fixture
def series(tmp_path: Path) -> Series:
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


def test_accuracy_drift_compares_the_latest_run_with_the_median(series: Series) -> None:
    (drift,) = accuracy_drifts(series)
    assert (drift.function, drift.before, drift.after) == ("diopiAdd", 0.2, 0.9)
    assert drift.case == "diopiAdd[float32-row]" and list(drift.ratios) == [0.2, 0.2, 0.1, 0.9]


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
