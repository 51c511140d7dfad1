"""A run stops if calls fail one after another with the same status and message."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from baselines import make_level
from case_records import case_record
from commands import run_here
from failed_cases import wrong_values
from reports import read_report

from diopi_test.cases.case import CaseClass
from diopi_test.execution.verdict import Verdict
from diopi_test.results.records import CaseRecord
from diopi_test.run.identical_failures import DEFAULT_LIMIT, MIN_FUNCTIONS, IdenticalFailures

FUNCTIONS = ("diopiAbs", "diopiCos", "diopiErf", "diopiExp", "diopiFloor", "diopiLog")


def failure(number: int, message: str = "ErrorOccurred: could not create an engine") -> CaseRecord:
    """Return a failed case with this message, each number with another function."""
    return case_record(f"{FUNCTIONS[number % len(FUNCTIONS)]}[float32-{number}]", "failed", message)


def reason(counter: IdenticalFailures, records: list[CaseRecord]) -> tuple[int, str]:
    """Return after how many records the run stops, and why."""
    for number, record in enumerate(records, 1):
        if text := counter.reason_to_stop(record):
            return number, text
    return 0, ""


def test_a_run_stops_by_default_if_the_first_calls_fail_with_the_same_message() -> None:
    number, text = reason(IdenticalFailures(), [failure(number) for number in range(100)])
    assert number == DEFAULT_LIMIT
    assert text == (
        f"the first {DEFAULT_LIMIT} calls failed in the same way (the call returns an error: ErrorOccurred: could not "
        "create an engine); --stop-after-identical 0 runs all cases"
    )


def test_names_and_numbers_in_messages_do_not_matter() -> None:
    records = [failure(number, f"ErrorOccurred: diopiAbs: no engine at 0x7f{number:x}") for number in range(60)]
    assert reason(IdenticalFailures(), records)[0] == DEFAULT_LIMIT


@pytest.mark.parametrize("verdict", ["crashed", "timed_out"])
def test_lost_processes_are_identical_failures(verdict: str) -> None:
    lost = Verdict(verdict)
    records = [replace(failure(number, "the process was ended by SIGILL"), verdict=lost) for number in range(60)]
    assert reason(IdenticalFailures(), records)[0] == DEFAULT_LIMIT


def test_a_single_broken_function_does_not_stop_a_run() -> None:
    records = [case_record(f"diopiAbs[float32-{number}]", "failed", "ErrorOccurred: no engine") for number in range(99)]
    records += [replace(record, function="diopiAbsInp") for record in records]
    assert reason(IdenticalFailures(), records) == (0, "")
    assert len({record.function for record in records}) < MIN_FUNCTIONS


@pytest.mark.parametrize(
    "computed", [case_record("diopiAbs[float32-a]", "passed"), wrong_values("diopiAbs[float32-a]", {"rounding": 3})]
)
def test_a_call_with_a_result_ends_the_start_of_a_run(computed: CaseRecord) -> None:
    records = [failure(0), computed, *(failure(number) for number in range(200))]
    assert reason(IdenticalFailures(), records) == (0, "")
    number, text = reason(IdenticalFailures(limit=70), records)
    assert number == 72
    assert text.startswith("70 calls in a row failed in the same way")


def test_cases_that_are_no_executed_valid_calls_do_not_matter() -> None:
    ignored = [
        replace(case_record("diopiAbs[negative-a]", "passed"), class_=CaseClass.negative),
        case_record("runtime[malloc]", "passed"),
        case_record("diopiAcos[float32-a]", "not_implemented"),
        case_record("diopiAcos[float32-a]", "unsupported"),
        case_record("diopiAcos[float32-a]", "waived"),
        case_record("diopiAcos[float32-a]", "not_run"),
    ]
    records = [record for number in range(60) for record in (failure(number), *ignored)]
    assert reason(IdenticalFailures(), records)[0] == (DEFAULT_LIMIT - 1) * 7 + 1


def test_different_messages_do_not_stop_a_run() -> None:
    records = [failure(number, f"ErrorOccurred: {'ab'[number % 2]}{'x' * (number % 3)}") for number in range(200)]
    assert reason(IdenticalFailures(limit=2), records) == (0, "")


def test_the_limit_0_never_stops_a_run() -> None:
    assert reason(IdenticalFailures(limit=0), [failure(number) for number in range(200)]) == (0, "")


def test_cases_that_are_left_are_not_run_and_the_run_fails_as_incomplete(tmp_path: Path) -> None:
    data, report_file, log = tmp_path / "data", tmp_path / "report.json", tmp_path / "run.log"
    make_level(data / "smoke", "diopiSqrt", "diopiNeg")
    words = ("run", "--data", data, "--vendor", "faulty:failing", "-n", 1)
    done = run_here(*words, "--stop-after-identical", 3, "--json", report_file, "--log", log)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "3 calls in a row failed in the same way" in done.stdout
    report = read_report(report_file)
    left = [case for case in report["cases"] if case["verdict"] == "not_run"]
    assert len(left) == report["summary"]["not_run"] > 50
    failed = [case for case in report["cases"] if case["verdict"] == "failed" and case["function"] != "runtime"]
    assert len(failed) == 3
    assert {case["message"] for case in left} == {f"not run: {report['summary']['reason']}"}
    junit = tmp_path / "junit.xml"
    assert run_here("report", log, "--junit", junit).returncode == 3
    assert junit.read_text("utf-8").count("skipped message=") == len(left)
    second_run = run_here(*words, "--stop-after-identical", 0, "--json", report_file)
    assert second_run.returncode == 1, second_run.stdout + second_run.stderr
    assert read_report(report_file)["summary"]["not_run"] == 0
    resumed = run_here("run", "--resume", log, "--json", report_file)
    assert resumed.returncode == 3, "the option is part of the resumed command"
