"""Compare MMCV's operators with the reference and with jax_cpu, on the suite's cases and on random calls.

    PYTHONPATH=PATH/TO/mmcv-2.2.0 python benchmarks/mmcv_comparison.py [PATTERN …] [--sample 20] [--seed 1]
        [--level full --data DIR] [--log FILE]

PATTERN matches names of functions without "diopi". For each function that MMCV computes on the CPU (`mmcv_vendor.py`),
MMCV runs the cases of a level and `--sample` random calls (docs/fuzzing.md). `jax_cpu` runs the random calls as well.
The results are compared with the reference as in a run of the suite. The level is smoke, or a level that `gen-data`
generated in DIR.

For each function, the script prints how many calls agree and the largest error / budget. Then it lists the calls that
do not agree. docs/mmcv_comparison.md describes how to build MMCV, and the findings.
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
from diopi_test.fuzz.knowledge import knowledge_of
from diopi_test.fuzz.legal import IllegalError, compute_legal_case
from diopi_test.fuzz.search import deterministic_hypothesis
from diopi_test.fuzz.trial import TrialRunner
from diopi_test.oracle.records import BaselineCase

MMCV_VENDOR, JAX_VENDOR = "mmcv_vendor:vendor", "jax_cpu"
"""The names of the vendors that are compared with the reference."""

TIMEOUT = 60.0
"""The maximum number of seconds for a call."""


def stored_calls(function: str, level: str, data: Path | None) -> list[BaselineCase]:
    """Return the cases of a level that conformance demands, without negative tests; `data` contains the level."""
    stored = open_level(data / level if data else folder_to_write(level)).open(function)
    return [stored.case(case.label) for case in select_cases(function, level) if case.case_class.is_demanded]


def fuzzed_calls(function: str, count: int, seed: int) -> list[BaselineCase]:
    """Return up to `count` random valid calls of a function, which the seed determines."""
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
            pass  # not a valid call

    with deterministic_hypothesis():
        draw()
    return calls


@dataclass
class Score:
    """The outcomes of a vendor's calls of one function.

    Attributes:
        agreement_count: the number of calls whose results agree with the reference.
        differed: the number of calls that fail.
        unsupported: the number of calls that the vendor does not support.
        largest: the largest error / budget of the calls that agree.
        differences: a line for each call that fails.
    """

    agreement_count: int = 0
    differed: int = 0
    unsupported: int = 0
    largest: float = 0.0
    differences: list[str] = field(default_factory=list)

    def count(self, call: BaselineCase, outcome: Outcome) -> None:
        """Add the outcome of a call. An element type that the vendor lacks is not a difference."""
        ratios = [finding.ratio for finding in outcome.check_results if finding.ratio is not None]
        if outcome.verdict is Verdict.passed:
            self.agreement_count += 1
            self.largest = max(self.largest, *ratios, 0.0)
        elif outcome.verdict in (Verdict.unsupported, Verdict.not_implemented):
            self.unsupported += 1
        else:
            self.differed += 1
            self.differences.append(f"{call.id}: {outcome.verdict}: {outcome.message}")

    @property
    def cells(self) -> Sequence[str]:
        """The cells of the table."""
        return str(self.agreement_count), str(self.differed), str(self.unsupported), f"{self.largest:.3f}"


def score(trials: TrialRunner, calls: Sequence[BaselineCase]) -> Score:
    """Run calls of one function and return their outcomes."""
    total = Score()
    for call, outcome in zip(calls, trials.run(calls) if calls else (), strict=True):
        total.count(call, outcome)
    return total


def functions(patterns: Sequence[str]) -> Sequence[str]:
    """Return the functions of MMCV whose names match a pattern; exit with the reason if MMCV is not installed."""
    try:
        from mmcv_vendor import OPERATORS
    except VendorError as error:
        sys.exit(str(error))
    return [f"diopi{name}" for name in OPERATORS if any(fnmatch(name, pattern) for pattern in patterns or ("*",))]


@click.command(help=__doc__)
@click.argument("patterns", nargs=-1)
@click.option("--sample", default=20, help="Number of random calls per function.")
@click.option("--seed", default=1, help="The seed of the random calls.")
@click.option("--level", default="smoke", help="The level of the cases.")
@click.option(
    "--data", type=click.Path(path_type=Path, file_okay=False, exists=True), help="The folder of the baselines."
)
@click.option(
    "--log", type=click.Path(path_type=Path, dir_okay=False), help="Write each difference to this file at once."
)
def main(patterns: Sequence[str], sample: int, seed: int, level: str, data: Path | None, log: Path | None) -> None:
    """Run the calls and print the comparison."""
    console = Console(width=120)
    table = Table(title="calls: agreed, differed, element type absent; largest error / budget")
    for column in ("function", "cases", "", "", "", "fuzzed", "", "", "", "jax_cpu", "", "", ""):
        table.add_column(column)
    differences: list[str] = []
    with TrialRunner(MMCV_VENDOR, TIMEOUT) as mmcv, TrialRunner(JAX_VENDOR, TIMEOUT) as jax_cpu:
        for function in functions(patterns):
            calls = fuzzed_calls(function, sample, seed)
            scores = score(mmcv, stored_calls(function, level, data)), score(mmcv, calls), score(jax_cpu, calls)
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
