"""Run a negative test: the vendor must reject the call, give a reason, and change nothing."""

from __future__ import annotations

from collections.abc import Container

from diopi_impl import BaseVendor
from diopi_proto.types import Error
from diopi_test.checks import guards, inputs, untouched
from diopi_test.execution.flaw import Flaw
from diopi_test.execution.negative_cases import NegativeCase
from diopi_test.execution.verdict import CheckResult, Outcome, Verdict
from diopi_test.run.run_case import Observe, derive_outcome
from diopi_test.run.target import LocalTarget, Target
from lib_rt import Device


def run_negative_case(
    vendor: BaseVendor,
    device: Device,
    negative: NegativeCase,
    enabled_checks: Container[str] | None = None,
    observe: Observe | None = None,
) -> Outcome:
    """Return the outcome of a negative test on a vendor in this process, as `evaluate_negative_case` does."""
    return evaluate_negative_case(LocalTarget(vendor, device), negative, enabled_checks, observe)


def evaluate_negative_case(
    target: Target,
    negative: NegativeCase,
    enabled_checks: Container[str] | None = None,
    observe: Observe | None = None,
) -> Outcome:
    """Make an invalid call, and check that the vendor rejects it, gives a reason and changes nothing.

    Args:
        target: The vendor on its open device.
        negative: The invalid call.
        enabled_checks: The names of the checks that decide the verdict; None for all.
        observe: Receives the record of the call, under the name `refused`.

    Returns:
        The outcome; `not_implemented` if the vendor lacks the function or returns this error code.
    """
    case = negative.case
    if not target.has(case.function):
        return Outcome(verdict=Verdict.not_implemented, message=f"{target.name} does not implement {case.function}")
    with target.open_call(case) as call:
        code, last_error, run = call.run_rejected()
    if observe:
        observe({"refused": run})
    if code is Error.NoImplement:
        return Outcome(verdict=Verdict.not_implemented, message=f"{code.name}: {last_error}")
    findings = [check(run) for check in (untouched.check, inputs.check, guards.check)]
    return derive_outcome([_check_rejection(negative.flaw, code, last_error), *findings], enabled_checks)


def _check_rejection(flaw: Flaw, code: Error, last_error: str) -> CheckResult:
    """Check that the call returned an error code and that the vendor's last error is a text with a reason."""
    if code is Error.Success:
        return CheckResult(
            check="refused",
            passed=False,
            message=f"Success was returned although {flaw.text}",
            problems=("success",),
        )
    if not last_error.strip():
        message = f"{code.name} was returned as {flaw.text}, but the last error is empty"
        return CheckResult(check="refused", passed=False, message=message, problems=("no_reason",))
    return CheckResult(check="refused", passed=True, message=f"{code.name}: {last_error}")
