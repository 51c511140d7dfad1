"""The page of the history is readable without JavaScript, on a desktop and on a phone, in both languages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import browsers
import pytest
from case_records import case_record
from histories import add_runs, cause, report_of_day

from diopi_test.reporting.history.database import History
from diopi_test.reporting.history.trends import Series, read_series
from diopi_test.reporting.html.chart import Line, line_chart, sparkline
from diopi_test.reporting.html.history import render_history
from diopi_test.reporting.html.markup import join, tag
from diopi_test.reporting.html.texts import LANGUAGES
from diopi_test.results.causes.signature import Signature


@pytest.fixture
def series(tmp_path: Path) -> list[Series]:
    """Return the series of a history of several runs."""
    add_runs(tmp_path / "h")
    with History.opened(tmp_path / "h") as history:
        return list(read_series(history))


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    """Start a browser, or skip the test if none is installed."""
    if reason := browsers.missing_requirement():
        pytest.skip(reason)
    with browsers.browser() as found:
        yield found


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_is_one_file_without_scripts(language: str, series: list[Series]) -> None:
    page = render_history(series, language)
    assert "<script" not in page and "default-src 'none'" in page
    assert set(re.findall(r"https?://[^/\"']+", page)) == set()
    assert render_history([], language).count("<h2>") == 0


@pytest.mark.parametrize(("size", "language"), [((1200, 900), "en"), ((390, 844), "zh")])
def test_the_page_has_no_clipped_content(
    size: tuple[int, int], language: str, series: list[Series], driver: Any, tmp_path: Path
) -> None:
    page = tmp_path / "history.html"
    page.write_text(render_history(series, language), "utf-8")
    browsers.resize(driver, *size)
    browsers.open_page(driver, page)
    browsers.screenshot(driver, f"history-{size[0]}-{language}")
    assert driver.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    assert len(driver.find_elements("css selector", "figure.chart svg")) == 3
    assert "chip B (driver 1.0) on board-07" in driver.find_element("tag name", "main").text


@pytest.mark.parametrize(
    ("language", "expected"),
    [("en", ("7ff07943: NaN is lost in diopiRelu", "critical")), ("zh", ("7ff07943: diopiRelu 的NaN 丢失", "严重"))],
)
def test_causes_are_translated(language: str, expected: tuple[str, str], tmp_path: Path) -> None:
    sentence = Signature(symptom="lost_nan", scope="diopiRelu").sentence
    found = replace(cause("7ff07943", 1), sentence=sentence, severity="critical")
    report = report_of_day(1, [case_record("diopiRelu[float32-x]", "failed")])
    assert report.origin is not None
    with History.opened(tmp_path / "h", create=True) as history:
        history.add(report, report.origin, [found])
        page = render_history(list(read_series(history)), language)
    assert all(f">{text}<" in page for text in expected)


def test_text_is_escaped() -> None:
    assert tag("p", "<b>", class_='"') == '<p class="&quot;">&lt;b&gt;</p>'
    assert join(["&", tag("br"), None]) == "&amp;<br>"


def test_a_line_has_gaps_where_values_are_missing() -> None:
    chart = line_chart("title", ["a", "b", "c", "d", "e"], [Line(name="x", values=[1, 2, None, 3, 4])])
    assert chart.count("<polyline") == 2 and chart.count("<circle") == 4
    assert sparkline([None, 0], "x").count("<circle") == 1
