"""Every case can be restored from the columns of a report, as far as the size limit allows."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from case_records import case_record, report_of
from shown_reports import DIFFERENCE, shown_report

from diopi_test.execution.verdict import CheckResult
from diopi_test.reporting.html import columns as module
from diopi_test.reporting.html.columns import build_columns


def test_every_case_can_be_restored_from_the_columns() -> None:
    report = shown_report()
    found = json.loads(json.dumps(build_columns(report)))
    tables, listed = found["tables"], found["cases"]
    for number, case in enumerate(report.cases):
        data = {
            name: tables[name][listed[name][number]] for name in ("function", "dtype", "class", "verdict", "command")
        }
        assert f"{data['function']}[{listed['label'][number]}]" == case.id
        assert (data["dtype"], data["class"], data["verdict"]) == (case.dtype, case.class_.name, case.verdict.name)
        checks = tables["checks"][listed["checks"][number]]
        assert [(tables["check"][check], passed == 1) for check, passed in checks] == [
            (item.check, item.passed) for item in case.checks
        ]
        assert found["messages"].get(str(number), "") == case.message
        assert listed["microseconds"][number] == 500_000


def test_only_measured_columns_have_values() -> None:
    endless = case_record(
        "diopiAdd[float32-a]",
        "failed",
        "",
        CheckResult(check="values", passed=False, message="wrong", ratio=float("inf")),
    )
    tiny = case_record("diopiAdd[float32-b]", "passed", "", CheckResult(check="values", passed=True, ratio=0.123456))
    exact = case_record("diopiAdd[float32-c]", "passed", "", CheckResult(check="values", passed=True))
    assert build_columns(report_of([endless, tiny, exact]))["cases"]["ratio"] == ["inf", 0.123, None]


def test_the_command_of_a_case_is_stored_once() -> None:
    records = [case_record(f"diopi{name}[float32-row]", "passed") for name in ("Add", "Mul")]
    found = build_columns(report_of([replace(case, command=f"diopi-test run --case '{case.id}'") for case in records]))
    assert found["tables"]["command"] == ["diopi-test run --case "]


def test_passed_cases_have_no_details() -> None:
    found = build_columns(shown_report())
    assert list(found["details"]) == [1, 4, 5]
    (finding,) = found["details"][1]["findings"]
    assert finding["where"][0]["map"] == {"axes": [0, 1], "sizes": [2, 3], "rows": ["000", "019"]}


def test_every_function_has_some_details_if_not_all_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    failed_check = CheckResult(check="values", passed=False, message="wrong", differences=(DIFFERENCE,))
    failed = [
        case_record(f"diopi{name}[float32-{number}]", "failed", "x", failed_check) for name in "AB" for number in "123"
    ]
    item = len(str(build_columns(report_of(failed))["details"][0]))
    monkeypatch.setattr(module, "DETAILS", 3 * item)
    assert sorted(build_columns(report_of(failed))["details"]) == [0, 1, 3]


def test_long_messages_are_shortened() -> None:
    found = build_columns(report_of([case_record("diopiAdd[float32-a]", "failed", "x" * 9999)]))
    assert found["messages"][0] == "x" * module.SHORT + " …"
    assert found["details"][0]["message"] == "x" * module.LONG + " …"


def test_a_report_without_cases_has_all_tables() -> None:
    tables = build_columns(report_of([]))["tables"]
    assert set(tables) == set(module.TABLES)
    assert [name for name in module.TABLES if tables[name]] == ["class"]
