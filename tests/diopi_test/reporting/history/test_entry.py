"""The entries of a run state the causes of failed and of waived cases."""

from __future__ import annotations

from dataclasses import replace

import pytest
from case_records import case_record, report_of
from failed_cases import wrong_values

from diopi_impl import Waiver
from diopi_test.execution.verdict import UNSUCCESSFUL
from diopi_test.reporting.history.entry import cause_entries
from diopi_test.reporting.reading import with_causes
from diopi_test.results.records import CaseRecord, Report
from diopi_test.waivers.rules import Waivers, remove_waiver

ENGINE = "ErrorOccurred: could not create an engine"
RECORDS = [
    case_record("diopiAdd[float32-a]", "failed", ENGINE),
    case_record("diopiCos[float32-a]", "failed", ENGINE),
    case_record("diopiErf[float32-a]", "crashed", "the process was ended by SIGSEGV"),
    wrong_values("diopiSin[float32-a]", {"rounding": 3}),
    case_record("diopiTan[float32-a]", "passed"),
]


def waive(report: Report, *patterns: str) -> Report:
    """Return the report with waivers for cases, which may fail or crash."""
    waivers = Waivers.from_vendor(
        "small",
        [
            Waiver(pattern=pattern, reason="it failed: (known)", verdict=verdict)
            for pattern in patterns
            for verdict in ("failed", "crashed")
        ],
    )
    return with_causes(replace(report, cases=tuple(waivers.apply(case) for case in report.cases)))


@pytest.fixture
def report() -> Report:
    """Return a report of several records."""
    return report_of(RECORDS)


def test_a_cause_counts_failed_and_waived_cases_separately(report: Report) -> None:
    entries = cause_entries(waive(report, "diopiAdd[*]"))
    assert [(entry.cases, entry.functions, entry.waived) for entry in entries if "engine" in entry.sentence] == [
        (1, 1, 1)
    ]


def test_causes_of_which_every_case_is_waived_keep_id_severity_and_sentence(report: Report) -> None:
    before = {entry.cause: entry for entry in cause_entries(report)}
    after = {entry.cause: entry for entry in cause_entries(waive(report, "diopi*"))}
    assert len(before) == 3
    assert after == {name: replace(entry, cases=0, functions=0, waived=entry.cases) for name, entry in before.items()}


def test_removing_a_waiver_restores_the_record(report: Report) -> None:
    def without_waivers(cases: tuple[CaseRecord, ...]) -> list[CaseRecord]:
        return [remove_waiver(case) for case in cases]

    waived = waive(report, "diopi*").cases
    assert not any(case.verdict in UNSUCCESSFUL for case in waived)
    assert without_waivers(waived) == without_waivers(report.cases) == list(report.cases)
