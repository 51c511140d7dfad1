"""Measure how many false failures declaring an arithmetic avoids, and how many mutants survive the wider budgets.

    python benchmarks/declared_numerics.py --sample 3 --seed 1
    python benchmarks/declared_numerics.py --vendor tf32 --function diopiMm --function diopiConvolution2d
    python benchmarks/declared_numerics.py --no-runs --level smoke --data baseline_data --sample 14 --seed 29
    python benchmarks/declared_numerics.py --sample 0 --mutants 0 --markdown table.md

Each vendor is torch_cpu with the arithmetic of an accelerator (`tests/helpers/declared_vendors`). The script prints a
table with one row per vendor. A row sums over the functions that the declaration affects. It has the numbers of

- the cases that fail if the vendor declares nothing. The row also shows how many of the failing functions have a
  diagnosis that names the arithmetic, and the fields that the fingerprint finds undeclared.
- the cases that fail if the vendor declares its arithmetic.
- the drawn mutants that the cases kill with IEEE 754 budgets, and how many of these mutants the cases still kill if
  the mutants compute in the declared arithmetic and have its budgets. If the level is smoke, the survivors also run
  with the cases of level full.

The arithmetic of a vendor affects a function if, in a case of level smoke, the declaration changes a budget or a check,
or an operator returns another result than torch_cpu. By default, the script draws a few affected functions for each
vendor. `--sample 0` takes all of them. With `--no-runs`, only mutants run, and the affected functions are those whose
budgets or checks the declaration changes. If you measure several vendors at once, they share the expected results of
each function. The exit status is 0 if, for each vendor, no case fails with the declaration and at least 95 % of those
mutants are still killed. The diagnoses do not change it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from declaration_effects import MIN_KILLED, Options, VendorEffects, find_undeclared_fields, format_table, measure
from declared_vendors import EMULATED


def report_progress(row: VendorEffects) -> None:
    """Print what a vendor's last function added to its row, with the failures and survivors so far."""
    click.echo(f"{' | '.join(row.cells)} | {row.seconds:.0f} s: {row.functions[-1]}")
    for line in (
        *(f"fails with the declaration: {case}" for case in row.failures_if_declared),
        *(f"survives: {mutant}" for mutant in row.survivors),
        *(f"not named by the diagnosis: {function}" for function in row.unnamed),
    ):
        click.echo(f"  {line}")


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
@click.option("--data", type=click.Path(path_type=Path), help="Read the cases from this folder of baselines.")
@click.option("--runs/--no-runs", default=True, show_default=True, help="Whether the vendors run the cases.")
@click.option("--mutants", default=8, show_default=True, help="Number of mutants for each function; 0 for none.")
@click.option("--kind", "kinds", multiple=True, help="Draw only mutants of these kinds.")
@click.option("--markdown", type=click.Path(path_type=Path), help="Write the table to this file.")
def main(vendors: Sequence[str], markdown: Path | None, **options: Any) -> None:
    """Measure the false failures that a declaration avoids and the mutants that survive its budgets, per vendor."""
    measured = [EMULATED[name] for name in vendors or EMULATED]
    rows = measure(measured, Options(**options), report_progress)
    for vendor, row in zip(measured, rows, strict=True):
        if options["runs"]:
            row.undeclared_fields = find_undeclared_fields(vendor)
        click.echo(f"{row.name}, {row.seconds:.0f} s: {', '.join(row.functions)}")
    click.echo(format_table(rows))
    if markdown is not None:
        markdown.write_text(format_table(rows) + "\n", "utf-8")
    sys.exit(1 if any(row.failures_if_declared or row.killed_share < MIN_KILLED for row in rows) else 0)


if __name__ == "__main__":
    main()
