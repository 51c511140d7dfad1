"""Measure the CPU time that grouping the failures of a large run takes.

    python benchmarks/grouping.py [--cases 25000] [--failing 0.08]

The run is synthetic: cases of all functions, some of which fail in many ways. The goal is at most 5 s of CPU for 25,000
cases with 2,000 failures.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from time import process_time

import click

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from synthetic_runs import log_lines

from diopi_test.results.causes.report import assign_causes, list_causes
from diopi_test.run.recorder import LogContent


@click.command()
@click.option("--cases", default=25_000, show_default=True)
@click.option("--failing", default=0.08, show_default=True, help="The part of the cases that fails.")
def main(cases: int, failing: float) -> None:
    """Print the CPU time of reading the log, of grouping, and of the whole report."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run.log.jsonl")
        path.write_bytes(b"".join(log_lines(cases, failing)))
        start = process_time()
        content = LogContent.read(path)
        print(f"log of {cases:,} cases: read in {process_time() - start:.2f} s of CPU")
        start = process_time()
        records, groups = assign_causes(list(content.cases.values()))
        causes = list_causes(records, groups, lambda record: True)
        failures = sum(cause.cases for cause in causes)
        seconds = process_time() - start
        print(f"{failures:,} failures grouped into {len(causes):,} causes in {seconds:.2f} s of CPU")
        start = process_time()
        content.report()
        print(f"report made in {process_time() - start:.2f} s of CPU")


if __name__ == "__main__":
    main()
