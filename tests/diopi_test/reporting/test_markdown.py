"""A report as Markdown lists failures briefly, and interprets no text of a vendor as markup."""

from __future__ import annotations

from dataclasses import replace

import pytest
from case_records import case_record, report_of

from diopi_test.cases.case import CaseClass
from diopi_test.reporting import markdown
from diopi_test.results.records import ModelReport


def test_the_summary_of_a_passed_run_is_short() -> None:
    text = markdown.render_report(report_of([case_record("diopiAdd[float32-x]", "passed")]))
    assert text.startswith("### ✅ small 1.0: 1 of 1 cases passed\n")
    assert "| class | passed |\n| --- | ---: |\n| basic | 1 |\n" in text
    assert "<details>" not in text


def test_the_summary_lists_only_failures_that_count() -> None:
    failed = case_record("diopiAdd[float32-x]", "failed", "values: out is wrong")
    negative = replace(case_record("diopiAdd[float32-y]", "failed", "accepted"), class_=CaseClass.negative)
    text = markdown.render_report(report_of([failed, negative]))
    assert text.startswith("### ❌")
    assert "<summary>1 case went wrong</summary>" in text
    assert "- **failed** `diopiAdd[float32-x]`: `values: out is wrong`" in text
    assert "accepted" not in text
    assert "| negative (does not count) | 1 |" in text


def test_the_cases_are_listed_in_the_order_of_their_causes() -> None:
    engine = [case_record(f"diopi{name}[float32-x]", "failed", "ErrorOccurred: no engine") for name in ("Sin", "Tan")]
    minor_cause = case_record("diopiAbs[float32-x]", "failed", "ErrorOccurred: another reason")
    report = report_of([minor_cause, *engine])
    text = markdown.render_report(report).partition("went wrong</summary>")[2]
    places = [text.index(f"`{name}[float32-x]`") for name in ("diopiSin", "diopiAbs", "diopiTan")]
    assert places == sorted(places), "first the smallest case of each cause, then the remaining cases"


def test_an_incomplete_run_is_not_a_success() -> None:
    whole = report_of([case_record("diopiAdd[float32-x]", "passed")])
    summary = replace(whole.summary, incomplete=True, not_run=3, reason="interrupted by SIGINT")
    text = markdown.render_report(replace(whole, summary=summary))
    assert text.startswith("### ❔") and "3 cases have no verdict" in text and "`interrupted by SIGINT`" in text


def test_many_failures_with_long_messages_fit_into_a_comment() -> None:
    failed = [case_record(f"diopiAdd[float32-{number}]", "failed", "x" * 10_000) for number in range(500)]
    text = markdown.render_report(report_of(failed))
    assert len(text) < 30_000
    assert "- … and 480 more" in text


def test_causes_have_their_id_and_only_numbers_are_aligned_to_the_right() -> None:
    report = report_of([case_record("diopiAbs[float32-x]", "failed", "ErrorOccurred: could not create an engine")])
    text = markdown.render_report(report)
    assert f"| `{report.causes[0].id}` | major | 1 | 1 |" in text
    assert "| --- | --- | --- | ---: | ---: | --- | --- |" in text


@pytest.mark.parametrize(
    ("message", "rendered"),
    [
        ("<b>**wrong**</b>", "`<b>**wrong**</b>`"),
        ("two\nlines", "`two lines`"),
        ("a `b` c", "``a `b` c``"),
        ("`b`", "`` `b` ``"),
    ],
)
def test_messages_are_shown_as_they_are(message: str, rendered: str) -> None:
    assert f": {rendered}\n" in markdown.render_report(
        report_of([case_record("diopiAdd[float32-x]", "failed", message)])
    )


def test_the_name_of_a_vendor_is_escaped() -> None:
    text = markdown.render_report(report_of([case_record("diopiAdd[float32-x]", "passed")], vendor="<img>_a_"))
    assert text.startswith("### ✅ \\<img\\>\\_a\\_ 1.0")


def test_the_summary_lists_networks_that_can_be_trained() -> None:
    report = report_of([case_record("diopiAdd[float32-x]", "passed")])
    models = (
        ModelReport(name="resnet", calls=3, passed=3, not_run=0, failures={}, not_mapped=()),
        ModelReport(name="bert", calls=3, passed=2, not_run=1, failures={}, not_mapped=()),
    )
    assert "1 of 2 networks can be trained." in markdown.render_report(replace(report, models=models))
