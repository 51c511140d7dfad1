"""`diopi-test waive`: draft waivers for the cases that failed in a report."""

from __future__ import annotations

from pathlib import Path

import click

from diopi_impl.deprecated_options import renamed_option
from diopi_test.cli.options import OutputFile, console, read_report, write_report


@click.command()
@click.argument("report", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@renamed_option(
    "-o",
    "--output",
    deprecated_names=["--out"],
    type=OutputFile(),
    metavar="FILE",
    help="Write the waivers to this new file instead of the terminal.",
)
def waive(report: Path, output: Path | None) -> None:
    """Draft waivers for the cases that failed in a report.

    REPORT is a log, or a report that `diopi-test run --json` has written. Cases are grouped by function, verdict and,
    if all cases of an element type fail, by element type. The reasons are empty, and `diopi-test run --waivers` rejects
    empty reasons: write a reason for each waiver.
    """
    from diopi_test.waivers.draft import draft

    if output is not None and output.is_file():
        raise click.UsageError(f"{output} exists and may contain reasons; pass the name of a new file")
    text = draft(read_report(report))
    if not text:
        console.print("no case failed: there is nothing to waive")
    elif output is None:
        click.echo(text, nl=False)
    else:
        write_report(output, text)
