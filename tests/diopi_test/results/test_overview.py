"""A report begins with what identifies the run, and with the conformance by family."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from case_records import case_record, report_of
from rich.console import Console

from diopi_impl import Numerics, find_numerics
from diopi_test.cases.case import CaseClass
from diopi_test.reporting import html, markdown
from diopi_test.reporting.junit import junit
from diopi_test.results.overview import describe_conformance, describe_device, describe_run, show_overview
from diopi_test.results.records import Report, RunOrigin
from diopi_test.results.report import show

ORIGIN = RunOrigin(started="2026-01-02T03:04:05.000006+00:00", host="board-07", processor="a processor", workers=4)


def report() -> Report:
    """Return a report with cases of several families and verdicts."""
    records = [
        case_record("diopiRelu[float32-a]", "passed"),
        case_record("diopiGelu[float32-a]", "passed"),
        case_record("diopiGelu[float16-a]", "unsupported"),
        case_record("diopiSoftmax[float32-a]", "failed"),
        replace(case_record("diopiRelu[negative-a]", "failed"), class_=CaseClass.negative),
        case_record("diopiErf[float32-a]", "not_implemented"),
        case_record("diopiAdd[float32-a]", "waived"),
        case_record("runtime[copies]", "failed"),
    ]
    return replace(report_of(records), origin=ORIGIN)


def test_only_cases_that_count_decide_about_a_function() -> None:
    families = {family.family: family for family in report().families}
    activation = families["activation"]
    assert (activation.functions, activation.implemented, activation.conforming) == (3, 3, 2)
    assert activation.not_conforming == ("diopiSoftmax",)
    assert families["pointwise"].not_implemented == ("diopiErf",)
    assert families["arithmetic"].conforming == 1
    assert describe_conformance(report()) == "4 of 5 functions implemented, 3 conform"
    assert describe_conformance(report_of([])) == ""


def test_conformance_names_the_declared_numerics_unless_they_are_ieee() -> None:
    records = [case_record("diopiRelu[float32-a]", "passed")]
    strict = report_of(records, numerics=Numerics(name="strict", subnormals="keep"))
    assert describe_conformance(strict) == "1 of 1 function implemented, 1 conforms"
    declared = report_of(records, numerics=find_numerics("tf32"))
    standard = f"DIOPI {declared.proto_version}"
    assert describe_conformance(declared) == (
        f"1 of 1 function implemented, 1 conforms to {standard} with numerics tf32"
    )
    assert dict(describe_run(declared))["numerics"] == f"tf32 ({find_numerics('tf32').digest[:8]})"
    assert dict(describe_run(strict))["numerics"] == "strict"


@pytest.mark.parametrize("render", [junit, html.render_report, markdown.render_report])
def test_every_report_names_the_declared_numerics(render: Callable[[Report], str]) -> None:
    text = render(report_of([case_record("diopiRelu[float32-a]", "passed")], numerics=find_numerics("tf32")))
    assert "small 1.0 with numerics tf32" in text
    assert find_numerics("tf32").digest[:8] in text
    assert "with numerics" not in render(report_of([])).partition("<script")[0]


def test_terminal_names_the_declared_numerics() -> None:
    console = Console(record=True, width=200)
    show(report_of([case_record("diopiRelu[float32-a]", "passed")], numerics=find_numerics("tf32")), console)
    assert "small 1.0 with numerics tf32: 1 passed" in console.export_text()


def test_the_run_is_described() -> None:
    facts = dict(describe_run(report()))
    assert facts["numerics"] == "ieee"
    assert (facts["date"], facts["host"], facts["device"]) == ("2026-01-02 03:04 UTC", "board-07", "a processor")
    assert facts["command"] == "diopi-test run --vendor small --level smoke -n 1"
    assert describe_device(replace(ORIGIN, device="chip", driver="7")) == "chip (driver 7)"
    assert "host" not in dict(describe_run(replace(report(), origin=None)))


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("diopi-test run --vendor small --level smoke -n 1", "default"),
        ("diopi-test run --vendor small --level full --strict -k 'sin or cos' -n 1", "--strict -k 'sin or cos'"),
        ("", ""),
        ("diopi-test run 'unfinished", ""),
    ],
)
def test_the_options_of_the_run_have_a_line_of_their_own(command: str, options: str) -> None:
    assert dict(describe_run(replace(report(), command=command)))["options"] == options


def test_the_terminal_shows_families_that_are_not_complete() -> None:
    console = Console(width=120, record=True, file=None, quiet=False)
    with console.capture() as captured:
        show_overview(report(), console)
    lines = captured.get().splitlines()
    assert lines[0] == "vendor: small 1.0"
    assert "4 of 5 functions implemented, 3 conform" in lines
    assert "  complete: arithmetic" in lines
    assert any(line.split() == ["activation", "3", "3", "2", "diopiSoftmax"] for line in lines)
