"""Comparison of two runs: cases that broke, were fixed, are new or gone, or became less accurate or slower."""

from __future__ import annotations

from dataclasses import replace

import pytest
from case_records import case_record, report_of

from diopi_impl import Numerics, find_numerics
from diopi_test.cases.case import CaseClass
from diopi_test.execution.timing import Timing
from diopi_test.execution.verdict import CheckResult
from diopi_test.reporting import markdown
from diopi_test.reporting.comparison import OutcomeChange, ReportComparison, compare
from diopi_test.results.records import CaseRecord

NAME = "diopiAdd[float32-x]"
UNCHANGED = case_record("diopiMul[float32-y]", "passed")


def compare_case(before: CaseRecord | None, after: CaseRecord | None, factor: float = 2) -> ReportComparison:
    """Compare two reports that contain this case and an unchanged one."""
    reports = (report_of([UNCHANGED, *([case] if case else [])]) for case in (before, after))
    return compare(*reports, factor)


@pytest.mark.parametrize(
    ("before", "after", "change", "status"),
    [
        ("passed", "failed", OutcomeChange.broken, 1),
        ("passed", "crashed", OutcomeChange.broken, 1),
        ("passed", "not_implemented", OutcomeChange.broken, 1),
        ("not_implemented", "failed", OutcomeChange.broken, 1),
        ("failed", "passed", OutcomeChange.fixed, 0),
        ("not_implemented", "passed", OutcomeChange.fixed, 0),
        ("failed", "crashed", OutcomeChange.otherwise, 0),
        ("failed", "not_implemented", OutcomeChange.otherwise, 0),
        (None, "failed", OutcomeChange.new, 0),
        ("passed", None, OutcomeChange.gone, 0),
        ("passed", "passed", None, 0),
        ("failed", "failed", None, 0),
    ],
)
def test_the_change_of_a_case_follows_from_both_verdicts(
    before: str | None, after: str | None, change: OutcomeChange | None, status: int
) -> None:
    found = compare_case(*(case_record(NAME, verdict) if verdict else None for verdict in (before, after)))
    assert [case.change for case in found.cases] == ([change] if change else [])
    assert found.exit_status == status
    assert found.same == (1 if change else 2)
    assert sum(found.counts.values()) == 2


def test_accepted_negative_cases_do_not_change_the_exit_status() -> None:
    before, after = (replace(case_record(NAME, v), class_=CaseClass.negative) for v in ("passed", "failed"))
    found = compare_case(before, after)
    assert [case.counts for case in found.cases_with(OutcomeChange.broken)] == [False]
    assert found.exit_status == 0


def passed_case(ratio: float, seconds: float = 0.5) -> CaseRecord:
    """Return a passed case that uses this share of its budget."""
    return replace(
        case_record(NAME, "passed", "", CheckResult(check="values", passed=True, ratio=ratio)), seconds=seconds
    )


@pytest.mark.parametrize(
    ("before", "after", "factor", "is_listed"),
    [(0.2, 0.5, 2, True), (0.2, 0.3, 2, False), (0.2, 0.3, 1.2, True), (0.001, 0.05, 2, False), (0.0, 0.2, 2, True)],
)
def test_a_larger_share_of_the_budget_is_reported(before: float, after: float, factor: float, is_listed: bool) -> None:
    found = compare_case(passed_case(before), passed_case(after), factor)
    assert [(item.id, item.before, item.after) for item in found.less_accurate] == (
        [(NAME, before, after)] if is_listed else []
    )


@pytest.mark.parametrize(
    ("before", "after", "is_listed"), [(1.0, 3.0, True), (1.0, 1.5, False), (0.1, 0.9, False), (0.0, 1.5, True)]
)
def test_slower_functions_are_reported(before: float, after: float, is_listed: bool) -> None:
    found = compare_case(passed_case(0, before), passed_case(0, after))
    assert [(item.function, item.before, item.after) for item in found.slower] == (
        [("diopiAdd", before, after)] if is_listed else []
    )


@pytest.mark.parametrize(
    ("before", "after", "is_listed"),
    [(1e-4, 3e-4, True), (1e-4, 1.5e-4, False), (1e-6, 1e-5, False), (None, 3e-4, False)],
)
def test_only_calls_timed_in_both_runs_are_compared(before: float | None, after: float, is_listed: bool) -> None:
    timings = (
        None if seconds is None else Timing(seconds=seconds, repeats=20, bytes=4096) for seconds in (before, after)
    )
    found = compare_case(*(replace(passed_case(0), timing=timing) for timing in timings))
    assert [(item.function, item.timed, item.in_words) for item in found.slower] == (
        [("diopiAdd", True, ("100.0 µs", "300.0 µs"))] if is_listed else []
    )


def test_a_doubtful_comparison_states_the_reason() -> None:
    before, after = report_of([UNCHANGED]), report_of([UNCHANGED])
    assert list(compare(before, after).warnings) == []
    incomplete = replace(after.summary, incomplete=True)
    changed = replace(after, baseline=replace(after.baseline, digest="x"), summary=incomplete)
    first, second = compare(before, changed).warnings
    assert "the baselines differ" in first
    assert "the run after is incomplete" in second


def test_a_comparison_can_be_written_as_markdown() -> None:
    text = markdown.render_comparison(
        compare_case(case_record(NAME, "passed"), case_record(NAME, "failed", "out | is wrong"))
    )
    assert text.startswith("### ❌ small 1.0 → small 1.0\n")
    assert "| 1 | 0 | 0 | 0 | 0 | 0 | 0 | 1 |" in text
    assert f"- `{NAME}`: passed → failed `out | is wrong`" in text
    slow = markdown.render_comparison(compare_case(passed_case(0.2), passed_case(0.9, 5.0)))
    assert slow.startswith("### ✅")
    assert f"| `{NAME}` | 0.2 | 0.9 |" in slow and "| `diopiAdd` | 0.50 s | 5.00 s |" in slow


def test_different_selections_are_said_first() -> None:
    before = report_of([case_record("diopiAdd[a]", "passed"), case_record("diopiAdd[b]", "passed")])
    after = report_of([case_record("diopiAdd[b]", "passed"), case_record("diopiSub[a]", "passed")])
    comparison = compare(before, after)
    assert comparison.selections_differ
    first = next(iter(comparison.warnings))
    assert first.startswith("the runs have different selections: 1 case only before, 1 only after")
    assert not compare(before, before).selections_differ
    later = replace(after, baseline=replace(after.baseline, digest="new"))
    assert not compare(before, later).selections_differ


def test_different_numerics_are_the_first_warning_and_accuracy_is_not_compared() -> None:
    checks = [CheckResult(check="values", passed=True, message="", ratio=ratio) for ratio in (0.1, 0.9)]
    cases = [case_record(NAME, "passed", "", check) for check in checks]
    before, after = report_of(cases[:1]), report_of([cases[1], UNCHANGED], numerics=find_numerics("tf32"))
    found = compare(before, after)
    warning = next(iter(found.warnings))
    assert warning.startswith("the runs have different declared numerics: ieee before, tf32 (")
    assert found.less_accurate == ()
    text = markdown.render_comparison(found)
    assert "small 1.0 → small 1.0 with numerics tf32" in text.replace("\\", "")
    assert text.index("different declared numerics") < text.index("| broken |")
    renamed = report_of(cases[:1], numerics=Numerics(name="mine", subnormals="keep"))
    assert compare(report_of(cases[:1]), report_of(cases[1:])).numerics_differ is False
    assert compare(report_of(cases[:1]), renamed).numerics_differ
