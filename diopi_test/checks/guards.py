"""The check that a call writes nothing outside a tensor's storage."""

from __future__ import annotations

from diopi_test.execution.call_record import CallRecord
from diopi_test.execution.verdict import CheckResult


def check(run: CallRecord) -> CheckResult:
    """Check that the guard zones on both sides of every allocation are unchanged."""
    return CheckResult(check="guards", passed=not run.damage, message=", ".join(str(error) for error in run.damage))
