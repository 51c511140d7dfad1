"""Measure how many false failures declaring an arithmetic avoids, and how many mutants survive the wider budgets.

    python benchmarks/declared_numerics.py --sample 3 --seed 1
    python benchmarks/declared_numerics.py --vendor tf32 --function diopiMm --function diopiConvolution2d
    python benchmarks/declared_numerics.py --sample 0 --markdown table.md

Each vendor is torch_cpu with the arithmetic of an accelerator (`tests/helpers/declared_vendors`). The script prints a
table with one row per vendor. A row sums over the functions that the declaration affects. It has the numbers of

- the cases that fail if the vendor declares nothing. The row also shows their diagnoses, and the fields that the
  fingerprint finds undeclared.
- the cases that fail if the vendor declares its arithmetic.
- the mutants that the cases kill with IEEE 754 budgets, and how many of these mutants the cases still kill with the
  budgets of the declaration.

By default, the script draws a few affected functions for each vendor. `--sample 0` takes all of them. The exit status
is 0 if, for each vendor, no case fails with the declaration and at least 95 % of those mutants are still killed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from declaration_effects import MIN_KILLED, Options, candidate_functions, find_undeclared_fields, format_table, measure
from declared_vendors import EMULATED


@click.command()
@click.option(
    "--vendor",
    "vendors",
    multiple=True,
    type=click.Choice(tuple(EMULATED)),
    help="Measure this vendor. By default, all vendors.",
)
@click.option("--function", "functions", multiple=True, help="Measure these functions instead of a sample.")
@click.option("--sample", default=3, show_default=True, help="Number of functions for each vendor; 0 for all.")
@click.option("--seed", default=0, show_default=True, help="Seed of the sample.")
@click.option("--level", default="full", show_default=True, help="Level of the cases.")
@click.option("--mutants/--no-mutants", default=True, show_default=True, help="Whether mutants are run.")
@click.option("--markdown", type=click.Path(path_type=Path), help="Write the table to this file.")
def main(vendors: Sequence[str], markdown: Path | None, **options: Any) -> None:
    """Measure the false failures that a declaration avoids and the mutants that survive its budgets, per vendor."""
    rows = []
    for name in vendors or EMULATED:
        vendor, measurement = EMULATED[name], Options(**options)
        rows.append(row := measure(vendor, candidate_functions(vendor, measurement), measurement))
        row.undeclared_fields = find_undeclared_fields(vendor)
        click.echo(f"{' | '.join(row.cells)} | {row.seconds:.0f} s: {', '.join(row.functions)}")
        for line in (
            *(f"fails with the declaration: {case}" for case in row.failures_if_declared),
            *(f"survives: {m}" for m in row.survivors),
        ):
            click.echo(f"  {line}")
    click.echo(format_table(rows))
    if markdown is not None:
        markdown.write_text(format_table(rows) + "\n", "utf-8")
    sys.exit(1 if any(row.failures_if_declared or row.killed_share < MIN_KILLED for row in rows) else 0)


if __name__ == "__main__":
    main()
