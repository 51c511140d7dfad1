"""Measure how long the fuzzer takes to find defects that are planted in a correct vendor.

    python benchmarks/fuzz_defects.py --seeds 5 --calls 5000
    python benchmarks/fuzz_defects.py --defect wide --seeds 3

Each defect is a vendor of `tests/helpers/narrow.py`. For each seed, the fuzzer searches one function until it finds the
defect. The script prints the median of the calls and of the CPU time; a search that finds nothing counts as infinite.
The calls of a search depend only on its seed, not on the machine.
"""

from __future__ import annotations

import math
import os
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from diopi_test.fuzz.findings import FuzzFinding
from diopi_test.fuzz.search import EndSearchError, Search
from diopi_test.fuzz.trial import TrialRunner

HELPERS = Path(__file__).parents[1] / "tests" / "helpers"
"""The folder of the faulty vendors."""

DEFECTS = {
    "sharing": ("diopiMul", "`mul(x, x)` is wrong if both inputs are one tensor"),
    "scratch": ("diopiMul", "calls on two streams share a scratch buffer"),
    "wrapping": ("diopiMul", "results with more than 2²⁰ elements are wrong"),
    "wide": ("diopiSoftmax", "softmax along more than 65,536 elements is wrong"),
    "every_500th": ("diopiMul", "every 500th call is wrong"),
}
"""The function and a description by the name of the vendor."""

TIMEOUT = 60.0
"""The time limit of a call in seconds."""


class CallLimitError(BaseException):
    """Ends a search after the maximum number of calls. It is no Exception, because Hypothesis would catch that."""


def search(name: str, seed: int, limit: int) -> tuple[float, float]:
    """Return the calls and the seconds of CPU time until the fuzzer finds a defect; infinities if it does not."""
    function, start = DEFECTS[name][0], _cpu_seconds()
    try:
        with TrialRunner(f"narrow:{name}", TIMEOUT) as trials:

            def end(finding: FuzzFinding) -> None:
                """End the search at the first finding."""
                raise EndSearchError

            def check() -> None:
                """End the search after too many calls."""
                if hunt.statistics[function].legal >= limit:
                    raise CallLimitError

            hunt = Search(trials=trials, seed=seed, deadline=math.inf, report=end, check=check)
            hunt.run([function])
    except CallLimitError:
        return math.inf, math.inf
    except EndSearchError:
        pass
    return float(hunt.statistics[function].legal), _cpu_seconds() - start


def _cpu_seconds() -> float:
    """Return the CPU time of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


@click.command()
@click.option("--defect", "defects", multiple=True, type=click.Choice(tuple(DEFECTS)), help="By default all of them.")
@click.option("--seeds", default=5, show_default=True, help="Number of seeds, from 1.")
@click.option("--calls", default=2000, show_default=True, help="Maximum number of calls of a search.")
def main(defects: Sequence[str], seeds: int, calls: int) -> None:
    """Measure how long the fuzzer takes to find planted defects."""
    sys.path.insert(0, str(HELPERS))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HELPERS), os.environ.get("PYTHONPATH", "")]))
    click.echo(
        "| defect | function | found | calls, median | CPU seconds, median |\n| --- | --- | ---: | ---: | ---: |"
    )
    for name in defects or DEFECTS:
        results = [search(name, seed, calls) for seed in range(1, seeds + 1)]
        counts, seconds = zip(*results, strict=True)
        found_count = sum(map(math.isfinite, counts))
        function, text = DEFECTS[name]
        medians = f"{statistics.median(counts):,.0f} | {statistics.median(seconds):.0f}"
        click.echo(f"| {text} | `{function}` | {found_count} of {seeds} | {medians} |")


if __name__ == "__main__":
    main()
