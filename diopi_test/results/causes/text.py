"""The causes of failures as text, for the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from diopi_proto.messages import pluralize
from diopi_test.execution.verdict import UNSUCCESSFUL
from diopi_test.results.causes.cause import Cause
from diopi_test.results.causes.severity import Severity
from diopi_test.results.details import details
from diopi_test.results.records import CaseRecord, Report
from diopi_test.results.stacks import split_stack

MAX_CAUSES = 20
"""The maximum number of causes that are listed."""

MAX_CASES = 5
"""The maximum number of causes whose smallest case is shown with its details."""

MAX_STACK_LINES = 10
"""The maximum number of lines of a crash's stack; the vendor's innermost frame comes first."""

_COLORS = {Severity.critical: "bold red", Severity.major: "red", Severity.minor: "yellow"}


def show_causes(report: Report, console: Console) -> None:
    """Print the causes that affect the exit status, details of the smallest cases, and a line about minor failures."""
    counted = [cause for cause in report.causes if cause.counts]
    if counted:
        console.print(headline(counted), highlight=False)
    for number, cause in enumerate(counted[:MAX_CAUSES], 1):
        _show_cause(number, cause, console)
    if len(counted) > MAX_CAUSES:
        console.print(f"… and {pluralize(len(counted) - MAX_CAUSES, 'more cause')}; --json FILE lists them all")
    cases = {case.id: case for case in report.cases}
    for number, cause in enumerate(counted[:MAX_CASES], 1):
        console.print(f"smallest case of cause {number}", highlight=False, style="dim")
        _show_case(cases[cause.smallest_case], console)
    if line := minor_line(report):
        console.print(line, highlight=False, style="yellow")


def headline(causes: Sequence[Cause]) -> str:
    """Return the numbers of causes and failed cases as text, such as `9 causes for 1,353 failed cases`."""
    number = sum(cause.cases for cause in causes)
    return f"{pluralize(len(causes), 'cause')} for {number:,} failed {'case' if number == 1 else 'cases'}"


def minor_line(report: Report) -> str:
    """Return a line about the failures whose severity is too low for the exit status; empty if there are none."""
    minor = report.minor_failures
    if not minor:
        return ""
    functions = pluralize(len({case.function for case in minor}), "function")
    severities = " and ".join(dict.fromkeys(str(case.severity) for case in minor))
    return (
        f"{severities}: {pluralize(len(minor), 'case')} of {functions} failed without affecting the exit status "
        f"(--fail-on minor counts them)"
    )


def size_of(cause: Cause) -> str:
    """Return the extent of a cause as text, such as `232 cases in 64 functions` or `2 cases of diopiAdd`."""
    functions = list(cause.functions)
    place = f"of {functions[0]}" if len(functions) == 1 else f"in {len(functions)} functions"
    return f"{pluralize(cause.cases, 'case')} {place}"


def sentence_of(cause: Cause) -> str:
    """Return the sentence of a cause. For errors above their limit, it ends with the factor between both."""
    factor = cause.factor
    if factor is None or factor <= 1 or not math.isfinite(factor):
        return cause.sentence
    return f"{cause.sentence}, up to {factor:.3g} times the limit"


def _show_cause(number: int, cause: Cause, console: Console) -> None:
    """Print the sentence of a cause, the probable defect, and the command that repeats its smallest case."""
    severity = f"[{_COLORS[cause.severity]}]{cause.severity.value:8}[/]"
    sentence, size = escape(sentence_of(cause)), escape(size_of(cause))
    console.print(f"{number:3}  {severity}  {sentence}: {size}  [dim]{cause.id}[/]", highlight=False, soft_wrap=True)
    indent = " " * 15
    if cause.likely:
        console.print(f"{indent}likely: {cause.likely}", highlight=False, markup=False, soft_wrap=True)
    console.print(f"{indent}{cause.command}", highlight=False, markup=False, style="dim", soft_wrap=True)


def _show_case(case: CaseRecord, console: Console) -> None:
    """Print the verdict, the message and the worst elements of a failed case."""
    assert case.verdict in UNSUCCESSFUL, "only failed cases belong to a cause"
    console.print(f"[red]{case.verdict}[/] {escape(case.id)}", highlight=False)
    reason, stack = split_stack(case.message)
    console.print(f"  {reason}", highlight=False, markup=False)
    for line in stack[:MAX_STACK_LINES]:
        console.print(f"    {line}", highlight=False, markup=False, soft_wrap=True)
    if len(stack) > MAX_STACK_LINES:
        console.print(f"    … and {len(stack) - MAX_STACK_LINES} more lines, see the log", highlight=False)
    for line in details(case.checks):
        console.print(f"    {line}", highlight=False, markup=False, soft_wrap=True)
