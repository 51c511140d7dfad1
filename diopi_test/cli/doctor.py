"""`diopi-test doctor`: whether everything is there that the suite needs, and what to do where it is not."""

from __future__ import annotations

import sys

import click

from diopi_test.cli.examination import State, examine

STYLES = {State.ok: "green", State.note: "yellow", State.missing: "red"}


@click.command()
@click.option(
    "--vendor",
    "vendors",
    multiple=True,
    help="Examine this vendor (name, module:attribute, or path of a .so) instead of all that are registered. "
    "May be given more than once.",
)
def doctor(vendors: tuple[str, ...]) -> None:
    """Examine what is installed: Python, packages, compiler, runtime library, vendors, baseline, disk and memory.

    Each line says what was found and, where something is to be done, what.

    Exit status: 0 nothing needed is missing, 1 something is, 2 usage.
    """
    is_well = True
    for finding in examine(vendors):
        click.echo(f"{click.style(f'{finding.state:8}', fg=STYLES[finding.state])}{finding.subject}: {finding.told}")
        if finding.advice:
            click.echo(f"{'':8}→ {finding.advice}")
        is_well = is_well and finding.state is not State.missing
    sys.exit(0 if is_well else 1)
