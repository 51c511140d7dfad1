"""`diopi-test import-config`: the original suite's configurations made cases and waivers of this one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from diopi_test.cli.options import Unusable, console

if TYPE_CHECKING:
    from rich.status import Status

    from diopi_test.original.folder import Imported

SHOWN = 20
"""Lines of what could not be translated that are shown."""

PARTS = 10
"""Progress lines that are printed where the output is not a terminal; none for fewer entries."""


@click.command("import-config")
@click.argument(
    "files", metavar="FILE…", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False)
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("imported"),
    show_default=True,
    help="Write into this folder: a new one, or one from an earlier import of the same files.",
)
@click.option(
    "--entry",
    "pattern",
    metavar="PATTERN",
    default="*",
    help="Translate only the entries whose names match, as conv* does; those translated before stay.",
)
def import_config(files: tuple[Path, ...], output: Path, pattern: str) -> None:
    """Translate FILE…, case configurations of the interface's original suite and a vendor's device_configs.py.

    The files are read as data, never executed. The folder is for `diopi-test run --data`, which computes the expected
    results when it needs them. The folder has the waivers, too, and a list of what could not be translated and why.
    Each entry is written when it is translated: if the command is interrupted, repeat it, and it goes on there.

    Exit status: 0 all of it is translated, 1 some is not, 2 usage, or a file is no Python source, 3 the folder can't be
    written, the command was interrupted, or an internal error occurred.
    """
    from diopi_test.baseline.errors import BaselineError
    from diopi_test.original.folder import import_files
    from diopi_test.original.source import SourceError

    try:
        with console.status("reading") as status:
            imported = import_files(files, output, lambda *done: _show_progress(status, *done), pattern)
    except (SourceError, FileExistsError) as error:
        raise click.UsageError(str(error)) from error
    except (BaselineError, OSError) as error:
        raise Unusable(f"{output} can't be written: {error}") from error
    except KeyboardInterrupt as interrupt:
        raise Unusable("interrupted; repeat the command to go on with the next entry") from interrupt
    _summarize(imported, output)
    sys.exit(3 if imported.internal else 1 if imported.lacking else 0)


def _show_progress(status: Status, done: int, total: int, name: str) -> None:
    """Show how many entries are done: in the last line of a terminal, or in a line now and then."""
    from rich.markup import escape

    line = f"{done} of {total} entries: {name}"
    if console.is_terminal:
        status.update(escape(line))
    elif done and total >= PARTS and done % (total // PARTS) == 0:
        _say(line)


def _summarize(imported: Imported, output: Path) -> None:
    """Say what the folder has, and what to do with it."""
    from diopi_test.original.folder import LACKING, WAIVERS

    _tell("note", imported.notes)
    _tell("not translated", imported.lacking)
    cases, waived = imported.cases.total(), len(imported.waivers)
    _say(f"{cases} cases of {len(imported.cases)} functions, {waived} waivers, {len(imported.lacking)} not translated")
    if imported.kept:
        _say(f"{imported.kept} entries had been translated before")
    if imported.internal:
        _say(f"{imported.internal} internal errors: please report them with their lines of {output / LACKING}")
    if imported.lacking or imported.notes:
        _say(f"all of these lines: {output / LACKING}")
    if cases:
        _say(f"diopi-test run --data {output}" + (f" --waivers {output / WAIVERS}" if waived else ""))


def _tell(heading: str, lines: list[str]) -> None:
    for line in lines[:SHOWN]:
        _say(f"{heading}: {line}")
    if len(lines) > SHOWN:
        _say(f"  … and {len(lines) - SHOWN} more")


def _say(line: str) -> None:
    console.print(line, highlight=False, markup=False, soft_wrap=True)
