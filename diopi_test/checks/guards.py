"""Nothing is written outside a tensor's storage."""

from __future__ import annotations

from diopi_test.execution.call_record import CallRecord
from diopi_test.execution.verdict import CheckResult


def check(run: CallRecord) -> CheckResult:
    """The guard zones on both sides of every allocation are intact to the byte."""
    return CheckResult("guards", not run.damage, ", ".join(str(error) for error in run.damage))
