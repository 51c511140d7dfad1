"""The static summary of a comparison, for readers whose browser executes no scripts. The scripts replace it."""

from __future__ import annotations

from diopi_test.reporting.comparison import OutcomeChange, ReportComparison
from diopi_test.reporting.html.markup import Markup, breakable, join, static_table, tag
from diopi_test.reporting.html.texts import Texts

MAX_CASES = 200
"""The maximum number of changed cases that the summary lists."""


def render_comparison_summary(comparison: ReportComparison) -> Markup:
    """Return the summary of a comparison: warnings, counts, and some changed cases, beginning with broken cases."""
    texts = Texts("texts.json", "en")
    counts = [tag("li", f"{number:,} {texts(f'change-{name}')}") for name, number in comparison.counts.items()]
    order = list(OutcomeChange)
    rows = [
        (
            tag("span", breakable(case.id)),
            tag("span", texts(f"change-{case.change}")),
            tag("span", case.message),
        )
        for case in sorted(comparison.cases, key=lambda case: order.index(case.change))[:MAX_CASES]
    ]
    columns = [texts(key) for key in ("case", "change", "message")]
    return join(
        [
            tag("h1", " → ".join(run.title for run in (comparison.before, comparison.after))),
            tag("p", texts("no-script"), class_="hint"),
            tag("ul", [tag("li", warning) for warning in comparison.warnings], class_="warnings"),
            tag("ul", counts, class_="plain"),
            static_table(texts("changed-cases"), columns, rows) if rows else None,
        ]
    )
