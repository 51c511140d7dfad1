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
    """Yield the worst element of each incorrect tensor of a call, then the arguments of the call."""
    places: dict[tuple[str, str], Difference] = {}
    for finding in checks:
        for place in finding.differences if not finding.passed else ():
            places.setdefault((place.tensor, place.call), place)
    arguments: Mapping[str, str] = {}
    for place in places.values():
        yield place.worst_element
        if place.inputs:
            yield f"computed from {_listed(place.inputs, ' = ')}"
        if place.arguments != arguments:
            yield f"called with {_listed(place.arguments, ' ')}"
            arguments = place.arguments


def _listed(named: Mapping[str, str], between: str) -> str:
    """Join names and texts to one line."""
    return "; ".join(f"{name}{between}{text}" for name, text in named.items())
