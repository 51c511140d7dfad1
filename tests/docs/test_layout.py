"""The layout of the built site at the widths of a desktop, a tablet and a phone, in a headless browser."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsers import browser, missing_requirement

SITE = os.environ.get("DIOPI_SITE", "")

WIDTHS = {"desktop": 1280, "tablet": 820, "phone": 390}
"""The widths of the screens in pixels."""

PAGES = ("index", "report", "api/functions", "api/python", "api/diopiGelu", "api/diopiConvolution2d")

pytestmark = pytest.mark.skipif(
    not SITE or bool(missing_requirement()),
    reason=missing_requirement() or "the variable DIOPI_SITE must name the folder of the site that mkdocs has built",
)


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    with browser() as opened:
        yield opened


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("device", WIDTHS)
def test_a_page_is_not_wider_than_the_screen(driver: Any, device: str, page: str) -> None:
    metrics = {"width": WIDTHS[device], "height": 1200, "deviceScaleFactor": 1, "mobile": device == "phone"}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    driver.get(Path(SITE, f"{page}.html").resolve().as_uri())
    assert driver.execute_script("return document.documentElement.scrollWidth") <= WIDTHS[device]


@pytest.mark.parametrize("page", PAGES)
def test_every_picture_of_a_built_page_has_an_alternative_text(driver: Any, page: str) -> None:
    driver.get(Path(SITE, f"{page}.html").resolve().as_uri())
    script = "return [...document.images].filter(image => !image.alt).map(image => image.src)"
    assert driver.execute_script(script) == []


def test_formulas_scroll_within_their_box(driver: Any) -> None:
    metrics = {"width": WIDTHS["phone"], "height": 1200, "deviceScaleFactor": 1, "mobile": True}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    driver.get(Path(SITE, "api", "diopiConvolution2d.html").resolve().as_uri())
    box = "const box = document.querySelector('.formula');"
    assert driver.execute_script(f"{box} return box.querySelectorAll('math').length") > 2
    assert driver.execute_script(f"{box} return getComputedStyle(box).overflowX") == "auto"
