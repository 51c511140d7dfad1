"""The option `--numerics`, which names the declared arithmetic of a vendor."""

from __future__ import annotations

import click

from diopi_impl import NumericsError, find_numerics
from diopi_impl.numerics import shipped_names
from diopi_test.cli.options import complete_names


def _check_numerics(context: click.Context, option: click.Parameter, name: str | None) -> str | None:
    """Return the name; raise click.BadParameter if there is no such declaration, or if it is invalid."""
    if name is not None:
        try:
            find_numerics(name)
        except NumericsError as error:
            raise click.BadParameter(str(error), context, option) from error
    return name


numerics_option = click.option(
    "--numerics",
    metavar="NAME|FILE",
    callback=_check_numerics,
    shell_complete=complete_names(shipped_names, files=True),
    help=f"Evaluate the results for this arithmetic: {', '.join(shipped_names())}, or a TOML file, see "
    "docs/accelerators.md. By default, the arithmetic that the vendor declares.",
)
"""The option `--numerics` of commands that evaluate results."""
