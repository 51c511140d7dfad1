"""`diopi-test import-config`: translate configurations of the original suite to cases and waivers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from diopi_proto.messages import pluralize
from diopi_test.cli.console import UnusableError, console

if TYPE_CHECKING:
    from rich.status import Status

    from diopi_test.original.folder import ImportSummary

MAX_LISTED = 20
"""The number of lines per heading that the terminal shows."""

PARTS = 10
"""The number of progress lines if the output is not a terminal; with fewer entries there are none."""


@click.command("import-config")
@click.argument(
    "files", metavar="FILE…", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False)
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    default=Path("imported"),
    show_default=True,
    help="Write to this folder: a new one, or the folder of an earlier import of the same files.",
)
@click.option(
    "--entry",
    "pattern",
    metavar="PATTERN",
    default="*",
    help="Translate only the entries whose names match, for example conv*; earlier translations stay.",
)
def import_config(files: tuple[Path, ...], output: Path, pattern: str) -> None:
    """Translate configurations of the original suite.

    FILE… are case configurations and a vendor's device_configs.py. The files are read as data and never executed. Pass
    the folder to `diopi-test run --data`, which computes the expected results when it needs them. The folder also
    contains the waivers, and a list of the entries that could not be translated with the reasons. Each entry is written
    as soon as it is translated: if the command is interrupted, repeat it to continue.

    Exit status: 0 all entries are translated; 1 some entries are not; 2 wrong usage, or a file is not Python source;
    3 the folder can't be written, the command was interrupted, or an internal error occurred.
    """
    from diopi_test.baseline.errors import BaselineError
    from diopi_test.original.folder import import_files
    from diopi_test.original.source import SourceError

    try:
        with console.status("reading") as status:
            imported = import_files(files, output, lambda *progress: _show_progress(status, *progress), pattern)
    except (SourceError, FileExistsError) as error:
        raise click.UsageError(str(error)) from error
    except (BaselineError, OSError) as error:
        raise UnusableError(f"{output} can't be written: {error}") from error
    except KeyboardInterrupt as interrupt:
        raise UnusableError("interrupted; repeat the command to continue with the next entry") from interrupt
    _summarize(imported, output)
    sys.exit(3 if imported.internal else 1 if imported.not_translated else 0)


def _show_progress(status: Status, count: int, total: int, name: str) -> None:
    """Show how many entries are translated: in the last line of a terminal, else in a few separate lines.

    Args:
        status: the last line of the terminal.
        count: the number of entries that are translated.
        total: the number of all entries.
        name: the name of the latest entry.
    """
    from rich.markup import escape

    line = f"{count} of {total} entries: {name}"
    if console.is_terminal:
        status.update(escape(line))
    elif count and total >= PARTS and count % (total // PARTS) == 0:
        _print_line(line)


def _summarize(imported: ImportSummary, output: Path) -> None:
    """Print what the folder contains and which command runs it."""
    from diopi_test.original.folder import NOT_TRANSLATED, WAIVERS

    _print_lines("note", imported.notes)
    _print_lines("not translated", imported.not_translated)
    cases, waived = imported.cases.total(), len(imported.waivers)
    contents = f"{pluralize(cases, 'case')} of {pluralize(len(imported.cases), 'function')}"
    _print_line(f"{contents}, {pluralize(waived, 'waiver')}, {len(imported.not_translated)} not translated")
    if imported.already_translated:
        _print_line(f"{pluralize(imported.already_translated, 'entry', 'entries')} had been translated before")
    if imported.internal:
        errors = pluralize(imported.internal, "internal error")
        _print_line(f"{errors}: please report them with their lines of {output / NOT_TRANSLATED}")
    if imported.not_translated or imported.notes:
        _print_line(f"all of these lines: {output / NOT_TRANSLATED}")
    if cases:
        _print_line(f"diopi-test run --data {output}" + (f" --waivers {output / WAIVERS}" if waived else ""))


def _print_lines(heading: str, lines: list[str]) -> None:
    """Print the first lines, each with the heading, and the number of omitted lines."""
    for line in lines[:MAX_LISTED]:
        _print_line(f"{heading}: {line}")
    if len(lines) > MAX_LISTED:
        _print_line(f"  … and {len(lines) - MAX_LISTED} more")


def _print_line(line: str) -> None:
    """Print a line unchanged: without markup, highlighting or line breaks."""
    console.print(line, highlight=False, markup=False, soft_wrap=True)
