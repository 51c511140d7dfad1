"""Compare MMCV's own operators with the reference and with jax_cpu, on the suite's cases and on random calls.

    PYTHONPATH=PATH/TO/mmcv-2.2.0 python benchmarks/mmcv_comparison.py [PATTERN …] [--sample 20] [--seed 1]
        [--level full --data DIR] [--log FILE]

PATTERN is that of functions' names without "diopi". Of each function that MMCV computes on the CPU (`mmcv_vendor.py`),
the cases of a level and so many drawn calls (docs/fuzzing.md) are run by MMCV, the drawn ones by jax_cpu as well, and
compared with the reference as in a run of the suite. The level is smoke, or one that `gen-data` made, in DIR.
Printed are, for each function, how many calls agree, and the largest error as a part of the budget, and then each call
that does not agree. How MMCV is built, and what was found, is in docs/mmcv_comparison.md.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path

import click
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as from_seed
from hypothesis import strategies as st
from rich.console import Console
from rich.table import Table

from diopi_impl import VendorError
from diopi_test.baseline.level import open_level
from diopi_test.baseline.location import folder_to_write
from diopi_test.cases.selection import select_cases
from diopi_test.execution.verdict import Outcome, Verdict
from diopi_test.fuzz.calls import cases
from diopi_test.fuzz.known import knowledge_of
from diopi_test.fuzz.legal import IllegalError, compute_legal_case
from diopi_test.fuzz.search import deterministic_hypothesis
from diopi_test.fuzz.trial import TrialRunner
from diopi_test.oracle.records import BaselineCase

MMCV, OURS = "mmcv_vendor:vendor", "jax_cpu"

TIMEOUT = 60.0
"""Seconds a call may take."""


def stored_calls(function: str, level: str, data: Path | None) -> list[BaselineCase]:
    """The cases of a level that was made in a folder, or where it is made without one; negative tests are left out."""
    stored = open_level(data / level if data else folder_to_write(level)).open(function)
    return [stored.case(case.label) for case in select_cases(function, level) if case.case_class.is_demanded]


def drawn_calls(function: str, count: int, seed: int) -> list[BaselineCase]:
    """Legal calls that nobody wrote, the same ones for the same seed."""
    calls: list[BaselineCase] = []

    @from_seed(seed)
    @settings(
        max_examples=count,
        phases=(Phase.generate,),
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def draw(data: st.DataObject) -> None:
        try:
            case = data.draw(cases(knowledge_of(function)))
            calls.append(compute_legal_case(knowledge_of(function), replace(case, label=f"{case.label}.{len(calls)}")))
        except IllegalError:
            pass  # it is no call

    with deterministic_hypothesis():
        draw()
    return calls


@dataclass
class Score:
    """How a vendor's calls of one function ended."""

    agreed: int = 0
    differed: int = 0
    absent: int = 0
    largest: float = 0.0
    differences: list[str] = field(default_factory=list)

    def count(self, call: BaselineCase, outcome: Outcome) -> None:
        """Take in a call; an element type that a vendor lacks is no difference."""
        ratios = [finding.ratio for finding in outcome.check_results if finding.ratio is not None]
        if outcome.verdict is Verdict.passed:
            self.agreed += 1
            self.largest = max(self.largest, *ratios, 0.0)
        elif outcome.verdict in (Verdict.unsupported, Verdict.not_implemented):
            self.absent += 1
        else:
            self.differed += 1
            self.differences.append(f"{call.id}: {outcome.verdict}: {outcome.message}")

    @property
    def cells(self) -> Sequence[str]:
        """For the table."""
        return str(self.agreed), str(self.differed), str(self.absent), f"{self.largest:.3f}"


def score(trials: TrialRunner, calls: Sequence[BaselineCase]) -> Score:
    """How these calls of one function end."""
    found = Score()
    for call, outcome in zip(calls, trials.run(calls) if calls else (), strict=True):
        found.count(call, outcome)
    return found


def functions(patterns: Sequence[str]) -> Sequence[str]:
    """The standard functions that MMCV has and a pattern names; SystemExit with the reason if MMCV is not there."""
    try:
        from mmcv_vendor import OPERATORS
    except VendorError as error:
        sys.exit(str(error))
    return [f"diopi{name}" for name in OPERATORS if any(fnmatch(name, pattern) for pattern in patterns or ("*",))]


@click.command(help=__doc__)
@click.argument("patterns", nargs=-1)
@click.option("--sample", default=20, help="Number of random calls per function.")
@click.option("--seed", default=1, help="What they are drawn from.")
@click.option("--level", default="smoke", help="Whose cases.")
@click.option("--data", type=click.Path(path_type=Path, file_okay=False, exists=True), help="Where the level lies.")
@click.option(
    "--log", type=click.Path(path_type=Path, dir_okay=False), help="Write the differences there as they come."
)
def main(patterns: Sequence[str], sample: int, seed: int, level: str, data: Path | None, log: Path | None) -> None:
    """Compare and print."""
    console = Console(width=120)
    table = Table(title="calls: agreed, differed, element type absent; largest error / budget")
    for column in ("function", "cases", "", "", "", "drawn", "", "", "", "jax_cpu", "", "", ""):
        table.add_column(column)
    differences: list[str] = []
    with TrialRunner(MMCV, TIMEOUT) as mmcv, TrialRunner(OURS, TIMEOUT) as ours:
        for function in functions(patterns):
            calls = drawn_calls(function, sample, seed)
            scores = score(mmcv, stored_calls(function, level, data)), score(mmcv, calls), score(ours, calls)
            table.add_row(function.removeprefix("diopi"), *(cell for comparison in scores for cell in comparison.cells))
            for name, comparison in zip(("mmcv", "mmcv", "jax_cpu"), scores, strict=True):
                differences += [f"{name}: {text}" for text in comparison.differences]
            console.print(function, *(" ".join(comparison.cells) for comparison in scores), sep="\t", highlight=False)
            if log:
                log.write_text("\n".join(differences))
    console.print(table)
    console.print(*differences, sep="\n", markup=False, highlight=False)


if __name__ == "__main__":
    main()
