"""The page in a headless Chromium, used with mouse and keyboard, in both languages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import browsers
import pytest
from case_records import report_of
from shown_reports import HOSTILE, incomplete_report, shown_report

from diopi_test.reporting import html
from diopi_test.reporting.comparison import compare

pytestmark = pytest.mark.skipif(
    bool(browsers.missing_requirement()), reason=browsers.missing_requirement() or "a browser is there"
)


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    """Start a browser."""
    with browsers.browser() as driver:
        yield driver


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of a page with a large report."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(html.render_report(shown_report(more=250)), "utf-8")
    return path


def all_of(driver: Any, selector: str) -> list[Any]:
    """Return the elements of the page that a CSS selector selects."""
    found: list[Any] = driver.find_elements("css selector", selector)
    return found


def texts(driver: Any, selector: str) -> list[str]:
    """Return the texts of the selected elements."""
    return [element.text for element in all_of(driver, selector)]


def select_one(driver: Any, selector: str) -> Any:
    """Return the only selected element."""
    (found,) = all_of(driver, selector)
    return found


def wait_for(driver: Any, heading: str) -> None:
    """Wait until the view with this heading is displayed; a browser reports a new address with a delay."""
    from selenium.webdriver.support.ui import WebDriverWait

    script = "return document.querySelector('h1').textContent"
    WebDriverWait(driver, 30, 0.02).until(
        lambda driver: driver.execute_script(script) == heading, f"no heading {heading!r}"
    )


def press(driver: Any, *keys: str) -> None:
    """Send keys to the element that has the focus."""
    driver.switch_to.active_element.send_keys(*keys)


def has_no_errors(driver: Any) -> bool:
    """Return whether the page ran without errors and without violations of its policy."""
    return [entry for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []


def test_cases_can_be_filtered(driver: Any, report: Path) -> None:
    browsers.open_page(driver, report, "#/cases")
    assert select_one(driver, ".shown").text == "256 of 256 cases"
    assert len(all_of(driver, "tbody tr")) == 100
    select_one(driver, "main > div > button").click()
    assert len(all_of(driver, "tbody tr")) == 200
    select_one(driver, "#field-verdict option[value=wrong]").click()
    assert len(all_of(driver, "tbody tr")) == 3
    select_one(driver, "#field-dtype option[value=none]").click()
    assert texts(driver, "tbody th") == ["diopiMul[negative-out-null]"]
    select_one(driver, "#field-dtype option[value='']").click()
    select_one(driver, "#field-counts option[value=yes]").click()
    select_one(driver, "#field-q").send_keys("elements ADD")
    assert texts(driver, "tbody th") == ["diopiAdd[float32-row]"]
    assert select_one(driver, ".status").get_attribute("textContent") == "1 of 256 cases"
    driver.refresh()
    assert texts(driver, "tbody th") == ["diopiAdd[float32-row]"]  # what was chosen is in the address
    select_one(driver, "#field-q").send_keys(" nothing")
    assert "No case matches." in select_one(driver, "main").text
    assert has_no_errors(driver)


def test_an_opened_failure_shows_where_it_occurred(driver: Any, report: Path) -> None:
    browsers.open_page(driver, report)
    assert select_one(driver, ".headline strong").text == "Failed cases: 2"
    driver.find_element("link text", "diopiAdd").click()
    wait_for(driver, "diopiAdd")
    assert texts(driver, "main .pair tbody th")[:2] == ["float32", "float16"]
    driver.find_element("link text", "diopiAdd[float32-row]").click()
    wait_for(driver, "diopiAdd[float32-row]")
    content = select_one(driver, "main").text
    for text in ("2 of 6 elements are wrong", "exactly [1, 1:]", "out[1, 2]", "1.25", "float32 (2, 3), strides (3, 1)"):
        assert text in content
    assert "--case 'diopiAdd[float32-row]'" in select_one(driver, ".command code").text
    levels = [cell.get_attribute("class") for cell in all_of(driver, ".picture rect")]
    assert levels == [f"level-{digit}" for digit in "000019"]
    assert "in 1 of 6 cells" in select_one(driver, ".picture svg").get_attribute("aria-label")
    driver.find_element("partial link text", "next failed").click()
    wait_for(driver, "diopiMul[negative-out-null]")
    driver.back()
    wait_for(driver, "diopiAdd[float32-row]")
    driver.back()
    wait_for(driver, "diopiAdd")
    assert has_no_errors(driver)


def test_the_table_of_models_links_to_missing_functions(driver: Any, report: Path) -> None:
    browsers.open_page(driver, report)
    driver.find_element("link text", "Models").click()
    wait_for(driver, "Models")
    assert select_one(driver, ".headline").text == "1 of 2 networks can be trained"
    assert [row.split()[:2] for row in texts(driver, "tbody tr")] == [["resnet", "yes"], ["llama", "no"]]
    assert "aten.cumsum" in select_one(driver, "main").text
    driver.find_element("link text", "diopiAdd").click()
    wait_for(driver, "diopiAdd")
    assert has_no_errors(driver)


def test_the_grid_can_be_used_with_the_keyboard(driver: Any, report: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    browsers.open_page(driver, report, "#/functions")
    assert len(all_of(driver, ".grid [tabindex='0']")) == 1  # the table is one stop of the Tab key
    driver.execute_script("document.querySelector('#field-kind').focus()")
    press(driver, Keys.TAB)
    assert driver.switch_to.active_element.text == "diopiAdd"
    press(driver, Keys.ARROW_RIGHT)
    assert driver.switch_to.active_element.get_attribute("aria-label") == "diopiAdd float32: 1 failed"
    press(driver, Keys.ARROW_DOWN)
    assert driver.switch_to.active_element.get_attribute("aria-label") == "diopiMul float32: 1 passed"
    press(driver, Keys.ENTER)
    wait_for(driver, "Cases")
    assert texts(driver, "tbody th") == ["diopiMul[float32-row]"]
    assert driver.switch_to.active_element.tag_name == "h1"  # where a reader of the screen goes on
    browsers.open_page(driver, report)
    press(driver, Keys.TAB)
    assert driver.switch_to.active_element.text == "Skip to the content"
    press(driver, Keys.ENTER)
    assert driver.switch_to.active_element.get_attribute("id") == "main"
    assert has_no_errors(driver)


def test_both_languages_and_themes_can_be_selected(driver: Any, report: Path) -> None:
    browsers.open_page(driver, report)
    ground = "return getComputedStyle(document.body).backgroundColor"
    driver.find_element("xpath", "//button[text()='中文']").click()
    assert select_one(driver, "html").get_attribute("lang") == "zh"
    assert select_one(driver, "h1").text == "概览"
    assert driver.switch_to.active_element.text == "中文"
    driver.find_element("xpath", "//button[text()='深色']").click()
    dark = driver.execute_script(ground)
    driver.find_element("xpath", "//button[text()='浅色']").click()
    assert driver.execute_script(ground) != dark
    driver.find_element("xpath", "//button[text()='English']").click()
    assert select_one(driver, "h1").text == "Overview"
    assert has_no_errors(driver)


def test_a_page_in_chinese_starts_in_chinese(driver: Any, tmp_path: Path) -> None:
    page = tmp_path / "zh.html"
    page.write_text(html.render_report(shown_report(), "zh"), "utf-8")
    driver.execute_script("localStorage.clear()")
    browsers.open_page(driver, page)
    assert select_one(driver, "h1").text == "概览"


def test_a_cause_shows_its_id(driver: Any, report: Path) -> None:
    """`diopi-test waive --cause` needs the ID."""
    browsers.open_page(driver, report)
    ids = [element.text for element in driver.find_elements("css selector", "details.cause summary code")]
    assert ids and all(re.fullmatch(r"[0-9a-f]{8}", text) for text in ids if text)


def test_every_view_can_be_shown_with_any_data(driver: Any, report: Path, tmp_path: Path) -> None:
    hostile = "case?id=diopiSqrt%5Bfloat32-hostile%5D"
    for view in ("overview", "functions", "cases", "models", "durations", "run", "function", "case", hostile):
        browsers.open_page(driver, report, f"#/{view}")
        assert select_one(driver, "main").text
    browsers.open_page(driver, report, "#/case?id=diopiMul%5Bfloat32-row%5D")
    for text in ("20.0 µs, the median of 20", "48.8", "4,096 (0.205 GB/s)", "512 (0.0256 G/s)"):
        assert text in select_one(driver, "main").text
    browsers.open_page(driver, report, "#/function?name=diopiMul")
    assert "The calls that move most bytes" in select_one(driver, "main").text
    browsers.open_page(driver, report, "#/cases?verdict=crashed")
    assert HOSTILE in select_one(driver, "tbody").text
    assert driver.execute_script("return window.stolen") is None
    assert has_no_errors(driver)
    page = tmp_path / "troubled.html"
    page.write_text(html.render_report(incomplete_report()), "utf-8")
    browsers.open_page(driver, page)
    assert select_one(driver, ".headline strong").text == "No verdict"
    assert texts(driver, ".warnings > li")[0].startswith("Incomplete. Cases without a verdict: 9. interrupted")
    browsers.open_page(driver, page, "#/run")
    for text in ("seed 7", "not needed", "diopiErf[*]: crashed → passed (2)", "Declared, and does not work"):
        assert text in select_one(driver, "main").text
    assert has_no_errors(driver)
    page = tmp_path / "empty.html"
    page.write_text(html.render_report(report_of([])), "utf-8")
    for view in ("overview", "functions", "cases", "durations", "run"):
        browsers.open_page(driver, page, f"#/{view}")
        assert select_one(driver, "main").text
    assert has_no_errors(driver)
    page = tmp_path / "changes.html"
    page.write_text(html.render_comparison(compare(shown_report(3), shown_report(5))), "utf-8")
    browsers.open_page(driver, page)
    assert texts(driver, "tbody th") == ["diopiSub[float32-0003]", "diopiSub[float32-0004]"]
    assert has_no_errors(driver)
