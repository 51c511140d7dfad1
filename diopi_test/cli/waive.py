"""`diopi-test waive`: a first file of waivers for what is wrong in a report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from diopi_test.cli.options import console, output_option, write_report

if TYPE_CHECKING:
    from diopi_test.harness.records import Report


@click.command()
@click.argument("report", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@output_option("--out", "file", "Write to this new file, instead of the terminal.")
def waive(report: Path, file: Path | None) -> None:
    """Write waivers for the cases that did not pass in REPORT, which `diopi-test run --json` has written.

    Cases are grouped by function, verdict and, where all cases of one fail, element type. Their reasons are left empty,
    which `diopi-test run --waivers` refuses: whoever waives says why.
    """
    from diopi_test.harness.waiver_draft import draft

    if file is not None and file.is_file():
        raise click.UsageError(f"{file} exists, and may have reasons that would be lost; name a new file")
    text = draft(_read(report))
    if not text:
        console.print("no case failed: there is nothing to waive")
    elif file is None:
        click.echo(text, nl=False)
    else:
        write_report(file, text)


def _read(path: Path) -> Report:
    """The report in a file; a usage error if there is none."""
    from diopi_test.baseline.codec import RecordError, from_json
    from diopi_test.harness.records import SCHEMA_VERSION, Report

    try:
        content = json.loads(path.read_text("utf-8"))
        found = content.get("schema_version") if isinstance(content, dict) else None
        if found != SCHEMA_VERSION:
            raise RecordError(f"expected a report with schema_version {SCHEMA_VERSION}, found {found}")
        return from_json(Report, content)
    except (OSError, ValueError) as error:
        raise click.UsageError(f"{path} is no report of diopi-test run --json: {error}") from error
