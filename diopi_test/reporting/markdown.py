"""Reports and comparisons in Markdown, short enough for a comment on a pull request.

Most functions yield lines without line breaks. Lists are limited to `MAX_LISTED` entries, and details are collapsed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from diopi_proto.messages import pluralize
from diopi_test.cases.case import CaseClass
from diopi_test.execution.verdict import Verdict
from diopi_test.reporting.comparison import ChangedCase, OutcomeChange, ReportComparison
from diopi_test.results.causes.cause import Cause
from diopi_test.results.causes.text import headline, minor_line, sentence_of
from diopi_test.results.details import details
from diopi_test.results.durations import compare_with_copies, group_by_function, slowest
from diopi_test.results.operators import describe_overrides, list_operators
from diopi_test.results.overview import describe_conformance, describe_run
from diopi_test.results.records import CaseRecord, Counts, Report

T = TypeVar("T")

MAX_LISTED = 20
"""The maximum number of entries in a list of cases, causes or functions.

The lists of cases and of causes end with the number of omitted entries.
"""

LONGEST = 400
"""The maximum number of characters of a text in inline code, such as a message; longer texts are truncated."""


def render_report(report: Report, durations: int = 0) -> str:
    """Return a summary of a report in Markdown: the result, the counts by class, the causes and the failed cases.

    Args:
        report: The report.
        durations: The number of slowest functions and cases to list; 0 for none.
    """
    return "".join(f"{line}\n" for line in _report_lines(report, durations))


def render_comparison(comparison: ReportComparison) -> str:
    """Return a comparison of two runs in Markdown: warnings, counts and changes, with broken cases first."""
    return "".join(f"{line}\n" for line in _comparison_lines(comparison))


def _report_lines(report: Report, durations: int) -> Iterator[str]:
    """Yield the lines of the summary that `render_report` returns."""
    yield f"### {_headline(report)}"
    yield ""
    yield from _run_lines(report)
    yield from (f"- {_code(error)}" for error in report.errors[:MAX_LISTED])
    if report.summary.incomplete:
        yield f"**Incomplete**: {report.summary.not_run} cases have no verdict. {_code(report.summary.reason)}"
    yield ""
    yield from _class_table(report)
    yield from _causes(report)
    unsuccessful = _order_by_cause(report)
    if unsuccessful:
        yield from _render_details(
            f"{pluralize(len(unsuccessful), 'case')} went wrong", _list_first(unsuccessful, _wrong_case)
        )
    yield from _operators(report)
    if durations:
        yield from _durations(report, durations)
    if report.models:
        trained = [model.name for model in report.models if model.trains]
        yield f"{len(trained)} of {len(report.models)} networks can be trained."
        yield ""
    packages = ", ".join(f"{name} {version}" for name, version in report.environment.packages.items())
    baseline = f"baseline {report.baseline.level} {report.baseline.digest[:12]}"
    yield f"{baseline}; DIOPI {report.proto_version}; Python {report.environment.python}; {packages}"


def _run_lines(report: Report) -> Iterator[str]:
    """Yield the facts that identify the run, its command, and the conformance of each family of functions."""
    facts = {name: text for name, text in describe_run(report) if text and name != "vendor"}
    command = facts.pop("command", "")
    yield " · ".join(f"{name} {_escaped(text)}" for name, text in facts.items())
    yield ""
    if command:
        yield _code(command)
        yield ""
    conformance = describe_conformance(report)
    if all(family.conforming == family.functions for family in report.families):
        yield conformance
        yield ""
    else:
        rows = [
            [_escaped(family.family), str(family.functions), str(family.implemented), str(family.conforming)]
            for family in report.families
        ]
        table = _table(["family", "functions", "implemented", "conform"], rows)
        yield from _render_details(conformance, table)
    if check := report.declaration_check:
        yield from (f"- {_escaped(line)}" for line in check.lines)
        yield ""


def _causes(report: Report) -> Iterator[str]:
    """Yield a table of the causes that affect the exit status, and a line about minor failures.

    A cause is a group of failed cases that probably have the same defect.
    """
    causes = [cause for cause in report.causes if cause.counts]
    if causes:
        yield f"**{headline(causes)}**"
        yield ""
        rows = [_cause_row(cause) for cause in causes[:MAX_LISTED]]
        yield from _table(["cause", "ID", "severity", "cases", "functions", "likely", "smallest case"], rows)
        if len(causes) > MAX_LISTED:
            yield f"… and {len(causes) - MAX_LISTED:,} more causes"
            yield ""
    if line := minor_line(report):
        yield line
        yield ""


def _operators(report: Report) -> Iterator[str]:
    """Yield a table of the operators with which the vendor's framework or a library served each function.

    Yield nothing if the run did not record operators.
    """
    if lines := list(describe_overrides(report)):
        rows = [[_code(cell) if cell else "" for cell in entry.cells] for entry in list_operators(report)]
        table = _table(["function", "served by the library", "served by the framework"], rows)
        yield from _render_details("; ".join(map(_escaped, lines)), table)


def _order_by_cause(report: Report) -> list[CaseRecord]:
    """Return the failed cases that count: first the smallest case of each cause, then the remaining cases by cause."""
    order = {cause.id: number for number, cause in enumerate(report.causes)}
    smallest = {cause.smallest_case for cause in report.causes}
    unsuccessful = [case for case in report.cases if report.counts(case)]
    return sorted(unsuccessful, key=lambda case: (case.id not in smallest, order.get(case.cause, len(order))))


def _cause_row(cause: Cause) -> list[str]:
    """Return the cells of a cause in the table of causes."""
    counts = [cause.severity.value, f"{cause.cases:,}", str(len(cause.functions))]
    return [
        _escaped(sentence_of(cause)),
        _code(cause.id),
        *counts,
        _escaped(cause.likely),
        _code(cause.smallest_case),
    ]


def _headline(report: Report) -> str:
    """Return the result of the run in one line."""
    name, summary = _escaped(report.title), report.summary
    if report.exit_status == 3:
        return f"❔ {name}: no verdict, {summary.passed:,} of {summary.total:,} cases passed"
    sign = "✅" if report.exit_status == 0 else "❌"
    return f"{sign} {name}: {summary.passed:,} of {summary.total:,} cases passed"


def _class_table(report: Report) -> Iterator[str]:
    """Yield a table with a row per class and a column per verdict that occur."""
    classes = {CaseClass[name]: counts for name, counts in report.summary.classes.items() if counts.total}
    verdicts = [verdict for verdict in Verdict if verdict is not Verdict.not_run and report.summary.number([verdict])]
    yield from _table(
        ["class", *(verdict.replace("_", " ") for verdict in verdicts)],
        [[_class_name(report, class_), *_numbers(counts, verdicts)] for class_, counts in classes.items()],
    )


def _class_name(report: Report, class_: CaseClass) -> str:
    """Return the class, marked if its cases do not affect the exit status."""
    return class_ if report.decides(class_) else f"{class_} (does not count)"


def _numbers(counts: Counts, verdicts: Sequence[Verdict]) -> list[str]:
    """Return the number of cases with each verdict as text; an empty text for 0."""
    return [f"{number:,}" if (number := counts.number([verdict])) else "" for verdict in verdicts]


def _wrong_case(case: CaseRecord) -> Iterator[str]:
    """Yield the list entry of a failed case: verdict, ID and message, then details and the command that repeats it."""
    yield f"- **{case.verdict.replace('_', ' ')}** {_code(case.id)}: {_code(case.message)}"
    for line in details(case.checks):
        yield f"  - {_code(line)}"
    yield f"  - {_code(case.command)}"


def _durations(report: Report, number: int) -> Iterator[str]:
    """Yield tables of the slowest functions and cases, and of calls that are much slower than a copy of their data.

    Args:
        report: The report.
        number: The maximum number of rows per table.
    """
    functions = group_by_function(report.cases)[:number]
    rows = [[_code(entry.function), str(entry.cases), f"{entry.seconds:.2f} s"] for entry in functions]
    yield from _render_details("functions that took longest", _table(["function", "cases", "took"], rows))
    cases = [[_code(case.id), f"{case.seconds:.2f} s"] for case in slowest(report.cases)[:number]]
    yield from _render_details("cases that took longest", _table(["case", "took"], cases))
    if slow_cases := compare_with_copies(report.cases)[:number]:
        times = [
            [_code(entry.id), f"{entry.timing.seconds * 1e6:.1f} µs", f"{entry.times:.3g}"] for entry in slow_cases
        ]
        yield from _render_details("calls farthest from memory bandwidth", _table(["case", "took", "× a copy"], times))


def _comparison_lines(comparison: ReportComparison) -> Iterator[str]:
    """Yield the lines of the comparison that `render_comparison` returns."""
    names = [_escaped(run.title) for run in (comparison.before, comparison.after)]
    yield f"### {'❌' if comparison.exit_status else '✅'} {names[0]} → {names[1]}"
    yield ""
    yield from (f"- {warning}" for warning in comparison.warnings)
    yield ""
    numbers = [f"{number:,}" for number in comparison.counts.values()]
    yield from _table(list(comparison.counts), [numbers])
    for change in OutcomeChange:
        if cases := comparison.cases_with(change):
            yield from _render_details(f"{len(cases)} {change}", _list_first(cases, _changed_case))
    if comparison.less_accurate:
        rows = [
            [_code(entry.id), f"{entry.before:.3g}", f"{entry.after:.3g}"]
            for entry in comparison.less_accurate[:MAX_LISTED]
        ]
        yield from _render_details(
            f"{len(comparison.less_accurate)} less accurate", _table(["case", "error / budget before", "after"], rows)
        )
    if comparison.slower:
        rows = [[_code(entry.function), *entry.in_words] for entry in comparison.slower[:MAX_LISTED]]
        yield from _render_details(f"{len(comparison.slower)} slower", _table(["function", "before", "after"], rows))


def _changed_case(case: ChangedCase) -> Iterator[str]:
    """Yield the list entry of a case whose outcome changed: its ID, both verdicts and its message."""
    verdict_before, verdict_after = map(_verdict_in_words, (case.before, case.after))
    yield f"- {_code(case.id)}: {verdict_before} → {verdict_after} {_code(case.message) if case.message else ''}"


def _verdict_in_words(verdict: Verdict | None) -> str:
    """Return a verdict as text; None means that the case was not run."""
    return "not run" if verdict is None else verdict.replace("_", " ")


def _list_first(cases: Sequence[T], lines: Callable[[T], Iterable[str]]) -> Iterator[str]:
    """Yield the lines of the first `MAX_LISTED` cases, then a line with the number of omitted cases.

    Args:
        cases: The cases.
        lines: A function that returns the lines of a case.
    """
    for case in cases[:MAX_LISTED]:
        yield from lines(case)
    if len(cases) > MAX_LISTED:
        yield f"- … and {len(cases) - MAX_LISTED:,} more"


def _render_details(title: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield lines in a collapsed section, which a click on its title expands."""
    yield f"<details><summary>{title}</summary>"
    yield ""
    yield from lines
    yield ""
    yield "</details>"
    yield ""


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table in Markdown; columns of numbers are aligned to the right."""
    lines = list(rows)
    are_numbers = (all(_NUMBER.fullmatch(line[place]) for line in lines) for place in range(len(columns)))
    yield f"| {' | '.join(columns)} |"
    yield f"| {' | '.join('---:' if is_number else '---' for is_number in are_numbers)} |"
    for row in lines:
        cells = (cell.replace("|", "\\|") for cell in row)  # a bar ends a cell even in code
        yield f"| {' | '.join(cells)} |"
    yield ""


_NUMBER = re.compile(r"([\d.,]+( \S{1,2})?)?")
"""Matches a number with or without a unit, and an empty cell."""


def _code(text: str) -> str:
    """Return a text as inline code; long texts are truncated."""
    line = " ".join(text.split())
    shortened = line if len(line) <= LONGEST else f"{line[:LONGEST]} …"
    fence = "`" * (1 + max(map(len, re.findall("`+", shortened)), default=0))
    return (
        f"{fence} {shortened} {fence}"
        if shortened.startswith("`") or shortened.endswith("`")
        else f"{fence}{shortened}{fence}"
    )


def _escaped(text: str) -> str:
    """Return a text on one line in which the special characters of Markdown and HTML are escaped."""
    return re.sub(r"([\\`*_{}\[\]<>()#+!|~&])", r"\\\1", " ".join(text.split()))
