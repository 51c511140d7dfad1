"""The severity of a failed case, derived from its check results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from diopi_test.execution.deviation import Deviation, DeviationKind
from diopi_test.execution.difference import Difference
from diopi_test.execution.verdict import PROCESS_LOST, CheckResult, Verdict
from diopi_test.results.causes.former_logs import deviation_of


class Severity(StrEnum):
    """How bad a failure is for the users of a vendor."""

    minor = "minor"
    """The sign of a zero, or a subnormal number that became zero."""
    major = "major"
    """Too large rounding errors, wrong NaNs and infinities, wrong types and shapes, and calls that return an error."""
    critical = "critical"
    """Wrong or missing numbers without an error code, invalid memory accesses, crashes and hangs."""

    @property
    def rank(self) -> int:
        """Return the position in the order from minor to critical."""
        return list(Severity).index(self)


_OF_KIND: Mapping[str, Severity] = {
    **dict.fromkeys((kind.value for kind in DeviationKind), Severity.major),
    DeviationKind.wrong_value.value: Severity.critical,
    DeviationKind.sign_of_zero.value: Severity.minor,
    DeviationKind.flushed.value: Severity.minor,
}
"""Severity by kind of wrong elements."""

_CRITICAL_CHECKS = frozenset({"guards", "gaps", "inputs", "written", "validity"})
"""Checks whose failure is critical, independently of the elements of the results."""

_CRITICAL_PROBLEMS = frozenset({"written_late"})
"""Problems, as named by the check that found them, that are critical."""

_MINOR_PROBLEMS = frozenset({"no_reason"})
"""Problems that are minor if the check found no others."""


def worst(severities: Iterable[Severity]) -> Severity | None:
    """Return the worst severity; None if there is none."""
    return max(severities, key=lambda severity: severity.rank, default=None)


def severity_of_case(verdict: Verdict, checks: Sequence[CheckResult], message: str) -> Severity:
    """Return the severity of a case that did not pass.

    Args:
        verdict: the verdict of the case.
        checks: its check results.
        message: its message, which begins with the first verdict of a flaky case.

    Returns:
        The severity. A case whose call returned an error code, or raised an exception, is major.
    """
    first_verdict = message.partition(" ")[0] if verdict is Verdict.flaky else verdict.value
    if first_verdict in {lost.value for lost in PROCESS_LOST}:
        return Severity.critical
    failed = (severity_of_check(check) for check in checks if not check.passed)
    return worst(failed) or Severity.major


def severity_of_check(result: CheckResult) -> Severity:
    """Return the severity of a failed check.

    Some checks and problems have a fixed severity. For other checks, the worst deviation of the incorrect tensors
    decides. A check without such tensors is major.
    """
    if result.check in _CRITICAL_CHECKS or not _CRITICAL_PROBLEMS.isdisjoint(result.problems):
        return Severity.critical
    if result.problems and _MINOR_PROBLEMS.issuperset(result.problems):
        return Severity.minor
    severity = worst(_severity_of_deviation(deviation) for deviation in _decisive_deviations(result.differences))
    return severity or Severity.major


def _decisive_deviations(differences: Sequence[Difference]) -> list[Deviation]:
    """Return the deviations of the incorrect tensors that decide the severity.

    Tensors of int32 and int64 usually contain positions. If other tensors are wrong as well, the positions are ignored:
    they are wrong because the values are.
    """
    deviations = [deviation_of(difference) for difference in differences]
    of_numbers = [
        deviation
        for difference, deviation in zip(differences, deviations, strict=True)
        if not difference.arguments.get(difference.tensor, "").startswith(("int64", "int32"))
    ]
    return of_numbers or deviations


def _severity_of_deviation(deviation: Deviation) -> Severity:
    """Return the severity of the worst kind of wrong elements of a tensor."""
    return worst(_OF_KIND[kind] for kind in deviation.kinds) or Severity.major
