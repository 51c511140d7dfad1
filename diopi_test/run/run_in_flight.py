"""Run a chain: each call on its own, then all calls in flight at the same time, in both orders."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import final

from diopi_impl import BaseVendor
from diopi_proto.types import Error
from diopi_test.checks import guards, in_flight
from diopi_test.execution.call_record import CallRecord
from diopi_test.execution.in_flight import Chain, ChainKind
from diopi_test.execution.verdict import CheckResult, Outcome, Verdict
from diopi_test.oracle.records import BaselineCase
from diopi_test.run.run_case import VERDICT_OF_CODE, Observe, derive_outcome
from diopi_test.run.target import LocalTarget, Target
from lib_rt import Device

SINGLE_CALL = ChainKind(1)
"""The kind of a chain with a single call."""


@final
@dataclass(frozen=True)
class _PassedCall:
    """A call that passes on its own.

    Attributes:
        case: the case that makes the call.
        record: the record of the call.
    """

    case: BaselineCase
    record: CallRecord


def run_in_flight(
    vendor: BaseVendor,
    device: Device,
    chain: Chain,
    enabled_checks: Container[str] | None = None,
    observe: Observe | None = None,
) -> Outcome:
    """Run a chain on a vendor in this process, as `evaluate_chain` does.

    Args:
        vendor: The vendor.
        device: The vendor's open device.
        chain: The calls.
        enabled_checks: The names of the checks that decide the verdict; None for all.
        observe: Receives the records of the calls, by the name of the call.

    Returns:
        The outcome, as `evaluate_chain` returns it.
    """
    return evaluate_chain(LocalTarget(vendor, device), chain, enabled_checks, observe)


def evaluate_chain(
    target: Target,
    chain: Chain,
    enabled_checks: Container[str] | None = None,
    observe: Observe | None = None,
) -> Outcome:
    """Run a chain, check its calls, and release all tensors.

    Calls that are not implemented, that return an error or that fail a check on their own are omitted, because their
    own cases report them. The other calls are made in order and, if they pass, in reverse order.

    Args:
        target: The vendor on its device.
        chain: The calls.
        enabled_checks: The names of the checks that decide the verdict; None for all.
        observe: Receives the records of the calls, by the name of the call.

    Returns:
        The outcome of the chain. If fewer than two of its calls pass on their own, the calls are not made at the same
        time. The outcome is then `passed` with a message; or `not_implemented` or `unsupported` if this is the reason
        for every call.
    """
    codes: list[Error] = []
    calls: list[_PassedCall] = []
    for case in chain.cases:
        result = _make_single_call(target, case)
        if isinstance(result, Error):
            codes.append(result)
        elif result is not None:
            calls.append(_PassedCall(case, result))
    if len(calls) < 2:
        return _without_chain(chain, codes, len(calls))
    findings: list[CheckResult] = []
    for order in (calls, calls[::-1]):
        findings = _run_order(target, chain.kind, order, observe)
        if not all(finding.passed for finding in findings):
            break
    return derive_outcome(findings, enabled_checks)


def _make_single_call(target: Target, case: BaselineCase) -> CallRecord | Error | None:
    """Make a call on its own; return its record, its error code, or None if a check of the call fails."""
    if not target.has(case.function):
        return Error.NoImplement
    (record,), damage = target.run_chain(Chain(SINGLE_CALL, [case]))
    if isinstance(record, Error):
        return record
    return None if damage or in_flight.find_failures(record) else record


def _without_chain(chain: Chain, codes: Sequence[Error], passed: int) -> Outcome:
    """Return the outcome of a chain if fewer than two of its calls pass on their own.

    Args:
        chain: The chain.
        codes: The error codes of the calls that are not implemented or return an error.
        passed: The number of calls that pass on their own.
    """
    message = f"not checked: {passed} of {len(chain.cases)} calls pass on their own"
    verdicts = {VERDICT_OF_CODE.get(code) for code in codes}
    if not passed and len(codes) == len(chain.cases) and len(verdicts) == 1 and None not in verdicts:
        return Outcome(verdict=VERDICT_OF_CODE[codes[0]], message=message)
    return Outcome(verdict=Verdict.passed, check_results=[CheckResult(check="in_flight", passed=True, message=message)])


def _run_order(
    target: Target, kind: ChainKind, calls: Sequence[_PassedCall], observe: Observe | None
) -> list[CheckResult]:
    """Make the calls in this order and return the results of the checks.

    Args:
        target: the vendor.
        kind: the number of streams.
        calls: the calls, with the records of the calls on their own.
        observe: receives the records of the calls; None if they are not needed.

    Returns:
        The results of the check of the values and of the check of guard zones.
    """
    records, damage = target.run_chain(Chain(kind, [call.case for call in calls]))
    successful = {
        f"call-{number}": record for number, record in enumerate(records, 1) if isinstance(record, CallRecord)
    }
    if observe:
        observe(successful)
    last_error = target.last_error() if len(successful) < len(calls) else ""
    checked = in_flight.check([call.record for call in calls], records, last_error)
    return [checked, guards.describe_damage(damage)]
