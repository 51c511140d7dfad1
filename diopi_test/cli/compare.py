"""`diopi-test compare`: what became better or worse from one run to another."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from diopi_test.cli.options import console, output_option, read_report, write_report

if TYPE_CHECKING:
    from diopi_test.reporting.comparison import ReportComparison

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)

TOLD = 20
"""Cases of a kind that are shown."""


@click.command()
@click.argument("before", type=_FILE)
@click.argument("after", type=_FILE)
@click.option(
    "--factor",
    type=click.FloatRange(min=1),
    default=2.0,
    show_default=True,
    help="Tell of cases that use so many times as much of their budget, and functions that take so many times as long.",
)
@output_option("--json", "json_file", "Write the comparison as JSON, see docs/report.md.")
@output_option("--markdown", "markdown_file", "Write it as Markdown, for a comment on a change.")
@output_option("--html", "html_file", "Write it as a page that needs no network.")
def compare(
    before: Path,
    after: Path,
    factor: float,
    json_file: Path | None,
    markdown_file: Path | None,
    html_file: Path | None,
) -> None:
    """Compare the runs BEFORE and AFTER, each a log or a report that `diopi-test run --json` has written.

    Exit status: 1 if a case that counts is broken (it passed and does not any more, or was not executed and goes wrong
    now), else 0; 2 usage, 3 a run has errors (its log is damaged, say), or a file can't be written.
    """
    from diopi_test.baseline.codec import to_json
    from diopi_test.reporting import html, markdown
    from diopi_test.reporting.comparison import compare as compared

    comparison = compared(read_report(before), read_report(after), factor)
    if json_file is not None:
        write_report(json_file, to_json(comparison))
    if markdown_file is not None:
        write_report(markdown_file, markdown.of_comparison(comparison))
    if html_file is not None:
        write_report(html_file, html.of_comparison(comparison))
    for line in _lines(comparison):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    sys.exit(comparison.exit_status)


def _lines(comparison: ReportComparison) -> Iterator[str]:
    """The comparison for people."""
    from diopi_test.reporting.comparison import Change

    for change in Change:
        cases = comparison.of(change)
        for case in cases[:TOLD]:
            was, now = (verdict.replace("_", " ") if verdict else "not run" for verdict in (case.before, case.after))
            yield f"{change}: {case.id}: {was} → {now} {case.message}".rstrip()
        yield from _more(len(cases))
    for accuracy in comparison.less_accurate[:TOLD]:
        yield f"less accurate: {accuracy.id}: {accuracy.before:.3g} → {accuracy.after:.3g} of its budget"
    yield from _more(len(comparison.less_accurate))
    for time in comparison.slower[:TOLD]:
        yield f"slower: {time.function}: {' → '.join(time.in_words)}"
    yield from _more(len(comparison.slower))
    yield from (f"note: {warning}" for warning in comparison.warnings)
    yield ", ".join(f"{number:,} {name}" for name, number in comparison.counts.items() if number) or "no cases"


def _more(number: int) -> Iterator[str]:
    if number > TOLD:
        yield f"  … and {number - TOLD:,} more; --json FILE lists them all"
