"""The report is readable on a desktop, on a phone, without scripts and on paper, in both languages.

With DIOPI_SCREENSHOTS=FOLDER, the tests save pictures of the pages.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import browsers
import pytest
from sampling import sampled
from shown_reports import crash_report

from diopi_test.reporting import html

pytestmark = pytest.mark.skipif(
    bool(browsers.missing_requirement()), reason=browsers.missing_requirement() or "a browser is there"
)

DESKTOP, PHONE = (1200, 900), (390, 844)

CRASH = "case?id=diopiAdaptiveMaxPool2dBackward%5Bfloat32-crash%5D"
FAILURE = "case?id=diopiAdd%5Bfloat32-row%5D"
VIEWS = ("overview", "functions", "cases", "models", "durations", "run", FAILURE, CRASH, "function?name=diopiAdd")

OVERFLOWING = """
return [...document.querySelectorAll('main *')].filter((element) => {
  const box = element.getBoundingClientRect();
  return box.width && (box.right > innerWidth + 1) && !element.closest('.scroll, pre, svg');
}).map((element) => element.outerHTML.slice(0, 90));
"""
"""The elements that are wider than the window, except those in regions that scroll."""


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    """Start a browser."""
    with browsers.browser() as found:
        yield found


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Write the English and the Chinese page of a report, and return their paths by language."""
    folder = tmp_path_factory.mktemp("pages")
    for language in ("en", "zh"):
        folder.joinpath(f"{language}.html").write_text(html.render_report(crash_report(more=40), language), "utf-8")
    return {language: folder / f"{language}.html" for language in ("en", "zh")}


def choose_language(driver: Any, language: str) -> None:
    """Store the language in which pages are shown."""
    driver.execute_script(f"localStorage.setItem('diopi-language', '{language}')")


@pytest.mark.parametrize(("size", "language"), sampled(product([DESKTOP, PHONE], ["en", "zh"]), 1, slow=3))
def test_no_view_is_wider_than_the_window(
    size: tuple[int, int], language: str, driver: Any, pages: dict[str, Path]
) -> None:
    browsers.resize(driver, *size)
    driver.get(pages["en"].as_uri())
    choose_language(driver, language)
    for view in VIEWS:
        browsers.open_page(driver, pages["en"], f"#/{view}")
        browsers.screenshot(driver, f"{view.partition('?')[0]}-{len(view)}-{size[0]}-{language}")
        assert driver.execute_script("return document.documentElement.scrollWidth <= innerWidth"), view
        assert driver.execute_script(OVERFLOWING) == [], view
    choose_language(driver, "en")


def test_the_grid_is_a_list_of_functions_on_a_phone(driver: Any, pages: dict[str, Path]) -> None:
    browsers.resize(driver, *PHONE)
    browsers.open_page(driver, pages["en"], "#/functions")
    script = "return getComputedStyle(arguments[0], '::before').content"
    cell = driver.find_element("css selector", ".grid td:not(.empty) a")
    assert driver.execute_script(script, cell) == '"float32"'
    assert not driver.find_element("css selector", ".grid thead").is_displayed()


def test_a_crash_shows_its_stack_with_the_vendors_frame_first(driver: Any, pages: dict[str, Path]) -> None:
    browsers.resize(driver, *DESKTOP)
    browsers.open_page(driver, pages["en"], f"#/{CRASH}")
    stack, declaration = driver.find_elements("css selector", "main pre")
    assert stack.text.startswith('File "/home/me/chip/pooling.py", line 11 in launch_kernel')
    assert declaration.text.startswith("diopiError_t diopiAdaptiveMaxPool2dBackward(")
    assert "api/pool.html#diopiadaptivemaxpool2dbackward" in driver.find_element("tag name", "main").text


def test_a_failure_links_to_the_function_in_the_documentation(driver: Any, tmp_path: Path) -> None:
    page = tmp_path / "linked.html"
    page.write_text(html.render_report(crash_report(), docs="https://docs.example/diopi"), "utf-8")
    browsers.open_page(driver, page, f"#/{FAILURE}")
    link = driver.find_element("link text", "Open the function in the documentation")
    assert link.get_attribute("href") == "https://docs.example/diopi/api/arithmetic.html#diopiadd"


def test_messages_are_translated_on_chinese_pages(driver: Any, pages: dict[str, Path]) -> None:
    browsers.resize(driver, *DESKTOP)
    driver.get(pages["en"].as_uri())
    choose_language(driver, "zh")
    browsers.open_page(driver, pages["en"], f"#/{FAILURE}")
    message = driver.find_element("css selector", ".message .said")
    assert message.text == "values: out: 6 个元素中有 2 个错误"
    assert message.get_attribute("title") == "values: out: 2 of 6 elements are wrong"
    choose_language(driver, "en")


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_without_scripts_there_is_a_summary(
    size: tuple[int, int], language: str, driver: Any, pages: dict[str, Path]
) -> None:
    browsers.resize(driver, *size)
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browsers.open_page(driver, pages[language])
        browsers.screenshot(driver, f"static-{size[0]}-{language}")
        text = driver.find_element("tag name", "main").text
    finally:
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    for expected in ("small 1.0", "diopi-test run --vendor small", "diopiAdd", "launch_kernel", "llama"):
        assert expected in text
    assert ("functions implemented" if language == "en" else "6 个元素中有 2 个错误") in text


BROKEN_NAMES = """
return [...document.querySelectorAll('.unbroken')].filter((element) => {
  const range = document.createRange();
  range.selectNodeContents(element);
  const lines = new Set([...range.getClientRects()].map((box) => Math.round(box.top)));
  return lines.size > 1 && element.getBoundingClientRect().width < element.parentElement.clientWidth / 2;
}).map((element) => element.textContent);
"""
"""The names that take several lines although they are much shorter than a line."""


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_names_are_broken_only_if_they_are_longer_than_a_line(
    size: tuple[int, int], driver: Any, pages: dict[str, Path]
) -> None:
    browsers.resize(driver, *size)
    browsers.open_page(driver, pages["en"])
    assert len(driver.find_elements("css selector", ".unbroken")) > 5
    assert driver.execute_script(BROKEN_NAMES) == []
    assert "--vendor" in {word.text for word in driver.find_elements("css selector", ".command .unbroken")}


def test_the_report_can_be_printed(driver: Any, pages: dict[str, Path], tmp_path: Path) -> None:
    browsers.resize(driver, *DESKTOP)
    browsers.open_page(driver, pages["en"])
    printed = driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    assert b64decode(printed["data"]).startswith(b"%PDF")
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    browsers.screenshot(driver, "print")
    assert not driver.find_element("css selector", "nav").is_displayed()
    assert driver.find_element("css selector", "details.cause:not([open]) p").size["height"] > 0
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
