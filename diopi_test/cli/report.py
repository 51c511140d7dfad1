"""`diopi-test report`: generate reports from a run log."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from diopi_test.cli.console import console, read_report, write_report
from diopi_test.cli.options import durations_option, output_option
from diopi_test.cli.severity import fail_on_option
from diopi_test.results.causes.severity import Severity


@click.command()
@click.argument("source", metavar="LOG", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@durations_option
@fail_on_option(default=None)
@output_option("--json", "json_file", "Write the report as JSON, see docs/report.md.")
@output_option("--junit", "junit_file", "Write JUnit XML for a build server.")
@output_option("--markdown", "markdown_file", "Write a summary in Markdown, for a comment on a change.")
@output_option("--html", "html_file", "Write a self-contained HTML page.")
@click.option(
    "--language",
    type=click.Choice(["en", "zh"]),
    default="en",
    show_default=True,
    help="Language of the part of the page that needs no JavaScript.",
)
@click.option("--docs", default="", metavar="URL", help="Link the page to the documentation's site at this address.")
def report(
    source: Path,
    durations: int,
    fail_on: Severity | None,
    json_file: Path | None,
    junit_file: Path | None,
    markdown_file: Path | None,
    html_file: Path | None,
    language: str,
    docs: str,
) -> None:
    """Generate reports from a run log.

    The run may still be in progress. LOG may also be a report that `diopi-test run --json` has written. If you request
    no file, the command prints a summary.

    Exit status: that of the run; 2 wrong usage; 3 also if a file can't be written.
    """
    from diopi_test.baseline.codec import to_json
    from diopi_test.reporting import html, markdown
    from diopi_test.reporting.junit import junit
    from diopi_test.reporting.reading import with_fail_on
    from diopi_test.results.report import show

    content = read_report(source)
    if fail_on is not None:
        content = with_fail_on(content, fail_on)
    if json_file is not None:
        write_report(json_file, to_json(content))
    if junit_file is not None:
        write_report(junit_file, junit(content))
    if markdown_file is not None:
        write_report(markdown_file, markdown.render_report(content, durations))
    if html_file is not None:
        write_report(html_file, html.render_report(content, language, docs))
    if json_file is junit_file is markdown_file is html_file is None:
        show(content, console, durations)
    sys.exit(content.exit_status)
