"""`diopi-test compare`: report what became better or worse between two runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from diopi_test.cli.console import console, read_report, write_report
from diopi_test.cli.options import output_option

if TYPE_CHECKING:
    from diopi_test.reporting.comparison import ReportComparison

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
"""The type of an argument that is the path of an existing file."""

MAX_LISTED = 20
"""The number of cases per kind of change that the terminal shows."""


@click.command()
@click.argument("before", type=_FILE)
@click.argument("after", type=_FILE)
@click.option(
    "--factor",
    type=click.FloatRange(min=1),
    default=2.0,
    show_default=True,
    help="Report cases whose share of the budget, and functions whose time, grew by at least this factor.",
)
@output_option("--json", "json_file", "Write the comparison as JSON, see docs/report.md.")
@output_option("--markdown", "markdown_file", "Write a summary in Markdown, for a comment on a change.")
@output_option("--html", "html_file", "Write a self-contained HTML page.")
def compare(
    before: Path,
    after: Path,
    factor: float,
    json_file: Path | None,
    markdown_file: Path | None,
    html_file: Path | None,
) -> None:
    """Compare two runs, BEFORE and AFTER.

    BEFORE and AFTER are logs, or reports that `diopi-test run --json` has written.

    Exit status: 0 no case that counts is broken; 1 a case is broken: it passed before, or was not executed, and fails
    now; 2 wrong usage; 3 a run has errors (for example a damaged log), or a file can't be written.
    """
    from diopi_test.baseline.codec import to_json
    from diopi_test.reporting import html, markdown
    from diopi_test.reporting.comparison import compare as compared

    comparison = compared(read_report(before), read_report(after), factor)
    if json_file is not None:
        write_report(json_file, to_json(comparison))
    if markdown_file is not None:
        write_report(markdown_file, markdown.render_comparison(comparison))
    if html_file is not None:
        write_report(html_file, html.render_comparison(comparison))
    for line in _lines(comparison):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    sys.exit(comparison.exit_status)


def _lines(comparison: ReportComparison) -> Iterator[str]:
    """Yield the lines of the comparison that the terminal shows."""
    from diopi_test.reporting.comparison import OutcomeChange

    yield from (f"note: {warning}" for warning in comparison.warnings)
    for change in OutcomeChange:
        if change is OutcomeChange.gone and comparison.selections_differ:
            continue  # cases that were not selected say nothing about the vendor; the note states their number
        cases = comparison.cases_with(change)
        for case in cases[:MAX_LISTED]:
            was, current = (
                verdict.replace("_", " ") if verdict else "not run" for verdict in (case.before, case.after)
            )
            yield f"{change}: {case.id}: {was} → {current} {case.message}".rstrip()
        yield from _render_omitted_count(len(cases))
    for accuracy in comparison.less_accurate[:MAX_LISTED]:
        yield f"less accurate: {accuracy.id}: {accuracy.before:.3g} → {accuracy.after:.3g} of its budget"
    yield from _render_omitted_count(len(comparison.less_accurate))
    for time in comparison.slower[:MAX_LISTED]:
        yield f"slower: {time.function}: {' → '.join(time.in_words)}"
    yield from _render_omitted_count(len(comparison.slower))
    yield ", ".join(f"{number:,} {name}" for name, number in comparison.counts.items() if number) or "no cases"


def _render_omitted_count(number: int) -> Iterator[str]:
    """Yield a line that states how many entries the list omits."""
    if number > MAX_LISTED:
        yield f"  … and {number - MAX_LISTED:,} more; --json FILE lists them all"
