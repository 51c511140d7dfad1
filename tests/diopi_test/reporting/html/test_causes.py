"""The page shows causes and severities: counts and the verdict depend on severity as in the terminal."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import browsers
import pytest
from case_records import case_record, report_of
from shown_reports import DIFFERENCE

from diopi_test.cases.case import CaseClass
from diopi_test.execution.deviation import Deviation, DeviationKind
from diopi_test.execution.verdict import CheckResult, Verdict
from diopi_test.reporting import html
from diopi_test.reporting.html import cause_summary
from diopi_test.reporting.html.columns import build_columns
from diopi_test.results.causes.severity import Severity
from diopi_test.results.causes.text import sentence_of
from diopi_test.results.records import CaseRecord, Report

DOCS = "https://docs.example/diopi"


def failed_case(case_id: str, check: str, kind: DeviationKind) -> CaseRecord:
    """Return a case in which a check failed because elements deviate in one way."""
    place = replace(DIFFERENCE, deviation=Deviation(kinds={kind: 2}))
    result = CheckResult(check=check, passed=False, message="out: 2 of 6 elements are wrong", differences=(place,))
    record = case_record(case_id, "failed", f"{check}: {result.message}", result)
    return replace(record, command=f"diopi-test run --case '{case_id}'")


MINOR_CASES = [failed_case(f"diopiRelu[float32-{n}]", "values", DeviationKind.sign_of_zero) for n in range(3)]
CRITICAL_CASES = [
    failed_case(f"diopi{name}[float32-row]", "inputs", DeviationKind.wrong_value) for name in ("Add", "Mul")
]
PASSED_CASE = case_record("diopiSqrt[float32-row]", "passed")


def minor_report() -> Report:
    """Return a report in which every failure is minor."""
    return report_of([*MINOR_CASES, PASSED_CASE])


def mixed_report() -> Report:
    """Return a report with critical and minor failures."""
    return report_of([*CRITICAL_CASES, *MINOR_CASES, PASSED_CASE])


def static_part(report: Report, language: str = "en", docs: str = "") -> str:
    """Return the part of the page that needs no scripts."""
    found = re.search(r"<main.*?</main>", html.render_report(report, language, docs), re.DOTALL)
    assert found is not None
    return found.group()


def text_of(markup: str) -> str:
    """Return the text of HTML markup with single spaces."""
    return re.sub(r"\s+", " ", re.sub(r"<(?!/?wbr)[^>]*>", " ", markup).replace("<wbr>", ""))


def test_minor_failures_do_not_make_the_verdict_negative() -> None:
    report = minor_report()
    assert report.exit_status == 0
    static = static_part(report)
    assert 'class="headline is-right"' in static
    assert "Functions with failures" not in static


@pytest.mark.parametrize(("options", "expected"), [({"strict": True}, 3), ({"fail_on": Severity.minor}, 3), ({}, 0)])
def test_the_verdict_counts_minor_failures_only_on_request(options: dict[str, Any], expected: int) -> None:
    report = replace(minor_report(), **options)
    static = static_part(report)
    assert (f"Failed cases: {expected}" in static) is bool(expected)
    assert ('class="minor"' in static) is not bool(expected)


def test_minor_failures_have_a_line_of_their_own() -> None:
    line = "Failed cases that do not affect the exit status: 3; severity: minor; functions: 1."
    assert line in static_part(mixed_report())
    assert "Failed cases: 2" in static_part(mixed_report())
    assert line not in static_part(report_of(CRITICAL_CASES))


def test_the_static_summary_lists_the_causes_before_the_failures() -> None:
    report = mixed_report()
    cause = report.causes[0]
    static = static_part(report)
    text = text_of(static)
    assert "Causes: 1; failed cases: 2" in text
    assert f"1. critical {sentence_of(cause)} cases: 2, functions: 2" in text
    assert "diopiAdd (1), diopiMul (1)" in text
    assert "diopi-test run --case 'diopiAdd[float32-row]'" in text.replace("&#x27;", "'")
    assert "Cases: 2 diopiAdd[float32-row] diopiMul[float32-row]" in text
    assert static.index(f'id="cause-{cause.id}"') < static.index("Functions with failures")
    assert "Causes that do not affect the exit status: 1 2. minor" in text


def test_a_cause_links_to_its_diagnosis() -> None:
    report = mixed_report()
    diagnosis = report.causes[0].diagnosis
    assert diagnosis == "input-written"
    page = f"diagnoses.html#{diagnosis}"
    assert f"In the documentation: {page}" in static_part(report)
    assert f'href="{DOCS}/{page}"' in static_part(report, docs=DOCS)
    assert f"## {diagnosis}\n" in Path(__file__).parents[4].joinpath("docs/diagnoses.md").read_text("utf-8")


def test_a_failed_function_links_to_its_definition_without_scripts() -> None:
    link = f'href="{DOCS}/api/arithmetic.html#diopiadd"'
    assert link in static_part(mixed_report(), docs=DOCS)
    assert "api/arithmetic.html" not in static_part(mixed_report())


def test_the_labels_of_causes_are_translated() -> None:
    text = text_of(static_part(mixed_report(), "zh"))
    assert "原因：1 个；失败用例：2 个" in text
    assert "1. 严重 输入被改动" in text
    assert "不影响退出状态的失败用例：3 个；严重程度：次要；函数：1 个。" in text


def test_long_lists_of_causes_and_cases_are_shortened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cause_summary, "MAX_CASES", 1)
    monkeypatch.setattr(cause_summary, "MAX_CAUSES", 0)
    assert "Further causes: 1." in static_part(mixed_report())
    monkeypatch.setattr(cause_summary, "MAX_CAUSES", 1)
    assert "Further cases: 1." in static_part(report_of(CRITICAL_CASES))


def test_the_scripts_receive_the_severity_and_the_cause_of_each_case() -> None:
    report = mixed_report()
    data = json.loads(json.dumps(build_columns(report)))
    ids = [case.id for case in report.cases]
    assert [ids[number] for number in data["minor"]] == [case.id for case in report.minor_failures]
    tables, columns = data["tables"], data["cases"]
    for number, case in enumerate(report.cases):
        assert tables["severity"][columns["severity"][number]] == (case.severity or "")
        assert tables["cause"][columns["cause"][number]] == case.cause
    assert [entry["sentences"][0] for entry in data["causes"]] == [sentence_of(cause) for cause in report.causes]


def test_a_waived_case_belongs_to_no_cause() -> None:
    waived = replace(mixed_report().cases[0], verdict=Verdict.waived)
    report = replace(mixed_report(), cases=(waived, *mixed_report().cases[1:]))
    data = build_columns(report)
    assert data["tables"]["cause"][data["cases"]["cause"][0]] == ""
    assert "Cases: 1 diopiMul[float32-row]" in text_of(static_part(report))


@pytest.mark.skipif(bool(browsers.missing_requirement()), reason=browsers.missing_requirement() or "a browser is there")
def test_the_causes_can_be_expanded_and_open_their_cases(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(html.render_report(mixed_report(), docs=DOCS), "utf-8")
    with browsers.browser() as driver:
        browsers.open_page(driver, page)
        assert driver.find_element("css selector", ".headline strong").text == "Failed cases: 2"
        assert "exit status: 3; severity: minor" in driver.find_element("css selector", ".minor").text
        first = driver.find_element("css selector", ".cause")
        first.find_element("css selector", "summary").click()
        link = first.find_element("link text", "Diagnosis input-written in the documentation")
        assert link.get_attribute("href") == f"{DOCS}/diagnoses.html#input-written"
        browsers.open_page(driver, page, f"#/cases?cause={mixed_report().causes[0].id}")
        rows = [row.text for row in driver.find_elements("css selector", "tbody th")]
        assert rows == ["diopiAdd[float32-row]", "diopiMul[float32-row]"]
        browsers.open_page(driver, page, "#/cases?counts=minor")
        assert len(driver.find_elements("css selector", "tbody th")) == 3
        assert [entry for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []


def test_cases_of_classes_that_do_not_count_are_not_among_the_failed_cases() -> None:
    """The headline and the title of the causes state the same number, also if a cause has other cases."""
    report = report_of([*CRITICAL_CASES, replace(CRITICAL_CASES[0], id="diopiAdd[open]", class_=CaseClass.open)])
    text = text_of(static_part(report))
    assert "Failed cases: 2" in text and "Causes: 1; failed cases: 2" in text and "cases: 3, functions: 2" in text


def test_an_infinite_factor_is_not_stated() -> None:
    cause = replace(mixed_report().causes[0], factor=math.inf)
    assert sentence_of(cause) == cause.sentence
    assert sentence_of(replace(cause, factor=12.5)) == f"{cause.sentence}, up to 12.5 times the limit"
