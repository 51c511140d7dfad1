"""The check that a call writes nothing outside a tensor's storage."""

from __future__ import annotations

from collections.abc import Sequence

from diopi_test.execution.call_record import CallRecord
from diopi_test.execution.verdict import CheckResult
from lib_rt.errors import GuardError


def check(run: CallRecord) -> CheckResult:
    """Return the check that the guard zones on both sides of every allocation are unchanged."""
    return describe_damage(run.damage)


def describe_damage(damage: Sequence[GuardError]) -> CheckResult:
    """Return the result of the check for these damaged guard zones."""
    return CheckResult(check="guards", passed=not damage, message=", ".join(str(error) for error in damage))
