"""JUnit XML: cases that count are failures or errors, the others passed or skipped, and the numbers agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from case_records import case_record, report_of

from diopi_test.cases.case import CaseClass
from diopi_test.execution.verdict import CheckResult
from diopi_test.reporting.junit import junit
from diopi_test.results.records import CaseRecord


def document(cases: Sequence[CaseRecord]) -> ElementTree.Element:
    """Return the JUnit XML of a report with these cases."""
    return ElementTree.fromstring(junit(report_of(cases)))


def outcome(case: CaseRecord) -> ElementTree.Element | None:
    """Return the first element of a case in the document other than its properties; None if there is none."""
    found = document([case_record("diopiAdd[float32-right]", "passed"), case])
    elements = found.findall("testsuite/testcase")[1]
    return next((element for element in elements if element.tag != "properties"), None)


def test_a_failed_case_has_its_cause_and_severity_as_properties() -> None:
    record = case_record("diopiAdd[float32-x]", "crashed", "the vendor was ended by SIGSEGV")
    properties = document([record]).findall("testsuite/testcase/properties/property")
    (cause,) = report_of([record]).causes
    assert {element.get("name"): element.get("value") for element in properties} == {
        "cause": cause.id,
        "severity": "critical",
    }


@pytest.mark.parametrize(
    ("verdict", "tag"),
    [
        ("passed", None),
        ("failed", "failure"),
        ("flaky", "failure"),
        ("crashed", "error"),
        ("timed_out", "error"),
        ("out_of_memory", "error"),
        ("not_implemented", "skipped"),
        ("unsupported", "skipped"),
    ],
)
def test_each_verdict_has_its_element(verdict: str, tag: str | None) -> None:
    element = outcome(case_record("diopiAdd[float32-x]", verdict, "what happened"))
    assert (element is None and tag is None) or (element is not None and element.tag == tag)
    assert element is None or "what happened" in str(element.get("message"))


def test_cases_that_do_not_count_are_skipped() -> None:
    negative = replace(case_record("diopiAdd[float32-x]", "failed", "accepted"), class_=CaseClass.negative)
    element = outcome(negative)
    assert element is not None and (element.tag, element.get("message")) == (
        "skipped",
        "does not count: major: failed: accepted",
    )


def test_every_function_is_a_suite_with_correct_counts() -> None:
    verdicts = ("passed", "failed", "crashed", "not_implemented")
    names = [f"{function}[float32-{verdict}]" for function in ("diopiB", "diopiA") for verdict in verdicts]
    root = document([case_record(name, name.partition("-")[2][:-1]) for name in names])
    assert [suite.get("name") for suite in root] == ["diopiA", "diopiB"]
    for element, number in ((root, 2), *((suite, 1) for suite in root)):
        assert {name: element.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
            "tests": str(4 * number),
            "failures": str(number),
            "errors": str(number),
            "skipped": str(number),
        }
    assert float(str(root[0].get("time"))) == sum(float(str(case.get("time"))) for case in root[0].findall("testcase"))


def test_a_failure_contains_the_results_of_its_checks() -> None:
    finding = CheckResult(check="values", passed=False, message="out is wrong at 3 of 8 elements")
    element = outcome(case_record("diopiAdd[float32-x]", "failed", "values: wrong", finding))
    assert element is not None and element.text is not None and finding.message in element.text


def test_characters_that_xml_forbids_are_shown_by_number() -> None:
    element = outcome(case_record("diopiAdd[float32-x]", "failed", "it said \x1b[31mno\x00 <&>"))
    assert element is not None and element.get("message") == "it said \\x1b[31mno\\x00 <&>"


def test_a_run_without_a_verdict_is_an_error() -> None:
    whole = report_of([case_record("diopiAdd[float32-x]", "passed")])
    summary = replace(whole.summary, incomplete=True, not_run=7, reason="interrupted")
    root = ElementTree.fromstring(junit(replace(whole, summary=summary, errors=("the disk is full",))))
    messages = [str(error.get("message")) for error in root.findall("testsuite[@name='run']/testcase/error")]
    assert messages == ["the disk is full", "incomplete: 7 cases have no verdict, interrupted"]
    assert root.get("errors") == "2"
    run_document = document([case_record("diopiAdd[float32-x]", "not_implemented")])
    assert [error.get("message") for error in run_document.iter("error")] == ["no case was executed"]


def test_suites_have_time_and_host_and_the_first_one_has_properties() -> None:
    report = report_of([case_record("diopiAdd[a]", "passed"), case_record("diopiSub[a]", "passed")])
    assert report.origin is not None
    root = ElementTree.fromstring(junit(replace(report, origin=replace(report.origin, device="chip", host="board-07"))))
    assert {suite.get("hostname") for suite in root} == {"board-07"}
    assert {suite.get("timestamp") for suite in root} == {report.origin.started[:19]}
    properties = {entry.get("name"): entry.get("value") for entry in root[0].findall("properties/property")}
    assert properties["device"] == "chip" and properties["command"] == report.command
    assert [entry.tag for entry in root.iter("properties")] == ["properties"]
    old = ElementTree.fromstring(junit(replace(report, origin=None)))
    assert old[0].get("timestamp") is None
