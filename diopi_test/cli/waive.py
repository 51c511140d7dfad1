"""`diopi-test waive`: a first file of waivers for what is wrong in a report."""

from __future__ import annotations

from pathlib import Path

import click

from diopi_test.cli.options import console, output_option, read_report, write_report


@click.command()
@click.argument("report", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@output_option("--out", "file", "Write to this new file, instead of the terminal.")
def waive(report: Path, file: Path | None) -> None:
    """Write waivers for the cases that did not pass in REPORT, which `diopi-test run --json` has written,
    or a log.

    Cases are grouped by function, verdict and, where all cases of one fail, element type. Their reasons are left empty,
    which `diopi-test run --waivers` refuses: whoever waives says why.
    """
    from diopi_test.harness.waiver_draft import draft

    if file is not None and file.is_file():
        raise click.UsageError(f"{file} exists, and may have reasons that would be lost; name a new file")
    text = draft(read_report(report))
    if not text:
        console.print("no case failed: there is nothing to waive")
    elif file is None:
        click.echo(text, nl=False)
    else:
        write_report(file, text)
