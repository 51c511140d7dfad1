"""`diopi-test report`: what a run found, in the form in which others want it."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from diopi_test.cli.options import console, durations_option, output_option, read_report, write_report


@click.command()
@click.argument("source", metavar="LOG", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@durations_option
@output_option("--json", "json_file", "Write the report as JSON, see docs/report.md.")
@output_option("--junit", "junit_file", "Write JUnit XML, which build servers show.")
@output_option("--markdown", "markdown_file", "Write a summary in Markdown, for a comment on a change.")
@output_option("--html", "html_file", "Write a page that has everything and needs no network.")
def report(
    source: Path,
    durations: int,
    json_file: Path | None,
    junit_file: Path | None,
    markdown_file: Path | None,
    html_file: Path | None,
) -> None:
    """Tell what the run of LOG found, which may still go on; a report that `run --json` has written will do, too.

    Without a file to write the summary is shown. Exit status: that of the run; 2 usage, 3 as well if a file can't be
    written.
    """
    from diopi_test.baseline.codec import to_json
    from diopi_test.harness.report import show
    from diopi_test.reporting import html, markdown
    from diopi_test.reporting.junit import junit

    found = read_report(source)
    if json_file is not None:
        write_report(json_file, to_json(found))
    if junit_file is not None:
        write_report(junit_file, junit(found))
    if markdown_file is not None:
        write_report(markdown_file, markdown.of_report(found, durations))
    if html_file is not None:
        write_report(html_file, html.of_report(found))
    if json_file is junit_file is markdown_file is html_file is None:
        show(found, console, durations)
    sys.exit(found.exit_status)
