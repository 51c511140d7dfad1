"""The test of the errors of a function, pooled over its cases."""

from __future__ import annotations

import math
import shlex
from dataclasses import replace

import pytest
from case_records import case_record, report_of

from diopi_impl import Waiver
from diopi_proto.types import Dtype
from diopi_test.cases.case import CaseClass
from diopi_test.execution.verdict import CheckResult, RoundingErrors, Verdict
from diopi_test.reporting.comparison import OutcomeChange, compare
from diopi_test.results.pooling import find_pooled_failures, is_pooled, pool
from diopi_test.results.records import CaseRecord, WaiverState
from diopi_test.run.collection import Collected
from diopi_test.run.selection import Selection
from diopi_test.waivers.rules import WaiverRule, Waivers

POOLED_ID = "diopiMm[pooled_values-float16]"


def measured_record(label: str, rms: float, *, elements: int = 12, dtype: Dtype = Dtype.float16) -> CaseRecord:
    """Return the record of a passed case of `diopiMm` with errors."""
    errors = RoundingErrors(dtype=dtype, elements=elements, rms=rms)
    result = CheckResult(check="values", passed=True, ratio=0.5, errors=(errors,))
    name = f"diopiMm[{label}]"
    command = shlex.join(["diopi-test", "run", "--vendor", "small", "--case", name])
    return replace(case_record(name, "passed", "", result), command=command)


IMPRECISE = [measured_record("float16-a", 1.2), measured_record("float16-b", 1.3)]
PRECISE = [measured_record("float16-a", 0.3), measured_record("float16-b", 1.3)]


def test_errors_are_pooled_by_their_numbers_of_elements() -> None:
    parts = [RoundingErrors(dtype=Dtype.float16, elements=n, rms=rms) for n, rms in ((10, 0.5), (30, 2.0))]
    assert pool(parts) == RoundingErrors(dtype=Dtype.float16, elements=40, rms=math.sqrt((2.5 + 120) / 40))


def test_a_function_fails_although_each_case_has_too_few_elements() -> None:
    [record] = find_pooled_failures(IMPRECISE)
    assert (record.id, record.function, record.dtype, record.verdict) == (POOLED_ID, "diopiMm", "float16", "failed")
    assert record.message == (
        "pooled_values: the errors of 24 elements in 2 results of type float16 have root mean square 1.25 units, "
        "at most 1 is allowed"
    )
    assert shlex.split(record.command)[-2:] == ["--case", POOLED_ID]
    assert is_pooled(record.id)


@pytest.mark.parametrize(
    "cases",
    [
        PRECISE,
        IMPRECISE[:1],
        [IMPRECISE[0], replace(IMPRECISE[1], verdict=Verdict.failed)],
        [IMPRECISE[0], replace(IMPRECISE[1], class_=CaseClass.open)],
        [IMPRECISE[0], replace(IMPRECISE[1], function="diopiBmm")],
        [IMPRECISE[0], measured_record("float32-b", 1.3, dtype=Dtype.float32)],
    ],
    ids=["precise", "few elements", "failed", "open", "another function", "another type"],
)
def test_precise_and_uncounted_cases_cause_no_pooled_failure(cases: list[CaseRecord]) -> None:
    assert not list(find_pooled_failures(cases))


def test_the_report_counts_a_pooled_failure() -> None:
    report = report_of(IMPRECISE)
    assert report.exit_status == 1
    assert (report.summary.failed, report.summary.total, report.summary.collected) == (1, 3, 2)
    assert [family.not_conforming for family in report.families] == [("diopiMm",)]
    [cause] = report.causes
    assert (cause.smallest_case, cause.factor) == (POOLED_ID, pytest.approx(1.251, abs=1e-3))
    assert report_of(PRECISE).exit_status == 0


@pytest.mark.parametrize(
    ("waiver", "verdict"),
    [
        (Waiver(POOLED_ID, "short tables"), Verdict.waived),
        (Waiver("diopiMm[*]", "short tables", max_ratio=1.3), Verdict.waived),
        (Waiver("diopiMm[*]", "short tables", max_ratio=1.2), Verdict.failed),
    ],
)
def test_a_pooled_failure_can_be_waived(waiver: Waiver, verdict: Verdict) -> None:
    waivers = Waivers((WaiverRule(waiver, "file"),))
    [record] = find_pooled_failures(IMPRECISE)
    assert waivers.apply(record).verdict is verdict


def test_a_waiver_of_errors_that_are_small_enough_is_not_needed() -> None:
    report = Waivers((WaiverRule(Waiver(POOLED_ID, "short tables"), "file"),)).report(PRECISE)
    assert report is not None
    assert report.entries[0].state is WaiverState.not_needed


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [(PRECISE, IMPRECISE, OutcomeChange.broken), (IMPRECISE, PRECISE, OutcomeChange.fixed)],
)
def test_a_comparison_reports_changed_precision(
    before: list[CaseRecord], after: list[CaseRecord], change: OutcomeChange
) -> None:
    comparison = compare(report_of(before), report_of(after))
    assert [(case.id, case.change) for case in comparison.cases] == [(POOLED_ID, change)]
    assert comparison.exit_status == int(change is OutcomeChange.broken)
    assert not comparison.selections_differ


def test_the_id_of_a_pooled_failure_selects_all_cases_of_the_function() -> None:
    functions = ("diopiMm", "diopiBmm")
    cases = [Collected(function=name, label=label, dtype="float16") for name in functions for label in ("a", "b")]
    selection = Selection(cases=(POOLED_ID,))
    assert [case.id for case in selection.apply(cases)] == ["diopiMm[a]", "diopiMm[b]"]
    assert selection.absent(cases) == []
    assert selection.wants_function("diopiMm")
