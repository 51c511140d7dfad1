"""Run a case on a vendor: a sequence of calls, which the checks evaluate to a verdict."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from diopi_impl import BaseVendor
from diopi_proto.interface import lookup
from diopi_proto.types import Dtype, Error
from diopi_test.checks import CHECKS, CHECKS_OF_RELEASE, COMPARISONS
from diopi_test.execution.call import RejectedCallError
from diopi_test.execution.call_arguments import PLAIN, CallMode
from diopi_test.execution.call_record import CallRecord
from diopi_test.execution.call_sequence import CallAttempt, CallSequence
from diopi_test.execution.out_of_place import derive_out_of_place_case
from diopi_test.execution.verdict import UNSUCCESSFUL, CheckResult, Outcome, Verdict
from diopi_test.oracle.records import BaselineCase
from diopi_test.run.target import LocalTarget, Target
from lib_rt import Device

VERDICT_OF_CODE = {Error.NoImplement: Verdict.not_implemented, Error.DtypeNotSupported: Verdict.unsupported}
"""The verdicts of calls that return these error codes; a call that returns another error code fails."""

QUEUED, WAITED, RELAID = (
    CallMode(shifted=True, queued=True),
    CallMode(shifted=True),
    CallMode(shifted=True, relaid=True),
)
"""The modes of the further calls of a smoke case; see `CallSequence`."""

Observe = Callable[[Mapping[str, CallRecord]], object]
"""A function that receives the records of a case's calls, by the name of the call."""


def run_case(
    vendor: BaseVendor,
    device: Device,
    case: BaselineCase,
    enabled_checks: Container[str] | None = None,
    observe: Observe | None = None,
) -> Outcome:
    """Run a case on a vendor in this process, as `evaluate_case` does.

    Args:
        vendor: The vendor.
        device: The vendor's open device.
        case: The case.
        enabled_checks: The names of the checks that decide the verdict; None for all.
        observe: Receives the records of the calls, by the name of the call.

    Returns:
        The outcome of the case.
    """
    return evaluate_case(LocalTarget(vendor, device), case, enabled_checks, observe)


def evaluate_case(
    target: Target,
    case: BaselineCase,
    enabled_checks: Container[str] | None = None,
    observe: Observe | None = None,
) -> Outcome:
    """Run a case on a target, check its results, and release all tensors.

    A case of the smoke level is called more than once, see `CallSequence`.

    Args:
        target: The vendor on its device.
        case: The case.
        enabled_checks: The names of the checks that decide the verdict; None for all.
        observe: Receives the records of the calls, by the name of the call. It is not called if the vendor does not
            implement the function.

    Returns:
        The outcome of the case.
    """
    if not target.has(case.function):
        return Outcome(verdict=Verdict.not_implemented, message=f"{target.name} does not implement {case.function}")
    first = _attempt_call(target, case, PLAIN)
    if first.run is None:
        if observe:
            observe({})
        verdict = VERDICT_OF_CODE.get(first.code, Verdict.failed)
        return Outcome(verdict=verdict, message=first.problem, error_code=first.code.name)
    sequence = _call_again(target, case, first) if case.smoke and first.is_successful else CallSequence(first=first)
    if observe:
        observe(sequence.records)
    compared = [finding for compare in COMPARISONS if (finding := compare(sequence)) is not None]
    return derive_outcome([*sequence.check_results, *compared], enabled_checks)


def _attempt_call(target: Target, case: BaselineCase, mode: CallMode) -> CallAttempt:
    """Make one call of a case, and apply the checks of a single call to its record.

    If a check of a smoke case fails, this function also finds results that change after the stream has finished.

    Args:
        target: the vendor.
        case: the case.
        mode: the addresses, the layouts and the streams of the call.

    Returns:
        The error code, or the record with the results of the checks.
    """
    call = target.open_call(case, mode, stays_open=case.smoke)
    try:
        with call:
            run = call.run()
            findings = [finding for check in CHECKS if (finding := check(run)) is not None]
            if case.smoke and not all(finding.passed for finding in findings):
                run = replace(run, late=call.find_late_results())
    except RejectedCallError as rejection:
        return CallAttempt(code=rejection.code, message=target.last_error(), left=call.count_unreleased())
    findings += [finding for check in CHECKS_OF_RELEASE if (finding := check(run)) is not None]
    return CallAttempt(code=Error.Success, message="", run=run, check_results=findings, left=call.count_unreleased())


def _call_again(target: Target, case: BaselineCase, first: CallAttempt) -> CallSequence:
    """Return the sequence with the further calls, after the first call has succeeded."""
    queued = _attempt_call(target, case, QUEUED)
    waited = _attempt_call(target, case, WAITED) if queued.problem else None
    relaid = None
    if not queued.problem and is_in_leading_type(case):
        relaid = _attempt_call(target, case, RELAID)
    return CallSequence(first=first, queued=queued, waited=waited, relaid=relaid, plain=_run_out_of_place(target, case))


def is_in_leading_type(case: BaselineCase) -> bool:
    """Return whether a case uses the function's leading element type: float32 if the function accepts it."""
    dtypes = lookup(case.function).dtypes
    return case.dtype is Dtype.float32 or (Dtype.float32 not in dtypes and case.dtype in dtypes[:1])


def _run_out_of_place(target: Target, case: BaselineCase) -> CallRecord | None:
    """Return the record of the equivalent out-of-place call; None if there is no such call or it returns an error."""
    plain = derive_out_of_place_case(case)
    if plain is None or not target.has(plain.function):
        return None
    with suppress(RejectedCallError), target.open_call(plain) as call:
        return call.run()
    return None


def derive_outcome(findings: Sequence[CheckResult], enabled_checks: Container[str] | None) -> Outcome:
    """Return the outcome of a case from its check results: passed if every enabled check passed, else failed.

    Args:
        findings: The results of all checks.
        enabled_checks: The names of the enabled checks; None for all. Results of other checks are dropped.
    """
    enabled = [finding for finding in findings if enabled_checks is None or finding.check in enabled_checks]
    message = "; ".join(f"{finding.check}: {finding.message}" for finding in enabled if not finding.passed)
    return Outcome(verdict=Verdict.failed if message else Verdict.passed, message=message, check_results=enabled)


def add_check_results(outcome: Outcome, added_results: Sequence[CheckResult]) -> Outcome:
    """Return `outcome` with `more` check results; failed if one of them failed and the case had succeeded before."""
    if not added_results:
        return outcome
    failures = [f"{finding.check}: {finding.message}" for finding in added_results if not finding.passed]
    verdict = Verdict.failed if failures and outcome.verdict not in UNSUCCESSFUL else outcome.verdict
    message = "; ".join(filter(None, (outcome.message, *failures)))
    return replace(outcome, verdict=verdict, message=message, check_results=[*outcome.check_results, *added_results])
