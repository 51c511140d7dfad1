"""Waivers: the cases they cover, messages about cases they do not cover, and their states after a run."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from case_records import case_record, report_of
from failed_cases import wrong_values

from diopi_impl import Waiver, find_vendor
from diopi_test.execution.verdict import UNSUCCESSFUL, CheckResult, Verdict
from diopi_test.results.records import CaseRecord, Improvement, WaiverReport, WaiverState
from diopi_test.waivers.rules import BADNESS, WAIVABLE, WaiverRule, Waivers
from diopi_test.waivers.tables import TableError

TODAY = date(2026, 6, 1)

FAILED = case_record("diopiAdd[float16-plain]", "failed", "values: out is wrong")
CRASHED = case_record("diopiAdd[float16-plain]", "crashed", "signal 11")
PASSED = case_record("diopiAdd[float16-plain]", "passed")
FLAKY = case_record("diopiAdd[float16-plain]", "flaky", "it failed, then it passed")


def make_waivers(*waivers: Waiver) -> Waivers:
    """Return waivers that are read from one file."""
    return Waivers(tuple(WaiverRule(waiver, "small.toml") for waiver in waivers), TODAY)


def waiver_report(waivers: Waivers, *records: Any) -> WaiverReport:
    """Return the report about waivers after a run with these cases."""
    report = waivers.report(records)
    assert report is not None
    return report


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that writes a file of waivers."""

    def write(text: str) -> Path:
        path = tmp_path / "waivers.toml"
        path.write_text(text, "utf-8")
        return path

    return write


# What is covered.


def test_a_waived_case_is_neither_passed_nor_failed_and_has_the_reason() -> None:
    waived = make_waivers(Waiver("diopiAdd[*]", "half an adder")).apply(FAILED)
    assert (waived.verdict, waived.waived_verdict) == (Verdict.waived, Verdict.failed)
    assert waived.message == "half an adder (failed: values: out is wrong)"


@pytest.mark.parametrize("verdict", ["passed", "not_implemented", "unsupported", "waived"])
def test_only_failures_are_waived(verdict: str) -> None:
    record = case_record("diopiAdd[float16-plain]", verdict, "as it is")
    assert make_waivers(Waiver("*", "anything goes", verdict="crashed")).apply(record) == record


@pytest.mark.parametrize(
    ("allowed", "verdict", "is_waived"),
    [
        (None, "failed", True),
        ("failed", "failed", True),
        ("failed", "flaky", True),
        ("failed", "crashed", False),
        ("failed", "timed_out", False),
        ("crashed", "crashed", True),
        ("crashed", "failed", True),
        ("crashed", "timed_out", False),
        ("timed_out", "crashed", False),
        ("timed_out", "failed", True),
        ("flaky", "flaky", True),
        ("flaky", "failed", False),
    ],
)
def test_a_waiver_covers_its_verdict_and_better_ones(allowed: str | None, verdict: str, is_waived: bool) -> None:
    record = make_waivers(Waiver("diopiAdd[*]", "because", verdict=allowed)).apply(case_record("diopiAdd[a]", verdict))
    assert (record.verdict is Verdict.waived) is is_waived


def test_every_unsuccessful_verdict_has_a_rank() -> None:
    assert set(UNSUCCESSFUL) <= set(BADNESS)
    assert {"failed", "crashed", "timed_out"} <= set(WAIVABLE) <= set(BADNESS)
    assert not {"passed", "flaky"} & set(WAIVABLE)


def test_an_improvement_is_reported_in_the_message() -> None:
    assert (
        make_waivers(Waiver("diopiAdd[*]", "why", verdict="crashed"))
        .apply(FAILED)
        .message.startswith("why (crashed → failed: ")
    )


def test_the_first_matching_waiver_applies() -> None:
    waivers = make_waivers(
        Waiver("diopiSub[*", "another"), Waiver("diopi*", "first"), Waiver("diopiAdd[*", "second", verdict="crashed")
    )
    assert waivers.apply(FAILED).message.startswith("first")
    assert waivers.apply(CRASHED).message.startswith("second")


def test_a_waiver_that_does_not_cover_a_failure_is_reported() -> None:
    record = make_waivers(Waiver("diopiAdd[*]", "half an adder")).apply(CRASHED)
    assert record.verdict is Verdict.crashed
    assert record.message == "signal 11; the waiver of this case allows only failed (half an adder)"


@pytest.mark.parametrize(
    ("ratio", "rms", "is_waived"),
    [(12.0, None, True), (12.5, None, False), (math.inf, None, False), (0.5, 3.0, True), (2.0, 13.0, False)],
)
def test_a_waiver_can_relax_the_ratio(ratio: float, rms: float | None, is_waived: bool) -> None:
    failed_check = CheckResult(check="values", passed=False, message="out is wrong", ratio=ratio, rms=rms)
    record = case_record(
        "diopiAdd[float16-plain]", "failed", "values: …", CheckResult(check="form", passed=True), failed_check
    )
    relaxed = make_waivers(Waiver("diopiAdd[*]", "a short table", max_ratio=12.0)).apply(record)
    assert (relaxed.verdict is Verdict.waived) is is_waived
    assert is_waived or relaxed.message.endswith(
        "the waiver of this case allows only error / budget up to 12 (a short table)"
    )


@pytest.mark.parametrize(
    "checks",
    [
        (),
        (CheckResult(check="values", passed=False, message="out has 3 elements, expected 4"),),
        (
            CheckResult(check="values", passed=False, message="out is wrong", ratio=2.0),
            CheckResult(check="guards", passed=False, message="written before out"),
        ),
        (CheckResult(check="guards", passed=False, message="written before out"),),
        (
            CheckResult(check="values", passed=True, message="", ratio=0.5),
            CheckResult(check="repeat", passed=False, message="other bits"),
        ),
    ],
)
def test_a_relaxed_ratio_excuses_only_values(checks: tuple[CheckResult, ...]) -> None:
    record = case_record("diopiAdd[float16-plain]", "failed", "…", *checks)
    waivers = make_waivers(Waiver("diopiAdd[*]", "a short table", max_ratio=12.0))
    assert waivers.apply(record).verdict is Verdict.failed
    assert waivers.apply(CRASHED).verdict is Verdict.crashed


# Expiry.


@pytest.mark.parametrize(("last", "is_waived"), [(date(2026, 6, 1), True), (date(2026, 5, 31), False)])
def test_a_waiver_is_valid_on_its_last_day(last: date, is_waived: bool) -> None:
    record = make_waivers(Waiver("diopiAdd[*]", "half an adder", expires=last)).apply(FAILED)
    assert (record.verdict is Verdict.waived) is is_waived
    assert (
        is_waived
        or record.message == f"{FAILED.message}; the waiver of this case expired on 2026-05-31 (half an adder)"
    )


def test_today_returns_the_current_date() -> None:
    assert Waivers().today == date.today()


# What is told of them.


@pytest.mark.parametrize(
    ("waiver", "record", "state", "waived"),
    [
        (Waiver("diopiAdd[*", "why"), FAILED, WaiverState.used, 1),
        (Waiver("diopiAdd[*", "why", verdict="crashed"), FAILED, WaiverState.used, 1),
        (Waiver("diopiAdd[*", "why"), PASSED, WaiverState.not_needed, 0),
        (Waiver("diopiAdd[*", "why", expires=date(2020, 1, 1)), FAILED, WaiverState.expired, 0),
        (Waiver("diopiAdd[*", "why", expires=date(2020, 1, 1)), PASSED, WaiverState.not_needed, 0),
        (Waiver("diopiAdd[*", "why"), CRASHED, WaiverState.exceeded, 0),
        (Waiver("diopiAdd[float32-*", "why"), FAILED, WaiverState.matched_nothing, 0),
        (Waiver("diopiAd[*", "a slip"), FAILED, WaiverState.matched_nothing, 0),
        (Waiver("diopiSub[*", "why"), FAILED, WaiverState.not_tried, 0),
        (Waiver("diopiSoft*[float32-*", "why"), FAILED, WaiverState.not_tried, 0),
        (Waiver("runtime[*", "why"), FAILED, WaiverState.not_tried, 0),
    ],
)
def test_every_waiver_has_a_state(waiver: Waiver, record: Any, state: WaiverState, waived: int) -> None:
    (use,) = waiver_report(make_waivers(waiver), record).entries
    assert (use.waiver, use.source, use.state, use.waived) == (waiver, "small.toml", state, waived)
    assert use.matched == (state not in (WaiverState.matched_nothing, WaiverState.not_tried))


def test_a_waiver_after_a_broader_one_is_not_needed() -> None:
    first, second = waiver_report(make_waivers(Waiver("diopiAdd[*", "why"), Waiver("*", "because")), FAILED).entries
    assert (first.state, second.state) == (WaiverState.used, WaiverState.not_needed)


def test_improvements_are_reported_with_both_verdicts() -> None:
    waivers = make_waivers(
        Waiver("diopiAdd[*", "why", verdict="crashed"), Waiver("diopiSub[*", "why"), Waiver("diopiMul[*", "why")
    )
    passed_records = [case_record(f"diopiSub[{number}]", "passed") for number in range(7)]
    mixed = [case_record("diopiMul[a]", "passed"), case_record("diopiMul[b]", "failed")]
    assert waiver_report(waivers, FAILED, *passed_records, *mixed).improvements == (
        Improvement(pattern="diopiAdd[*", was="crashed", now=Verdict.failed, number=1, first=(FAILED.id,)),
        Improvement(
            pattern="diopiSub[*",
            was="failed",
            now=Verdict.passed,
            number=7,
            first=tuple(f"diopiSub[{number}]" for number in range(5)),
        ),
    )


def test_nothing_is_reported_without_waivers() -> None:
    assert Waivers().report([FAILED]) is None
    assert Waivers().apply(FAILED) == FAILED


# Flakes.


def test_a_known_flake_is_retried_and_waived(file: Callable[[str], Path]) -> None:
    text = '[[flaky]]\npattern = "diopiAdd[*]"\nreason = "a race"\n[[flaky]]\npattern = "*"\nreason = "x"\nretries = 5'
    waivers = Waivers.read([file(text)])
    assert (waivers.retries_for("diopiAdd[a]"), waivers.retries_for("diopiSub[a]")) == (2, 5)
    assert waivers.apply(FLAKY).message == "a race (flaky: it failed, then it passed)"
    assert waivers.apply(FAILED).verdict is Verdict.failed
    first, second = waiver_report(waivers, FLAKY).entries
    assert (first.state, first.retries, second.state) == (WaiverState.used, 2, WaiverState.not_needed)


def test_a_waiver_without_flaky_causes_no_retry() -> None:
    assert make_waivers(Waiver("*", "why")).retries_for("diopiAdd[a]") == 0


# Causes.

ENGINE = "ErrorOccurred: could not create an engine"


def cause_of(*records: CaseRecord) -> str:
    """Return the only cause of a run with these cases."""
    (cause,) = report_of(records).causes
    return cause.id


def state_of(waivers: Waivers, *records: CaseRecord) -> WaiverState:
    """Return the state of the first waiver after a run with these cases."""
    return waiver_report(waivers, *records).entries[0].state


def test_a_waiver_of_a_cause_covers_new_cases_of_the_cause_and_no_other_failures() -> None:
    cause = cause_of(case_record("diopiAdd[float32-a]", "failed", ENGINE))
    waivers = make_waivers(Waiver("diopiAdd[*]", "no engine", cause=cause))
    assert waivers.apply(case_record("diopiAdd[int8-b]", "failed", ENGINE)).verdict is Verdict.waived
    failures = [
        case_record("diopiAdd[int8-b]", "failed", "ErrorOccurred: another reason"),
        case_record("diopiAdd[int8-b]", "crashed", "the process was ended by SIGSEGV"),
        wrong_values("diopiAdd[float32-b]", {"wrong_value": 9}),
        case_record("diopiSub[int8-b]", "failed", ENGINE),
    ]
    assert [waivers.apply(failure) for failure in failures] == failures, "not even a note about the waiver"
    assert state_of(waivers, *failures) is WaiverState.not_needed


def test_a_waiver_of_a_cause_does_not_depend_on_which_cases_run() -> None:
    failures = [wrong_values(f"diopiSin[float16-{label}]", {"rounding": 40}) for label in "ab"]
    passed = [case_record(f"diopiSin[float32-{label}]", "passed") for label in "ab"]
    cause = cause_of(*failures, *passed)
    assert cause != cause_of(*failures), "if all cases fail, the element type explains nothing"
    waivers = make_waivers(Waiver("diopiSin[*]", "half precision", cause=cause))
    assert [waivers.apply(failure).verdict for failure in failures] == [Verdict.waived] * 2
    single = wrong_values("diopiSin[float32-a]", {"rounding": 40})
    assert waivers.apply(single).verdict is Verdict.failed, "another element type"


def test_the_state_of_a_waiver_of_a_cause() -> None:
    failed = case_record("diopiAdd[float32-a]", "failed", ENGINE)
    waiver = Waiver("diopiAdd[*]", "no engine", cause=cause_of(failed))
    waivers, passed = make_waivers(waiver), case_record("diopiAdd[float32-a]", "passed")
    assert state_of(waivers, failed) is WaiverState.used
    assert state_of(waivers, passed) is WaiverState.not_needed
    assert state_of(waivers, case_record("diopiSub[float32-a]", "passed")) is WaiverState.not_tried
    assert state_of(waivers, case_record("diopiAdd[float32-a]", "not_run")) is WaiverState.matched_nothing
    expired = make_waivers(replace(waiver, expires=date(2026, 5, 31)))
    assert state_of(expired, failed) is WaiverState.expired
    assert "expired on 2026-05-31" in expired.apply(failed).message


def test_only_a_run_of_the_case_of_a_waiver_shows_that_it_is_not_needed() -> None:
    failed = case_record("diopiAdd[float32-a]", "failed", ENGINE)
    waivers = make_waivers(Waiver("diopiAdd[*]", "no engine", cause=cause_of(failed), case=failed.id))
    passed, small = case_record(failed.id, "passed"), case_record("diopiAdd[float32-b]", "passed")
    assert state_of(waivers, small) is WaiverState.not_tried, "a partial run"
    assert state_of(waivers, case_record(failed.id, "not_run"), small) is WaiverState.not_tried
    assert state_of(waivers, small, passed) is WaiverState.not_needed
    assert state_of(waivers, small, failed) is WaiverState.used
    assert state_of(waivers, small, case_record("diopiAdd[float32-c]", "failed", ENGINE)) is WaiverState.used


def test_the_case_of_a_waiver_must_have_its_cause_and_match_its_pattern() -> None:
    for waiver in (
        Waiver("diopiAdd[*]", "why", case="diopiAdd[a]"),
        Waiver("diopiAdd[*]", "why", cause="e92a6042", case="diopiSub[a]"),
    ):
        with pytest.raises(TableError, match="case: expected a case with the cause"):
            Waivers.from_vendor("small", [waiver])


def test_waivers_without_a_cause_still_cover_all_causes() -> None:
    failed = case_record("diopiAdd[float32-a]", "failed", ENGINE)
    by_cause = Waiver("diopiAdd[*]", "by cause", cause=cause_of(failed))
    waivers = make_waivers(by_cause, Waiver("diopiAdd[*]", "by name"))
    assert waivers.apply(failed).message.startswith("by cause")
    assert waivers.apply(FAILED).message.startswith("by name")


# Files and vendors.


def test_files_precede_the_waivers_of_the_vendor(file: Callable[[str], Path]) -> None:
    path = file('[[waiver]]\npattern = "diopiAdd[*"\nreason = "of the file"\nexpires = 2027-01-31\nlink = "https://x"')
    waivers = Waivers.read([path]) + Waivers.from_vendor("small", [Waiver("*", "of the vendor")])
    assert [entry.source for entry in waivers.entries] == [str(path), "vendor small"]
    assert waivers.entries[0].waiver == Waiver("diopiAdd[*", "of the file", link="https://x", expires=date(2027, 1, 31))
    assert waivers.apply(FAILED).message.startswith("of the file")


def test_waivers_of_installed_vendors_are_valid() -> None:
    pytest.importorskip("torch")
    waivers = Waivers.from_vendor("torch_cpu", find_vendor("torch_cpu").waivers)
    record = case_record("diopiErfInp[bfloat16-special]", "failed")
    assert waivers.apply(record).verdict is Verdict.waived


def test_invalid_waivers_of_a_vendor_are_rejected() -> None:
    with pytest.raises(TableError) as caught:
        Waivers.from_vendor("small", [Waiver("a", "why"), Waiver("diopiAdd[[]x]", "", verdict="green")])
    assert str(caught.value).splitlines() == [
        "vendor small: waiver 2 (diopiAdd[[]x]): pattern: brackets need no escape; "
        "expected 'diopiAdd[x]', found 'diopiAdd[[]x]'",
        "vendor small: waiver 2 (diopiAdd[[]x]): reason: expected a description of the defect, found ''",
        f"vendor small: waiver 2 (diopiAdd[[]x]): verdict: expected one of {', '.join(WAIVABLE)}, found 'green'",
    ]


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ('reason = "  "', r"reason: expected a description of the defect, found '  '"),
        ('reason = "x"\nverdict = "flaky"', r"verdict: expected one of failed, .*, found 'flaky'"),
        ('reason = "x"\nverdict = "passed"', r"verdict: expected one of failed, .*, found 'passed'"),
        ('reason = "x"\nmax_ratio = 1.0', r"max_ratio: expected a number above 1 .*, found 1.0"),
        ('reason = "x"\nmax_ratio = inf', r"max_ratio: expected a number above 1 .*, found inf"),
        ('reason = "x"\nmax_ratio = nan', r"max_ratio: expected a number above 1 .*, found nan"),
        ('reason = "x"\nmax_ratio = "two"', r"max_ratio: expected float, found 'two'"),
        (
            'reason = "x"\nmax_ratio = 2\nverdict = "failed"',
            r"verdict and max_ratio: expected only one of these keys, .*",
        ),
        ('reason = "x"\nexpires = 2027-01-31T12:00:00', r"expires: expected a date such as 2027-01-31, found .*"),
        (
            'reason = "x"\ncause = "E92A"',
            r"cause: expected an ID of 8 hexadecimal digits such as 'e92a6042', found 'E92A'",
        ),
        ('reason = "x"\nexpires = "soon"', r"expires: expected a date such as 2027-01-31, found 'soon'"),
    ],
)
def test_unknown_keys_are_rejected(keys: str, problem: str, file: Callable[[str], Path]) -> None:
    path = file(f'[[waiver]]\npattern = "diopiAdd[*]"\n{keys}')
    with pytest.raises(TableError, match=rf"^{path}: \[\[waiver\]\] 1 \(diopiAdd\[\*\]\): {problem}$"):
        Waivers.read([path])


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        (
            'pattern = ""\nreason = "x"',
            "pattern: expected a pattern of case IDs such as 'diopiAdd[*float16*]', found ''",
        ),
        ('pattern = "*"\nreason = "x"\nretries = 0', "retries: expected at least 1, found 0"),
        ('pattern = "*"\nreason = ""', "reason: expected a description of the defect, found ''"),
    ],
)
def test_invalid_flaky_tables_are_rejected(keys: str, problem: str, file: Callable[[str], Path]) -> None:
    with pytest.raises(TableError) as caught:
        Waivers.read([file(f"[[flaky]]\n{keys}")])
    assert problem in str(caught.value)
