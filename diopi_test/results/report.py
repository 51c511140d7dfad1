"""Print the report of a run to the terminal: causes of failures, the cases closest to the limit, and counts."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from diopi_proto.messages import pluralize
from diopi_test.cases.case import CaseClass
from diopi_test.execution.verdict import EXECUTED, PROCESS_LOST, Verdict
from diopi_test.results import claims
from diopi_test.results.causes.text import show_causes
from diopi_test.results.durations import show_durations
from diopi_test.results.operators import show_operators
from diopi_test.results.overview import show_overview
from diopi_test.results.records import CaseRecord, Counts, PlanReport, Report, WaiverReport, WaiverState
from diopi_test.results.trainability import show_models


def show(report: Report, console: Console, durations: int = 0) -> None:
    """Print the summary of a report.

    Args:
        report: The report.
        console: The console.
        durations: The number of slowest functions and cases to list; 0 to omit these lists.
    """
    show_overview(report, console)
    _show_errors(report, console)
    show_causes(report, console)
    show_operators(report, console)
    _show_closest(report, console)
    if report.claims is not None:
        claims.show(report.claims, console)
    if report.waivers is not None:
        _show_waivers(report.waivers, console)
    if durations:
        show_durations(report.cases, durations, console)
    _show_draw(report, console)
    _show_incomplete(report, console)
    _show_classes(report, console)
    show_models(report.models, console)
    console.print(f"{_title(report)}: {_in_words(report.summary) or 'no cases'} in {report.summary.seconds:.1f} s")


def show_plan(plan: PlanReport, console: Console) -> None:
    """Print the summary of each run of a plan, then a table with a row per run."""
    for run in plan.runs:
        console.rule(escape(run.name), align="left")
        show(run.report, console)
    console.rule("all runs", align="left")
    table = Table("run", "vendor", "level", "cases", "status", box=None)
    for run in plan.runs:
        report = run.report
        words = _in_words(report.summary) or "no cases"
        table.add_row(escape(run.name), _title(report), report.baseline.level, words, str(report.exit_status))
    console.print(table)
    console.print(
        f"{pluralize(len(plan.runs), 'run')} in {plan.seconds:.1f} s, status {plan.exit_status}", highlight=False
    )


def _title(report: Report) -> str:
    """Return the vendor with its declared arithmetic, marked up in green if the exit status is 0 and else in red."""
    return f"[{'green' if report.exit_status == 0 else 'red'}]{escape(report.title)}[/]"


def _show_errors(report: Report, console: Console, limit: int = 5) -> None:
    """Print the first errors of the run, at most `limit`, and the number of further errors."""
    for error in report.errors[:limit]:
        console.print(f"[red]error[/]: {escape(error)}", highlight=False, soft_wrap=True)
    if len(report.errors) > limit:
        console.print(f"… and {len(report.errors) - limit} more errors; --json FILE lists them all")


def _show_closest(report: Report, console: Console, rows: int = 5) -> None:
    """Print the passed cases that use the largest part of their error budget."""
    measured = (case for case in report.cases if case.verdict is Verdict.passed and case.ratio)
    closest: list[CaseRecord] = sorted(measured, key=lambda case: -case.ratio)[:rows]
    if not closest:
        return
    table = Table("error / budget", "case", title="closest to the limit", title_justify="left", box=None)
    for case in closest:
        table.add_row(f"{case.ratio:.3f}", escape(case.id))
    console.print(table)


_REPORTED_STATES = {
    WaiverState.expired: "expired waivers",
    WaiverState.not_needed: "waivers that are not needed",
    WaiverState.matched_nothing: "waivers that match no case of this run",
}
"""Titles of the lists of waivers that need attention, by state."""


def _show_waivers(waivers: WaiverReport, console: Console, limit: int = 5) -> None:
    """Print cases with a better verdict than their waiver allows, and the waivers that need attention."""
    for improvement in waivers.improvements:
        change = f"{improvement.was} → {improvement.now}".replace("_", " ")
        line = f"improved: {improvement.pattern}: {change} ({improvement.number}: {', '.join(improvement.first)}"
        suffix = ", …" if improvement.number > len(improvement.first) else ""
        console.print(f"{line}{suffix})", highlight=False, markup=False, soft_wrap=True)
    for state, title in _REPORTED_STATES.items():
        patterns = [use.waiver.pattern for use in waivers.in_state(state)]
        if patterns:
            suffix = ", …" if len(patterns) > limit else ""
            line = f"{title}: {len(patterns)} ({', '.join(patterns[:limit])}{suffix})"
            console.print(line, highlight=False, markup=False, soft_wrap=True)


def _show_draw(report: Report, console: Console) -> None:
    """Print the seed of a shuffled run, and the command that repeats its order."""
    if draw := report.shuffle:
        console.print(f"shuffled with seed {draw.seed}; the same again, in one process:", highlight=False)
        console.print(f"  {draw.command}", highlight=False, markup=False, soft_wrap=True)


def _show_incomplete(report: Report, console: Console) -> None:
    """If the run is incomplete, print why cases have no verdict, and name the first of these cases."""
    summary = report.summary
    if not summary.incomplete:
        return
    number = "an unknown number of" if summary.collected is None else summary.collected
    line = f"incomplete: {summary.total} of {number} cases have a verdict, {summary.reason}"
    console.print(line, style="red", highlight=False, markup=False, soft_wrap=True)
    if named := ", ".join(summary.first_not_run):
        suffix = ", …" if summary.not_run > len(summary.first_not_run) else ""
        console.print(f"  not run: {named}{suffix}", highlight=False, markup=False, soft_wrap=True)


def _show_classes(report: Report, console: Console) -> None:
    """Print a line for each class that has cases, then how many negative tests passed."""
    classes = {CaseClass[name]: counts for name, counts in report.summary.classes.items() if counts.total}
    for class_, counts in classes.items():
        not_counted = "" if report.decides(class_) else " (does not count without --strict)"
        console.print(f"  {class_}: {_in_words(counts)}{not_counted}", highlight=False)
    if negative := classes.get(CaseClass.negative):
        rejected = f"negative tests: {negative.passed:,} of {negative.number(EXECUTED):,} invalid calls rejected"
        lost = f", {number:,} ended or hung the process" if (number := negative.number(PROCESS_LOST)) else ""
        console.print(f"{rejected}{lost}", highlight=False)


def _in_words(counts: Counts) -> str:
    """Return the number of cases per verdict as text."""
    counted = (verdict for verdict in Verdict if verdict is not Verdict.not_run)
    numbers = ((counts.number([verdict]), verdict.value.replace("_", " ")) for verdict in counted)
    return ", ".join(f"{number} {name}" for number, name in numbers if number)
