"""Details of a failed case in a text report: the worst elements, their inputs, and the arguments of the call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from diopi_test.execution.difference import Difference
from diopi_test.execution.verdict import CheckResult, Outcome


def outcome_lines(case: str, outcome: Outcome) -> Iterator[str]:
    """Yield the lines for a case: its verdict, its message and its details."""
    yield f"{outcome.verdict} {case}"
    if outcome.message:
        yield f"  {outcome.message}"
    yield from (f"    {line}" for line in details(outcome.check_results))


def details(checks: Iterable[CheckResult]) -> Iterator[str]:
    """Yield lines with the worst element of each incorrect tensor, its inputs, and the arguments of its call.

    Only failed checks are read. A tensor that several checks report is described once, and arguments that are equal to
    those of the previous tensor are not repeated.
    """
    differences: dict[tuple[str, str], Difference] = {}
    for check in checks:
        for difference in check.differences if not check.passed else ():
            differences.setdefault((difference.tensor, difference.call), difference)
    arguments: Mapping[str, str] = {}
    for difference in differences.values():
        yield difference.worst_element
        if difference.inputs:
            yield f"computed from {_join_entries(difference.inputs, ' = ')}"
        if difference.arguments != arguments:
            yield f"called with {_join_entries(difference.arguments, ' ')}"
            arguments = difference.arguments


def _join_entries(named: Mapping[str, str], separator: str) -> str:
    """Return names and texts as one line such as `x = 1; y = 2`, with `between` between a name and its text."""
    return "; ".join(f"{name}{separator}{text}" for name, text in named.items())
