"""How long the fuzzer takes to find defects that are planted in a correct vendor.

    python benchmarks/fuzz_defects.py --seeds 5 --minutes 10
    python benchmarks/fuzz_defects.py --defect wide --seeds 3

Each defect is a vendor of `tests/helpers/narrow.py`. For each seed, the fuzzer searches one function until it finds the
defect. The script prints the median of the calls and of the minutes; a search that finds nothing counts as infinite.
"""

from __future__ import annotations

import math
import os
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import click

from diopi_test.fuzz.findings import FuzzFinding
from diopi_test.fuzz.search import EndSearchError, Search
from diopi_test.fuzz.trial import TrialRunner

HELPERS = Path(__file__).parents[1] / "tests" / "helpers"

DEFECTS = {
    "sharing": ("diopiMul", "`mul(x, x)` is wrong if both inputs are one tensor"),
    "scratch": ("diopiMul", "calls on two streams share a scratch buffer"),
    "wrapping": ("diopiMul", "results with more than 2²⁰ elements are wrong"),
    "wide": ("diopiSoftmax", "softmax along more than 65,536 elements is wrong"),
    "every_500th": ("diopiMul", "every 500th call is wrong"),
}
"""The function and a description by the name of the vendor."""

TIMEOUT = 60.0


def search(name: str, seed: int, minutes: float) -> tuple[float, float]:
    """Return the calls and the minutes until the fuzzer finds a defect; infinities if it does not."""
    start = time.monotonic()
    with TrialRunner(f"narrow:{name}", TIMEOUT) as trials:

        def end(finding: FuzzFinding) -> None:
            """End the search at the first finding."""
            raise EndSearchError

        hunt = Search(trials=trials, seed=seed, until=start + 60 * minutes, report=end)
        function = DEFECTS[name][0]
        try:
            hunt.run([function])
        except EndSearchError:
            return float(hunt.statistics[function].legal), (time.monotonic() - start) / 60
    return math.inf, math.inf


@click.command()
@click.option("--defect", "defects", multiple=True, type=click.Choice(tuple(DEFECTS)), help="By default all of them.")
@click.option("--seeds", default=5, show_default=True, help="Number of seeds, from 1.")
@click.option("--minutes", default=10.0, show_default=True, help="Time limit of a search.")
def main(defects: Sequence[str], seeds: int, minutes: float) -> None:
    """Measure how long the fuzzer takes to find planted defects."""
    sys.path.insert(0, str(HELPERS))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HELPERS), os.environ.get("PYTHONPATH", "")]))
    click.echo("| defect | function | found | calls, median | minutes, median |\n| --- | --- | ---: | ---: | ---: |")
    for name in defects or DEFECTS:
        results = [search(name, seed, minutes) for seed in range(1, seeds + 1)]
        calls, times = (statistics.median(column) for column in zip(*results, strict=True))
        found = sum(math.isfinite(count) for count, _ in results)
        function, text = DEFECTS[name]
        click.echo(f"| {text} | `{function}` | {found} of {seeds} | {calls:,.0f} | {times:.1f} |")


if __name__ == "__main__":
    main()
