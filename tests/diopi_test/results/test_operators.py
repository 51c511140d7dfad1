"""Reports say which operators of a framework served each function, and whether a library served them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from case_records import case_record, report_of
from rich.console import Console

from diopi_impl import OperatorOverride, OperatorUse
from diopi_test.baseline.codec import from_json, to_json
from diopi_test.reporting.html import render_report as render_page
from diopi_test.reporting.html.columns import build_columns
from diopi_test.reporting.markdown import render_report
from diopi_test.results.operators import describe_overrides, list_operators, show_operators
from diopi_test.results.records import Report


@pytest.fixture
def report() -> Report:
    """Return the report of a run with a library that overrides three operators, one of which never ran."""
    uses = {
        "diopiSin": [("aten::sin", "")],
        "diopiRelu": [("aten::relu", "k.py:3"), ("aten::empty", "")],
        "diopiReluInp": [("aten::relu", "k.py:3")],
        "diopiTanh": [("aten::tanh", "k.py:4")],
    }
    records = [
        replace(
            case_record(f"{function}[float32-x]", "passed"),
            operators=tuple(OperatorUse(function=function, operator=name, source=source) for name, source in entries),
        )
        for function, entries in uses.items()
    ]
    overrides = tuple(OperatorOverride(operator=f"aten::{name}", source="k.py:3") for name in ("erf", "relu", "tanh"))
    plain = report_of(records)
    return replace(plain, vendor=replace(plain.vendor, overrides=overrides))


def test_functions_that_the_library_served_come_first(report: Report) -> None:
    assert [entry.cells for entry in list_operators(report)] == [
        ("diopiRelu", "aten::relu", "aten::empty"),
        ("diopiReluInp", "aten::relu", ""),
        ("diopiTanh", "aten::tanh", ""),
        ("diopiSin", "", "aten::sin"),
    ]


def test_overrides_that_no_call_ran_are_named(report: Report) -> None:
    assert list(describe_overrides(report)) == [
        "the library overrides 3 operators, of which 2 ran; it served 3 of 4 functions",
        "overridden, but not run: aten::erf",
    ]


def test_the_terminal_the_markdown_and_the_page_list_the_operators(report: Report) -> None:
    console = Console(record=True, width=120)
    show_operators(report, console)
    for text in (console.export_text(), render_report(report), render_page(report)):
        assert "aten::empty" in text and "aten::erf" in text, text
    assert build_columns(report)["operators"]["summary"]["unused"] == ("aten::erf",)


def test_a_report_without_a_library_does_not_mention_operators() -> None:
    plain = report_of([case_record("diopiSin[float32-x]", "passed")])
    assert not list(describe_overrides(plain))
    assert "operators" not in render_report(plain) and "overrides" not in json.dumps(to_json(plain))


def test_operators_survive_writing_and_reading(report: Report) -> None:
    assert from_json(Report, to_json(report)) == report
