"""The console of the commands, and the tables and files that they write."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from diopi_proto.messages import pluralize
from diopi_test.run import output
from diopi_test.run.output import Terminal

if TYPE_CHECKING:
    from diopi_test.results.records import Report
    from diopi_test.run.collection import Collected


console = Console(file=cast(IO[str], Terminal()))
"""The console to which all commands print."""

MAX_WIDTH = 10_000
"""The maximum width in columns of a table that is written to a file or a pipe."""

COLUMNS = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
"""The columns of a progress bar: what is done, the bar, "M/N", and the time that has passed."""


class UnusableError(click.ClickException):
    """The baseline can't be used, there is nothing to run, or a report can't be written."""

    exit_code = 3


def print_table(table: Table) -> None:
    """Print a table; outside of a terminal it is as wide as its content, so that nothing is shortened."""
    width = console.width if console.is_terminal else MAX_WIDTH
    Console(file=console.file, width=width, force_terminal=console.is_terminal).print(table)


def write_report(file: Path, content: Any) -> None:
    """Write a report to a file.

    Args:
        file: the file.
        content: a string, or data that is written as JSON.

    Raises:
        UnusableError: if the file can't be written.
    """
    text = content if isinstance(content, str) else json.dumps(content, indent=1) + "\n"
    try:
        output.write_text(file, text)
    except OSError as error:
        raise UnusableError(f"{file} can't be written: {error}") from error


def read_report(path: Path) -> Report:
    """Read a report, or a log that a report is generated from.

    Args:
        path: the file.

    Returns:
        The report.

    Raises:
        click.UsageError: if the file is neither a report nor a log.
    """
    from diopi_test.reporting.reading import ReportError
    from diopi_test.reporting.reading import read_report as read

    try:
        return read(path)
    except ReportError as error:
        raise click.UsageError(str(error)) from error


def list_cases(cases: Sequence[Collected]) -> None:
    """Print the ID of each case on a line, and the number of cases on the last line."""
    for case in cases:
        click.echo(case.id)
    click.echo(pluralize(len(cases), "case"))
