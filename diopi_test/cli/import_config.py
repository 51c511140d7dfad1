"""`diopi-test import-config`: the original suite's configurations made cases and waivers of this one."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from diopi_test.cli.options import Unusable, console

SHOWN = 20
"""Lines of what could not be translated that are shown."""


@click.command("import-config")
@click.argument(
    "files", metavar="FILE…", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, dir_okay=False)
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("imported"),
    show_default=True,
    help="Write into this new folder.",
)
def import_config(files: tuple[Path, ...], output: Path) -> None:
    """Translate FILE…, case configurations of the interface's original suite and a vendor's device_configs.py.

    They are read as data, never executed. The folder is for `diopi-test run --data`; it has the waivers, too, and a
    list of what could not be translated and why.

    Exit status: 0 all of it is translated, 1 some is not, 2 usage, or a file is no Python source, 3 the folder can't be
    written.
    """
    from rich.markup import escape

    from diopi_test.baseline.errors import BaselineError
    from diopi_test.original.folder import LACKING, WAIVERS, check_folder, import_files, write
    from diopi_test.original.source import SourceError

    try:
        check_folder(output)
        with console.status("reading") as status:
            imported = import_files(files, lambda name: status.update(escape(name)))
    except (SourceError, FileExistsError) as error:
        raise click.UsageError(str(error)) from error
    try:
        write(output, imported)
    except (BaselineError, OSError) as error:
        raise Unusable(f"{output} can't be written: {error}") from error
    _tell(imported.lacking)
    cases, waived = sum(map(len, imported.cases.values())), len(imported.waivers)
    _say(f"{cases} cases of {len(imported.cases)} functions, {waived} waivers, {len(imported.lacking)} not translated")
    if imported.lacking:
        _say(f"what is not translated: {output / LACKING}")
    if cases:
        _say(f"diopi-test run --data {output}" + (f" --waivers {output / WAIVERS}" if waived else ""))
    sys.exit(1 if imported.lacking else 0)


def _tell(lacking: list[str]) -> None:
    for line in lacking[:SHOWN]:
        _say(f"not translated: {line}")
    if len(lacking) > SHOWN:
        _say(f"  … and {len(lacking) - SHOWN} more")


def _say(line: str) -> None:
    console.print(line, highlight=False, markup=False, soft_wrap=True)
