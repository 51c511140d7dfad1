"""The severity of a case follows from its check results."""

from __future__ import annotations

from dataclasses import replace

import pytest
from case_records import case_record, report_of
from failed_cases import wrong_values

from diopi_test.cases.case import CaseClass
from diopi_test.execution.difference import Difference
from diopi_test.execution.verdict import CheckResult
from diopi_test.reporting.reading import with_fail_on
from diopi_test.results.causes.severity import Severity, severity_of_case
from diopi_test.results.records import CaseRecord


def severity(record: CaseRecord) -> Severity:
    """Return the severity of a record."""
    return severity_of_case(record.verdict, record.checks, record.message)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("wrong_value", Severity.critical),
        ("rounding", Severity.major),
        ("lost_nan", Severity.major),
        ("invented_nan", Severity.major),
        ("lost_infinity", Severity.major),
        ("invented_infinity", Severity.major),
        ("sign_of_zero", Severity.minor),
        ("flushed", Severity.minor),
    ],
)
def test_the_kind_of_wrong_elements_decides(kind: str, expected: Severity) -> None:
    assert severity(wrong_values("diopiAdd[float32-a]", {kind: 3})) is expected


def test_the_worst_kind_decides() -> None:
    assert severity(wrong_values("diopiAdd[float32-a]", {"sign_of_zero": 30, "rounding": 1})) is Severity.major


@pytest.mark.parametrize("verdict", ["crashed", "timed_out", "out_of_memory"])
def test_a_lost_process_is_critical(verdict: str) -> None:
    assert severity(case_record("diopiAdd[float32-a]", verdict, "SIGSEGV")) is Severity.critical


@pytest.mark.parametrize(
    ("check", "problems", "expected"),
    [
        ("guards", (), Severity.critical),
        ("gaps", (), Severity.critical),
        ("inputs", (), Severity.critical),
        ("written", (), Severity.critical),
        ("validity", (), Severity.critical),
        ("order", ("written_late",), Severity.critical),
        ("form", ("shape",), Severity.major),
        ("leaks", ("tensors",), Severity.major),
        ("refused", ("success",), Severity.major),
        ("refused", ("no_reason",), Severity.minor),
    ],
)
def test_other_checks_decide_by_their_name(check: str, problems: tuple[str, ...], expected: Severity) -> None:
    result = CheckResult(check=check, passed=False, message="a problem", problems=problems)
    assert severity(case_record("diopiAdd[float32-a]", "failed", "", result)) is expected


def test_a_reported_error_is_major() -> None:
    assert severity(case_record("diopiAdd[float32-a]", "failed", "ErrorOccurred: no engine")) is Severity.major


def test_a_flaky_crash_is_critical() -> None:
    message = "crashed in a process in which diopiAdd[a] had run before (the vendor …), passed alone"
    assert severity(case_record("diopiAdd[float32-a]", "flaky", message)) is Severity.critical


@pytest.mark.parametrize(
    ("actual", "expected", "severity_of_worst"),
    [
        ("0.0", "-0.0", Severity.minor),
        ("0.0", "nan", Severity.major),
        ("1.0001", "1.0", Severity.major),
        ("2.5", "1.0", Severity.critical),
        ("1000001", "1000000", Severity.critical),
        ("True", "False", Severity.critical),
    ],
)
def test_logs_without_deviations_use_the_worst_element(actual: str, expected: str, severity_of_worst: Severity) -> None:
    difference = Difference(
        tensor="out",
        problem="are wrong",
        wrong_count=1,
        total=8,
        index=(0,),
        actual=actual,
        expected=expected,
    )
    result = CheckResult(check="values", passed=False, differences=(difference,))
    assert severity(case_record("diopiAdd[float32-a]", "failed", "", result)) is severity_of_worst


def test_wrong_positions_beside_wrong_values_are_no_separate_failure() -> None:
    values = wrong_values("diopiMax[float32-a]", {"lost_nan": 1}, arguments={"out": "float32 (8,), strides (1,)"})
    positions = wrong_values("diopiMax[float32-a]", {"wrong_value": 1}, arguments={"out": "int64 (8,), strides (1,)"})
    result = CheckResult(
        check="values", passed=False, differences=(*values.checks[0].differences, *positions.checks[0].differences)
    )
    assert severity(replace(values, checks=(result,))) is Severity.major
    assert severity(positions) is Severity.critical


MINOR = wrong_values("diopiRelu[float32-a]", {"sign_of_zero": 1})
MAJOR = wrong_values("diopiExp[float32-a]", {"rounding": 1})
PASSED = case_record("diopiAdd[float32-a]", "passed")


@pytest.mark.parametrize(
    ("records", "fail_on", "status"),
    [
        ([MINOR], Severity.major, 0),
        ([MINOR], Severity.minor, 1),
        ([MAJOR], Severity.major, 1),
        ([MAJOR], Severity.critical, 0),
        ([MINOR, MAJOR], Severity.major, 1),
    ],
)
def test_the_exit_status_depends_on_the_least_severity(
    records: list[CaseRecord], fail_on: Severity, status: int
) -> None:
    assert with_fail_on(report_of([PASSED, *records]), fail_on).exit_status == status


def test_strict_counts_minor_failures() -> None:
    assert replace(report_of([PASSED, MINOR]), strict=True).exit_status == 1


def test_classes_that_are_not_demanded_do_not_count() -> None:
    assert report_of([PASSED, replace(MAJOR, class_=CaseClass.open)]).exit_status == 0
