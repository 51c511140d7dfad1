"""What declaring an arithmetic costs: vendors with the arithmetic of accelerators, with and without their declarations.

    python benchmarks/declared_numerics.py --sample 3 --seed 1
    python benchmarks/declared_numerics.py --vendor tf32 --function diopiMm --function diopiConvolution2d
    python benchmarks/declared_numerics.py --sample 0 --markdown table.md

Each vendor is torch_cpu with another arithmetic (`tests/helpers/declared_vendors`). For each function that its
declaration affects, the script counts

- the cases that fail if the vendor declares nothing, with the diagnoses of the causes, and with the fields of a
  declaration that the fingerprint finds to be used;
- the cases that fail if the vendor declares its arithmetic;
- the mutants of a correct vendor that the cases kill, and how many of them the cases kill with the budgets of the
  declaration.

By default, the script draws a few affected functions for each vendor. `--sample 0` takes all of them. The exit status
is 0 if no declared vendor fails, and if the declared budgets kill at least 95 % of the mutants.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from declaration_costs import MIN_KILLED, Options, candidates, find_undeclared_fields, measure, table
from declared_vendors import EMULATED


@click.command()
@click.option("--vendor", "vendors", multiple=True, type=click.Choice(tuple(EMULATED)), help="By default all of them.")
@click.option("--function", "functions", multiple=True, help="Measure these functions instead of a sample.")
@click.option("--sample", default=3, show_default=True, help="Number of functions for each vendor; 0 for all.")
@click.option("--seed", default=0, show_default=True, help="Seed of the sample.")
@click.option("--level", default="full", show_default=True)
@click.option("--mutants/--no-mutants", default=True, show_default=True, help="Whether mutants are run.")
@click.option("--markdown", type=click.Path(path_type=Path), help="Write the table to this file.")
def main(vendors: Sequence[str], markdown: Path | None, **options: Any) -> None:
    """Measure what declaring an arithmetic costs."""
    rows = []
    for name in vendors or EMULATED:
        vendor, chosen = EMULATED[name], Options(**options)
        rows.append(row := measure(vendor, candidates(vendor, chosen), chosen))
        row.undeclared_fields = find_undeclared_fields(vendor)
        click.echo(f"{' | '.join(row.cells)} | {row.seconds:.0f} s: {', '.join(row.functions)}")
        for line in (*(f"fails declared: {case}" for case in row.declared), *(f"survives: {m}" for m in row.survivors)):
            click.echo(f"  {line}")
    click.echo(table(rows))
    if markdown is not None:
        markdown.write_text(table(rows) + "\n", "utf-8")
    sys.exit(1 if any(row.declared or row.killed < MIN_KILLED for row in rows) else 0)


if __name__ == "__main__":
    main()
