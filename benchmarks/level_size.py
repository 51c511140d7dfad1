"""Measure what generating level large costs on a sample of its cases, and extrapolate to the whole level.

    python benchmarks/level_size.py [--cases 25] [--seed 1]

The script draws cases of each kind, computes them, and writes each of them to a file of its own.
"""

from __future__ import annotations

import re
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from random import Random
from time import process_time

import click

from diopi_proto.interface import lookup, prototypes
from diopi_test.baseline.store import Provenance, baseline_file, write_baseline_file
from diopi_test.cases.case import Case
from diopi_test.cases.selection import select_cases
from diopi_test.oracle.evaluation import compute_baseline_case

LEVEL = "large"
"""The level whose size is measured."""

SWEEP = re.compile(r"-(long|many)-\w+-axis-\d$|-(elements|storage-huge)$")
"""The ends of the labels of the size sweep."""


def kind_of(case: Case) -> str:
    """Return the kind of a case: the kind of the size sweep, few NaNs, or the family's own cases."""
    if match := SWEEP.search(case.label):
        return f"size sweep, {match[1] or match[2]}"
    return "few NaNs" if case.label.endswith("few-nans") else "cases of the families"


def measure(sample: Sequence[tuple[str, Case]], folder: Path) -> tuple[float, float]:
    """Return the mean size in bytes and the mean CPU time in seconds of generating these cases."""
    size, start = 0, process_time()
    for function, case in sample:
        path = baseline_file(folder, function)
        computed = compute_baseline_case(lookup(function), case)
        write_baseline_file(path, function, [computed], Provenance(LEVEL, "", {}), omit_inputs=True)
        size += path.stat().st_size
    return size / len(sample), (process_time() - start) / len(sample)


@click.command(help=__doc__)
@click.option("--cases", "count", default=25, help="Draw this many cases of each kind.")
@click.option("--seed", default=1, help="Select the sample.")
def main(count: int, seed: int) -> None:
    """Print the figures."""
    kinds: dict[str, list[tuple[str, Case]]] = defaultdict(list)
    for function in prototypes():
        for case in select_cases(function, LEVEL):
            kinds[kind_of(case)].append((function, case))
    total_size = total_seconds = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for kind, cases in kinds.items():
            size, seconds = measure(Random(seed).sample(cases, min(count, len(cases))), Path(folder))
            total_size, total_seconds = total_size + size * len(cases), total_seconds + seconds * len(cases)
            print(f"{kind}: {len(cases)} cases, {size / 1000:.0f} KB and {seconds:.2f} s of CPU per case", flush=True)
    print(f"the whole level: {total_size / 1e6:.0f} MB, {total_seconds / 60:.1f} minutes of CPU")


if __name__ == "__main__":
    main()
