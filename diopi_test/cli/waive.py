"""`diopi-test waive`: write waivers for the cases that failed in a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from diopi_impl.deprecated_options import renamed_option
from diopi_proto.messages import describe_unknown, pluralize
from diopi_test.cli.console import console, read_report, write_report
from diopi_test.cli.options import OutputFile

if TYPE_CHECKING:
    from diopi_impl import Waiver
    from diopi_test.results.records import Report


@click.command()
@click.argument("report", metavar="LOG", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--cause", metavar="ID", help="Write waivers for the cases of this cause, by its ID or the start of it.")
@click.option("--reason", metavar="TEXT", default="", help="What is wrong, for people; requires --cause.")
@renamed_option(
    "-o",
    "--output",
    deprecated_names=["--out"],
    type=OutputFile(),
    metavar="FILE",
    help="Write to this file instead of the terminal. With --cause, the waivers are added to an existing file.",
)
def waive(report: Path, cause: str | None, reason: str, output: Path | None) -> None:
    """Write waivers for the cases that failed in a report.

    LOG is a log, or a report that `diopi-test run --json` has written.

    With `--cause`, each function that has the cause gets a waiver for this cause. The waiver also covers later cases of
    the function with this cause, but no other failures.

    Otherwise, cases are grouped by function, verdict and, if all cases of an element type fail, by element type.
    Waivers without a reason are comments: write a reason for each waiver and remove the comment signs.
    """
    from diopi_test.waivers.draft import draft

    if reason and cause is None:
        raise click.UsageError("--reason requires --cause: a reason describes a single defect")
    content = read_report(report)
    if cause is not None:
        _waive_cause(content, _resolve_cause(content, cause), reason, output)
        return
    if output is not None and output.is_file():
        raise click.UsageError(f"{output} exists and may contain reasons; pass the name of a new file")
    text = draft(content)
    if not text:
        console.print("no case failed: there is nothing to waive")
    elif output is None:
        click.echo(text, nl=False)
    else:
        write_report(output, text)


def _resolve_cause(report: Report, text: str) -> str:
    """Return the ID of the cause that begins with a text; raise click.UsageError unless there is exactly one."""
    causes = list(dict.fromkeys(case.cause for case in report.cases if case.cause))
    if not causes:
        raise click.UsageError(f"--cause: {text!r} is unknown: the report has no causes, because no case failed")
    matching = [cause for cause in causes if text and cause.startswith(text.lower())]
    if not matching:
        raise click.UsageError(f"--cause: {describe_unknown(text, causes, 'causes')}")
    if len(matching) > 1:
        raise click.UsageError(f"--cause: {text!r} is ambiguous: {', '.join(map(repr, matching))} begin with it")
    return matching[0]


def _waive_cause(report: Report, cause: str, reason: str, output: Path | None) -> None:
    """Print the waivers of a cause, or add them to a file."""
    from diopi_test.waivers.draft import ADVICE, draft_cause, head

    exists = output is not None and output.is_file()
    existing = _read_waivers(output) if output is not None and exists else []
    entries = draft_cause(report, cause, reason, existing)
    if not entries:
        console.print(f"every function with cause {cause} has a waiver: there is nothing to add", highlight=False)
        return
    text = "\n".join(entries)
    if output is None:
        click.echo(text, nl=False)
        return
    beginning = output.read_text("utf-8").rstrip("\n") if exists else head(report) + ("" if reason.strip() else ADVICE)
    write_report(output, f"{beginning}\n\n{text}" if exists else f"{beginning}\n{text}")
    kind = "waiver" if reason.strip() else "draft without a reason"
    number = pluralize(len(entries), kind, "" if reason.strip() else "drafts without a reason")
    console.print(f"{number} for cause {cause} added to {output}", highlight=False, markup=False, soft_wrap=True)


def _read_waivers(path: Path) -> list[Waiver]:
    """Return the waivers in a file; raise click.UsageError if the file can't be used."""
    from diopi_test.waivers.rules import Waivers
    from diopi_test.waivers.tables import TableError

    try:
        return [entry.waiver for entry in Waivers.read([path]).entries]
    except TableError as error:
        raise click.UsageError(str(error)) from error
