"""The page of the history is readable without JavaScript, on a desktop and on a phone, in both languages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import browsers
import pytest
from histories import add_runs

from diopi_test.reporting.history.database import History
from diopi_test.reporting.history.trends import Series, read_series
from diopi_test.reporting.html.chart import Line, line_chart, sparkline
from diopi_test.reporting.html.history import render_history
from diopi_test.reporting.html.markup import join, tag
from diopi_test.reporting.html.texts import LANGUAGES


@pytest.fixture
def series(tmp_path: Path) -> list[Series]:
    add_runs(tmp_path / "h")
    with History.opened(tmp_path / "h") as history:
        return list(read_series(history))


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
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


def test_text_is_escaped() -> None:
    assert tag("p", "<b>", class_='"') == '<p class="&quot;">&lt;b&gt;</p>'
    assert join(["&", tag("br"), None]) == "&amp;<br>"


def test_a_line_has_gaps_where_values_are_missing() -> None:
    chart = line_chart("title", ["a", "b", "c", "d", "e"], [Line(name="x", values=[1, 2, None, 3, 4])])
    assert chart.count("<polyline") == 2 and chart.count("<circle") == 4
    assert sparkline([None, 0], "x").count("<circle") == 1
