"""Make the pictures of the documentation from real runs: the page of a report, and a tour of the first commands.

    python benchmarks/pictures.py report docs/report.png
    python benchmarks/pictures.py tour docs/tour.svg

The runs test the example vendor in `examples/numpy_vendor` with three planted defects. The picture of the report needs
Chromium. The tour is an animation without scripts, which browsers show like any picture.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]

COLUMNS, ROWS = 110, 36
"""The size of the terminal in characters."""

SECONDS = 6
"""The time for which the tour shows each command."""

# The source of the defective vendor
DEFECTIVE = '''
"""The example vendor with three defects."""
import numpy as np
from numpy_vendor import HostDevice
from diopi_impl import Vendor

vendor = Vendor("my_vendor", "0.1", HostDevice().functions())


@vendor.implements("diopiSqrt")
def sqrt(input):
    return np.sqrt(input.astype(np.float32))


@vendor.implements("diopiSoftmax")
def softmax(input, dim):
    exponential = np.exp(input)
    return exponential / exponential.sum(dim, keepdims=True)


@vendor.implements("diopiMaximum")
def maximum(input, other):
    return np.fmax(input, other)
'''

REPORT = (
    "diopi-test run --vendor my_vendor:vendor --function diopiSqrt --function diopiSoftmax --function diopiMaximum "
    "-n 1 --log run.log.jsonl",
    "diopi-test report run.log.jsonl --html report.html",
)
"""The commands that make the report of the picture."""

TOUR = (
    "diopi-test doctor",
    "diopi-test describe diopiSoftmax",
    "diopi-test run --vendor my_vendor:vendor --function diopiSoftmax -n 1",
    "diopi-test show 'diopiSoftmax[float32-far-apart]'",
)
"""The commands of the tour, in order."""

STYLE = """
text { font: 13px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #d7e0e1; white-space: pre }
.command { fill: #7fd1c7; font-weight: bold }
g { visibility: hidden; animation: show %(whole)ss step-end infinite }
@keyframes show { 0%% { visibility: visible } %(share).4f%% { visibility: hidden } }
"""
"""The style of the tour: each screen is visible for its share of the animation."""


@contextmanager
def folder_of_vendor() -> Iterator[Path]:
    """Return a context manager with a folder that contains the defective vendor, and in which the commands run."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "my_vendor.py").write_text(DEFECTIVE)
        yield folder


def run(command: str, folder: Path) -> str:
    """Run a command of `diopi-test` in a folder, and return what it prints, without the paths of this machine."""
    words = [sys.executable, "-m", "diopi_test", *shlex.split(command)[1:]]
    paths = [str(folder), str(ROOT / "examples" / "numpy_vendor"), str(ROOT)]
    variables = {"PYTHONPATH": ":".join(paths), "COLUMNS": str(COLUMNS), "XDG_STATE_HOME": str(folder)}
    process = subprocess.run(
        words, cwd=folder, env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )
    text = process.stdout
    for path, name in (
        (str(folder), "~/my_vendor"),
        (sys.prefix, "~/venv"),
        (str(ROOT), "~/diopi"),
        (str(Path.home()), "~"),
    ):
        text = text.replace(path, name)
    return text


def picture_of_report(output: Path) -> None:
    """Write a picture of the upper part of the report's page."""
    with folder_of_vendor() as folder:
        for command in REPORT:
            print(run(command, folder))
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=5000"]
        page = (folder / "report.html").resolve(strict=True)
        picture = f"--screenshot={output.resolve()}"
        subprocess.run(["chromium", *flags, "--window-size=1200,900", picture, page.as_uri()], check=True)


def tour(output: Path) -> None:
    """Write the animation of the tour."""
    with folder_of_vendor() as folder:
        screens = [(command, run(command, folder)) for command in TOUR]
    output.write_text("\n".join(animation(screens)) + "\n", "utf-8")


def animation(screens: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield the lines of an SVG that shows a command and its output for some seconds, then the next one."""
    width, height = COLUMNS * 8 + 40, ROWS * 17 + 40
    style = STYLE % {"whole": SECONDS * len(screens), "share": 100 / len(screens)}
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">'
    yield f"<title>The first commands of a vendor</title><style>{style}</style>"
    yield f'<rect width="{width}" height="{height}" rx="8" fill="#10252a"/>'
    for number, (command, text) in enumerate(screens):
        yield f'<g style="animation-delay: {number * SECONDS - SECONDS * len(screens)}s">'
        yield f'<text class="command" x="20" y="34">$ {escape(command)}</text>'
        for row, line in enumerate(shorten_output(text.splitlines()), 1):
            yield f'<text x="20" y="{34 + 17 * row}">{escape(line)}</text>'
        yield "</g>"
    yield "</svg>"


def shorten_output(lines: Sequence[str]) -> list[str]:
    """Return the lines that fit on the screen: the first and the last ones, with an ellipsis between them."""
    shortened = [line if len(line) <= COLUMNS else line[: COLUMNS - 1] + "…" for line in lines]
    if len(shortened) < ROWS:
        return shortened
    return [*shortened[: ROWS // 2], "…", *shortened[-(ROWS // 2 - 2) :]]


if __name__ == "__main__":
    {"report": picture_of_report, "tour": tour}[sys.argv[1]](Path(sys.argv[2]))
