"""What the page of a large run costs: its size, and the time to make, open, filter and read it.

    python benchmarks/html_report.py [--cases 25000] [--failing 0.02] [--output page.html]

The log is made up: cases of all functions, of which a part fails with all that a record of a failed case has, a picture
of 32 × 32 cells included. Times in the browser are medians of five, from the navigation to the first frame with the
view, and from the change of a filter to the frame that shows it; CPU is that of the thread that makes the page, which
does not depend on what else the machine does. It needs Chromium with its driver, and Selenium.
"""

from __future__ import annotations

import random
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

from diopi_proto.interface import prototypes
from diopi_test.baseline.codec import to_json
from diopi_test.cases.case import CaseClass
from diopi_test.execution.difference import Difference, ErrorMap, Pattern, PatternKind
from diopi_test.execution.timing import Timing
from diopi_test.execution.verdict import CheckResult, Verdict
from diopi_test.reporting import html
from diopi_test.reporting.reading import read_report
from diopi_test.results.log import LogRecord, seal
from diopi_test.results.records import CaseRecord, VendorInfo
from diopi_test.run.options import RunOptions

DTYPES = ("float32", "float16", "bfloat16", "float64", "int32", "int64", "complex64", "bool")
CHECKS = ("form", "written", "inputs", "gaps", "guards", "repeat", "order", "layout", "leaks")
ROUNDS = 5

VISIBLE = """const done = arguments[arguments.length - 1];
const shown = () => requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
"""
"""What waits until a frame has been shown, then hands back the milliseconds since `start`."""

FILTER = f"""{VISIBLE}
const control = document.getElementById("field-" + arguments[0]), start = performance.now();
control.value = arguments[1];
control.dispatchEvent(new Event(control.tagName === "SELECT" ? "change" : "input"));
shown();"""

GO = f"""{VISIBLE}
const start = performance.now();
location.hash = arguments[0];
shown();"""

OPENED = """const done = arguments[arguments.length - 1];
const wait = () => {
  const paint = performance.getEntriesByName("first-contentful-paint")[0];
  if (paint) done(paint.startTime); else requestAnimationFrame(wait);
};
wait();"""
"""The milliseconds from the navigation to the first frame with content."""


def log_lines(cases: int, failing: float) -> Iterator[bytes]:
    """The log of a run of so many cases, a part of which fails."""
    options, draw = RunOptions(vendor="synthetic"), random.Random(0)
    yield seal(LogRecord("run", to_json(options.header("0" * 64))))
    yield seal(LogRecord("vendor", to_json(VendorInfo("synthetic", "1.0"))))
    records = [record(number, draw, draw.random() < failing, options) for number in range(cases)]
    yield seal(LogRecord("due", [record.id for record in records]))
    yield from (seal(LogRecord("case", to_json(record))) for record in records)
    yield seal(LogRecord("end", 1234.5))


def record(number: int, draw: random.Random, fails: bool, options: RunOptions) -> CaseRecord:
    """How a case ended."""
    functions = sorted(prototypes())
    function, dtype = functions[number % len(functions)], draw.choice(DTYPES)
    label = f"{dtype}-all-attributes-{number:05}"
    case_id = f"{function}[{label}]"
    values = (
        failure(draw)
        if fails
        else CheckResult(check="values", passed=True, ratio=draw.random() ** 3, rms=draw.random())
    )
    checks = (*(CheckResult(check=name, passed=True) for name in CHECKS[: draw.randrange(5, 10)]), values)
    message = f"values: {values.message}" if fails else ""
    timing = (
        None if fails else Timing(seconds=draw.random() * 1e-4, repeats=20, bytes=draw.randrange(10**6), bandwidth=1e10)
    )
    return CaseRecord(
        id=case_id,
        function=function,
        label=label,
        base="",
        dtype=dtype,
        class_=draw.choice(list(CaseClass)),
        verdict=Verdict.failed if fails else Verdict.passed,
        checks=checks,
        message=message,
        seconds=draw.random() / 10,
        command=options.command_of(case_id),
        timing=timing,
    )


def failure(draw: random.Random) -> CheckResult:
    """A finding with all that one may have."""
    rows = tuple("".join(draw.choice("0123456789") for _ in range(32)) for _ in range(32))
    place = Difference(
        tensor="out",
        problem="are wrong",
        wrong_count=draw.randrange(1, 4096),
        total=4096,
        index=(3, draw.randrange(64), draw.randrange(64)),
        actual=str(draw.random()),
        expected=str(draw.random()),
        error=draw.random(),
        budget=1e-6,
        patterns=(Pattern(PatternKind.slice, "all in [:, 3:], which has 4032"),),
        inputs={"input": str(draw.random()), "other": str(draw.random())},
        arguments={name: "float32 (8, 64, 64), strides (4096, 64, 1)" for name in ("out", "input", "other")},
        map=ErrorMap((1, 2), (64, 64), rows),
    )
    message = f"out: {place.wrong_count} of 4096 elements are wrong, the worst at {place.index}: {place.actual}, "
    return CheckResult(
        check="values",
        passed=False,
        message=f"{message}expected {place.expected} ± 1e-06",
        ratio=2 * draw.random() * 1e6,
        differences=(place,),
    )


def opened(driver: Any, page: Path, view: str = "") -> float:
    """Milliseconds from the navigation to the first frame with content, of a page that is loaded anew."""
    browsers.open_page(driver, page, view)
    return float(driver.execute_async_script(OPENED))


def thread_time(driver: Any) -> float:
    """Milliseconds of CPU that the page's thread has used since the page was asked for."""
    metrics = driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return 1e3 * next(float(metric["value"]) for metric in metrics if metric["name"] == "TaskDuration")


def in_browser(page: Path) -> Iterator[tuple[str, float]]:
    """What was done, and the milliseconds it took."""
    with browsers.browser() as driver:
        driver.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
        for step, view in (("open", ""), ("open the grid", "#/functions")):
            times = [(opened(driver, page, view), thread_time(driver)) for _ in range(ROUNDS)]
            yield step, median(frame for frame, _ in times)
            yield f"{step}, CPU", median(cpu for _, cpu in times)
        opened(driver, page, "#/cases")
        for step, field, values in (
            ("filter by word", "q", ["diopi", "all 00", "wrong worst", "nothing at all", ""]),
            ("filter by verdict", "verdict", ["failed", "passed", "wrong", "", "failed"]),
            ("order by error / budget", "order", ["ratio", "id", "ratio", "seconds", "ratio"]),
        ):
            yield step, median(float(driver.execute_async_script(FILTER, field, value)) for value in values)
        names = ["diopiAdd", "diopiMm", "diopiSoftmax", "diopiRelu", "diopiSort"]
        addresses = [f"#/function?name={name}" for name in names]
        yield "a function's page", median(float(driver.execute_async_script(GO, address)) for address in addresses)


@click.command()
@click.option("--cases", default=25_000, show_default=True)
@click.option("--failing", default=0.02, show_default=True, help="Which part of them fails.")
@click.option("--output", type=click.Path(path_type=Path), help="Keep the page.")
def main(cases: int, failing: float, output: Path | None) -> None:
    """Print size and times."""
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
        if missing := browsers.missing():
            sys.exit(missing)
        for step, milliseconds in in_browser(page.absolute()):
            print(f"{step}: {milliseconds:.0f} ms")


if __name__ == "__main__":
    main()
