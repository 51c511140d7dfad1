"""HTML pages of a report or a comparison, each in one file that needs no network and no other file.

A page contains its data as JSON (module `columns`). The scripts in this folder display the data in English or Chinese,
with the texts in `texts.json`. They create elements and texts, and never interpret data as markup. The content security
policy of the page forbids other scripts, and loading anything.
"""

from __future__ import annotations

from diopi_test.baseline.codec import to_json
from diopi_test.reporting.comparison import ReportComparison
from diopi_test.reporting.html.columns import build_columns
from diopi_test.reporting.html.comparison_summary import render_comparison_summary
from diopi_test.reporting.html.page import page
from diopi_test.reporting.html.summary import render_summary
from diopi_test.results.records import Report

OF_REPORT = ("page.js", "data.js", "overview.js", "functions.js", "cases.js", "run.js")
"""The script files of the page of a report, in the order in which they run."""

OF_COMPARISON = ("page.js", "comparison.js")
"""The script files of the page of a comparison, in the order in which they run."""


def render_report(report: Report, language: str = "en", docs: str = "") -> str:
    """Return the HTML page of a report.

    Args:
        report: The report.
        language: The language of the static summary, `en` or `zh`. Readers can switch the scripts to either language.
        docs: The URL of the documentation's site, to which definitions of functions link; empty for no links.

    Returns:
        The content of the HTML file.
    """
    baseline = f"{report.baseline.level} {report.baseline.digest[:12]}".strip()
    origin = f"{baseline}, DIOPI {report.proto_version}"
    return page(
        report.title,
        {
            "made": origin,
            "docs": docs,
            "qualified": bool(report.numerics.qualifier),
            **build_columns(report),
        },
        OF_REPORT,
        render_summary(report, language, docs),
        language,
    )


def render_comparison(comparison: ReportComparison) -> str:
    """Return the HTML page of a comparison of two runs, with the static summary in English."""
    names = [run.title for run in (comparison.before, comparison.after)]
    data = {
        "made": comparison.after.baseline.level,
        "comparison": to_json(comparison),
        "counts": comparison.counts,
        "warnings": list(comparison.warnings),
    }
    return page(" → ".join(names), data, OF_COMPARISON, render_comparison_summary(comparison))
