"""Measure the page of a large run: its size, and the time to generate, open, filter and navigate it.

    python benchmarks/html_report.py [--cases 25000] [--failing 0.02] [--output page.html]

The log is synthetic: cases of all functions, some of which fail with everything that the record of a failed case can
have, including an error map of 32 × 32 cells. Times in the browser are medians of five. They are measured from the
navigation, or from the change of a filter, to the first frame that shows the result. The CPU time is that of the page's
main thread, which does not depend on other processes. The script needs Chromium with its driver, and Selenium.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import click

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

import browsers
from synthetic_runs import log_lines

from diopi_test.reporting import html
from diopi_test.reporting.reading import read_report

ROUNDS = 5
"""The number of times that each action in the browser is measured."""

VISIBLE = """const done = arguments[arguments.length - 1];
const shown = () => requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
"""
"""The beginning of a script that returns the milliseconds from `start` until a frame is displayed."""

FILTER = f"""{VISIBLE}
const control = document.getElementById("field-" + arguments[0]), start = performance.now();
control.value = arguments[1];
control.dispatchEvent(new Event(control.tagName === "SELECT" ? "change" : "input"));
shown();"""
"""A script that sets a filter and returns the milliseconds until the result is displayed.

Its arguments are the name of the filter and its value.
"""

NAVIGATE = f"""{VISIBLE}
const start = performance.now();
location.hash = arguments[0];
shown();"""
"""A script that opens the view in its argument and returns the milliseconds until the view is displayed."""

FIRST_PAINT = """const done = arguments[arguments.length - 1];
const wait = () => {
  const paint = performance.getEntriesByName("first-contentful-paint")[0];
  if (paint) done(paint.startTime); else requestAnimationFrame(wait);
};
wait();"""
"""A script that returns the milliseconds from the navigation to the first frame with content."""


def measure_opening(driver: Any, page: Path, view: str = "") -> float:
    """Return the milliseconds from the navigation to a page to the first frame with content.

    Args:
        driver: the browser.
        page: the file of the page.
        view: the part of the address that selects a view; empty for the first view.
    """
    browsers.open_page(driver, page, view)
    return float(driver.execute_async_script(FIRST_PAINT))


def thread_time(driver: Any) -> float:
    """Return the CPU milliseconds of the page's thread since the page was requested."""
    metrics = driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return 1e3 * next(float(metric["value"]) for metric in metrics if metric["name"] == "TaskDuration")


def measure_in_browser(page: Path) -> Iterator[tuple[str, float]]:
    """Yield each step and the milliseconds that it took."""
    with browsers.browser() as driver:
        driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
        for step, view in (("open", ""), ("open the grid", "#/functions")):
            times = [(measure_opening(driver, page, view), thread_time(driver)) for _ in range(ROUNDS)]
            yield step, median(frame for frame, _ in times)
            yield f"{step}, CPU", median(cpu for _, cpu in times)
        measure_opening(driver, page, "#/cases")
        for step, field, values in (
            ("filter by word", "q", ["diopi", "all 00", "wrong worst", "nothing at all", ""]),
            ("filter by verdict", "verdict", ["failed", "passed", "wrong", "", "failed"]),
            ("order by error / budget", "order", ["ratio", "id", "ratio", "seconds", "ratio"]),
        ):
            yield step, median(float(driver.execute_async_script(FILTER, field, value)) for value in values)
        names = ["diopiAdd", "diopiMm", "diopiSoftmax", "diopiRelu", "diopiSort"]
        addresses = [f"#/function?name={name}" for name in names]
        yield (
            "a function's page",
            median(float(driver.execute_async_script(NAVIGATE, address)) for address in addresses),
        )


@click.command()
@click.option("--cases", default=25_000, show_default=True)
@click.option("--failing", default=0.02, show_default=True, help="The share of cases that fail.")
@click.option("--output", type=click.Path(path_type=Path), help="Write the page to this file.")
def main(cases: int, failing: float, output: Path | None) -> None:
    """Print the size of the page and the times."""
    with tempfile.TemporaryDirectory() as folder:
        log, page = Path(folder, "run.log.jsonl"), output or Path(folder, "page.html")
        log.write_bytes(b"".join(log_lines(cases, failing)))
        print(f"log of {cases:,} cases, {failing:.0%} of them failed: {log.stat().st_size / 1e6:.1f} MB")
        start = perf_counter()
        report = read_report(log)
        print(f"read in {perf_counter() - start:.1f} s")
        start = perf_counter()
        page.write_text(html.render_report(report), "utf-8")
        print(f"page of {page.stat().st_size / 1e6:.1f} MB, made in {perf_counter() - start:.1f} s")
        if requirement := browsers.missing_requirement():
            sys.exit(requirement)
        for step, milliseconds in measure_in_browser(page.absolute()):
            print(f"{step}: {milliseconds:.0f} ms")


if __name__ == "__main__":
    main()
