"""Open HTML reports in a headless Chromium, driven by Selenium, for tests and measurements of the pages."""

from __future__ import annotations

import os
import shutil
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

BINARIES = ("chromium", "chromium-browser", "google-chrome")
"""The names of the program, of which the first one that is installed is used."""

FLAGS = (
    "--headless",
    "--no-sandbox",  # the browser opens only pages of these tests
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--disable-sync",
    "--no-first-run",
)
"""The options of the browser: no window, no network, and nothing that a container lacks."""


def missing_requirement() -> str:
    """Return a sentence about what is not installed but needed; empty if nothing is missing."""
    if find_spec("selenium") is None:
        return "Selenium is not installed: pip install '.[test]'"
    if not any(map(shutil.which, BINARIES)) or not shutil.which("chromedriver"):
        return "there is no Chromium with its driver: apt-get install chromium chromium-driver"
    return ""


@contextmanager
def browser(size: tuple[int, int] = (1200, 900)) -> Iterator[Any]:
    """Start a browser in English with a new profile and yield its driver; quit the browser afterwards.

    Args:
        size: the width and height of the window in pixels.
    """
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    options = ChromeOptions()
    options.binary_location = next(filter(None, map(shutil.which, BINARIES)))
    with TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for flag in (*FLAGS, "--lang=en", f"--window-size={size[0]},{size[1]}", f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        driver = Chrome(options, Service(shutil.which("chromedriver")))
        try:
            yield driver
        finally:
            driver.quit()


def open_page(driver: Any, file: Path, view: str = "") -> None:
    """Open a page from a file and wait until it is loaded.

    Args:
        driver: the driver of the browser.
        file: the HTML file.
        view: the fragment of the URL that selects a part of the page, with its `#`.
    """
    driver.get("about:blank")  # a change of only the fragment would not load the page again
    driver.get(f"{file.as_uri()}{view}")


def resize(driver: Any, width: int, height: int, *, scale: float = 1) -> None:
    """Emulate a screen of this size, because a real window can't be narrower than 500 pixels.

    Args:
        driver: the browser.
        width: the width in CSS pixels.
        height: the height in CSS pixels.
        scale: the number of device pixels per CSS pixel.
    """
    metrics = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def screenshot(driver: Any, name: str) -> None:
    """Save a picture of the whole page as NAME.png in the folder that DIOPI_SCREENSHOTS names, if it is set."""
    folder = os.environ.get("DIOPI_SCREENSHOTS")
    if not folder:
        return
    Path(folder).mkdir(parents=True, exist_ok=True)
    content = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": True})
    Path(folder, f"{name}.png").write_bytes(b64decode(content["data"]))
