"""`diopi-test doctor`: check the installation and recommend what to do if something is missing."""

from __future__ import annotations

import sys

import click

from diopi_test.cli.examination import State, examine

STYLES = {State.ok: "green", State.note: "yellow", State.missing: "red"}
"""The color in which the state of a check is shown."""


@click.command()
@click.option(
    "--vendor",
    "vendors",
    multiple=True,
    help="Check this vendor (name, module:attribute, or path of a .so) instead of all registered vendors. "
    "Can be repeated.",
)
def doctor(vendors: tuple[str, ...]) -> None:
    """Check the installation and recommend how to repair it.

    The command checks Python, packages, compilers, the runtime library, vendors, the baseline, disk space and memory.
    It prints one line per check and, if you need to do something, a second line that says what.

    Exit status: 0 nothing that is required is missing; 1 something is missing; 2 wrong usage.
    """
    is_complete = True
    for check in examine(vendors):
        click.echo(f"{click.style(f'{check.state:8}', fg=STYLES[check.state])}{check.subject}: {check.details}")
        if check.advice:
            click.echo(f"{'':8}→ {check.advice}")
        is_complete = is_complete and check.state is not State.missing
    sys.exit(0 if is_complete else 1)
