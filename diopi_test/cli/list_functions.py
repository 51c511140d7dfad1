"""`diopi-test list`: list the standard functions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click
from rich.table import Table

from diopi_test.cases.selection import INDEPENDENT_LEVELS
from diopi_test.cli.console import print_table
from diopi_test.cli.selection_options import selection_options

if TYPE_CHECKING:
    from diopi_test.run.selection import Selection


@click.command("list")
@selection_options("functions", "families", "dtypes")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON array.")
def list_functions(selection: Selection, as_json: bool) -> None:
    """List the standard functions.

    For each function, the table shows its header, its family, whether it has a reference, its number of cases, and the
    vendors that implement it. With --dtype, only functions that accept tensors of this element type are listed.
    """
    from diopi_test.quality.inventory import list_functions

    rows = list_functions(selection.wants_prototype)
    if as_json:
        click.echo(json.dumps(rows, indent=1))
        return
    table = Table()
    for title in ("function", "header", "family", "reference", *INDEPENDENT_LEVELS, "vendors"):
        table.add_column(title, overflow="fold")  # a narrow terminal wraps names instead of shortening them
    for row in rows:
        vendors = ", ".join(name for name, has in row["vendors"].items() if has)
        table.add_row(
            row["function"],
            row["header"],
            row["family"],
            "yes" if row["reference"] else "no",
            *(str(row["cases"][level]) for level in INDEPENDENT_LEVELS),
            vendors,
        )
    print_table(table)
