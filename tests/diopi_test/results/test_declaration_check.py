"""Reports state whether measurements agree with the declared arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from case_records import case_record, report_of
from rich.console import Console

from diopi_impl import find_numerics
from diopi_test.baseline.codec import from_json, to_json
from diopi_test.reporting import html, markdown
from diopi_test.results.declaration_check import Contradiction, DeclarationCheck, UnmeasuredField, describe_check
from diopi_test.results.overview import describe_conformance, describe_run
from diopi_test.results.records import Report
from diopi_test.results.report import show

WIDER = Contradiction("float32_products", False, "products in TF32 are declared, but they are exact")
NARROWER = Contradiction("elementary", True, "exp has errors up to 9 ulp")
CRASHED = UnmeasuredField("convolutions", "crashed: signal 11")


def check(*contradictions: Contradiction, measured: int = 1, unmeasured: int = 0) -> DeclarationCheck:
    """Return a declaration check with these numbers of entries."""
    return DeclarationCheck(
        measured=("float32_products",) * measured, contradictions=contradictions, unmeasured=(CRASHED,) * unmeasured
    )


def report(found: DeclarationCheck | None) -> Report:
    """Return a report for TF32 with this declaration check."""
    declared = report_of([case_record("diopiRelu[float32-a]", "passed")], numerics=find_numerics("tf32"))
    return replace(declared, declaration_check=found)


@pytest.mark.parametrize(
    ("found", "title"),
    [
        (check(), "agrees with measurements"),
        (check(unmeasured=1), "agrees with measurements, 1 field not measured"),
        (check(WIDER), "1 contradiction with measurements"),
        (check(WIDER, NARROWER, unmeasured=1), "2 contradictions with measurements"),
        (check(measured=0, unmeasured=1), "could not be measured"),
        (None, "not compared with measurements"),
    ],
)
def test_a_declaration_is_never_stated_without_its_check(found: DeclarationCheck | None, title: str) -> None:
    assert dict(describe_run(report(found)))["declaration"] == title


def test_ieee_arithmetic_needs_no_check() -> None:
    assert describe_check(None, is_declared=False) == ""


def test_the_verdict_mentions_contradictions() -> None:
    assert describe_conformance(report(check(WIDER))).endswith("with numerics tf32, which measurements contradict")
    assert describe_conformance(report(check(unmeasured=1))).endswith("with numerics tf32")


def to_terminal(report: Report) -> str:
    """Return the summary of a report as the terminal shows it."""
    console = Console(record=True, width=200)
    show(report, console)
    return console.export_text()


@pytest.mark.parametrize("render", [to_terminal, markdown.render_report])
def test_reports_list_contradictions(render: Callable[[Report], str]) -> None:
    text = render(report(check(WIDER, NARROWER, unmeasured=1))).replace("\\_", "_")
    assert f"declared, but not used: {WIDER.message}\n" in text
    assert f"used, but not declared: {NARROWER.message}\n" in text
    assert "not measured: convolutions: crashed: signal 11\n" in text


def test_pages_list_contradictions_with_and_without_scripts() -> None:
    page = html.render_report(report(check(WIDER)))
    assert f'"declaration":[["unused","{WIDER.message}"]]' in page
    assert f"<li>The vendor declares an arithmetic that it does not use: {WIDER.message}</li>" in page


def test_the_record_survives_the_log() -> None:
    found = check(WIDER, NARROWER, unmeasured=1)
    assert from_json(DeclarationCheck, to_json(found)) == found
