"""Run a soak test: many calls of a function, whose results are compared and whose memory is measured."""

from __future__ import annotations

import gc
import time
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import final

from diopi_impl import BaseVendor
from diopi_proto.types import Error
from diopi_test.checks import growth, guards, soak
from diopi_test.checks.in_flight import find_failures, find_problems
from diopi_test.execution.call import RejectedCallError
from diopi_test.execution.call_record import CallRecord, are_bits_equal
from diopi_test.execution.in_flight import Chain
from diopi_test.execution.soak import (
    MemorySample,
    SoakRecord,
    SoakTest,
    WrongCall,
    describe_case,
    sampling_points,
)
from diopi_test.execution.verdict import CheckResult, Outcome, Verdict
from diopi_test.oracle.records import BaselineCase
from diopi_test.run.run_case import VERDICT_OF_CODE, Observe, derive_outcome
from diopi_test.run.run_in_flight import SINGLE_CALL
from diopi_test.run.target import LocalTarget, Target
from lib_rt import Device
from lib_rt.errors import GuardError

PROBE_CALLS = 64
"""The number of calls of each case that show which case causes a growth of memory."""


@final
@dataclass(frozen=True)
class _CorrectCall:
    """A case whose first call has correct results, with the record of this call."""

    case: BaselineCase
    record: CallRecord


def run_soak(
    vendor: BaseVendor,
    device: Device,
    test: SoakTest,
    enabled_checks: Container[str] | None = None,
    observe: Observe | None = None,
) -> Outcome:
    """Run a soak test on a vendor in this process, as `evaluate_soak` does.

    Args:
        vendor: The vendor.
        device: The vendor's open device.
        test: The soak test.
        enabled_checks: The names of the checks that decide the verdict; None for all.
        observe: Receives the records of the first call and of the first wrong call.

    Returns:
        The outcome of the test.
    """
    gc.collect()
    gc.freeze()  # measurements of the memory collect garbage, and now visit only objects that the test creates
    return evaluate_soak(LocalTarget(vendor, device), test, enabled_checks, observe)


def make_call(target: Target, case: BaselineCase) -> tuple[CallRecord, Sequence[GuardError]]:
    """Make one call with new tensors, and release everything.

    Args:
        target: The vendor on its device.
        case: The call.

    Returns:
        The record of the call, and the guard zones that were written to.

    Raises:
        RejectedCallError: The call returned an error code.
    """
    (record,), damage = target.run_chain(Chain(SINGLE_CALL, [case]))
    if isinstance(record, Error):
        raise RejectedCallError(record)
    return record, damage


def evaluate_soak(
    target: Target,
    test: SoakTest,
    enabled_checks: Container[str] | None = None,
    observe: Observe | None = None,
) -> Outcome:
    """Run a soak test, check its calls, and release all tensors.

    Cases whose first call is not implemented, returns an error or fails a check are omitted, because their own cases
    report this.

    Args:
        target: The vendor on its device.
        test: The soak test.
        enabled_checks: The names of the checks that decide the verdict; None for all.
        observe: Receives the records of the first call and of the first wrong call.

    Returns:
        The outcome of the test. If the first call of no case passes, the outcome is `passed` with a message; or
        `not_implemented` or `unsupported` if this is the reason for every case.
    """
    function = test.cases[0].function
    if not target.has(function):
        return Outcome(verdict=Verdict.not_implemented, message=f"{target.name} does not implement {function}")
    deadline = time.monotonic() + test.seconds
    codes: list[Error] = []
    calls = [call for case in test.cases if (call := _call_first(target, case, codes)) is not None]
    if not calls:
        return _without_calls(test, codes)
    return derive_outcome(_check_calls(target, test, calls, deadline, observe), enabled_checks)


def _call_first(target: Target, case: BaselineCase, codes: list[Error]) -> _CorrectCall | None:
    """Make the first call of a case.

    Args:
        target: The vendor on its device.
        case: The case.
        codes: The error codes of first calls; the code of this call is added if it is an error.

    Returns:
        The case with the record of the call; None if its results are wrong or it returns an error code.
    """
    try:
        record, damage = make_call(target, case)
    except RejectedCallError as rejection:
        codes.append(rejection.code)
        return None
    return None if damage or find_failures(record) else _CorrectCall(case, record)


def _without_calls(test: SoakTest, codes: Sequence[Error]) -> Outcome:
    """Return the outcome of a soak test if the first call of none of its cases passes."""
    message = f"not checked: 0 of {len(test.cases)} calls pass at first"
    verdicts = {VERDICT_OF_CODE.get(code) for code in codes}
    if len(codes) == len(test.cases) and len(verdicts) == 1 and None not in verdicts:
        return Outcome(verdict=VERDICT_OF_CODE[codes[0]], message=message)
    return Outcome(verdict=Verdict.passed, check_results=[CheckResult(check="soak", passed=True, message=message)])


def _check_calls(
    target: Target,
    test: SoakTest,
    calls: Sequence[_CorrectCall],
    deadline: float,
    observe: Observe | None,
) -> list[CheckResult]:
    """Return the results of the checks after repeating the calls.

    Args:
        target: The target that makes the calls.
        test: The test.
        calls: The calls, which are made in turn.
        deadline: The time, as `time.monotonic` returns it, at which the repetition ends early.
        observe: A function that receives the record of the first call and that of the first wrong call; None for none.
    """
    record, points = SoakRecord(planned=test.count), sampling_points(test.count, len(calls))
    records = {"first": calls[0].record}
    while record.calls < test.count and time.monotonic() < deadline:
        call = calls[record.calls % len(calls)]
        record.calls += 1
        actual = _repeat_call(target, call, record)
        if actual is not None:
            records.setdefault("wrong", actual)
        if record.calls in points:
            record.samples.append(MemorySample(calls=record.calls, memory=target.measure_memory()))
    if observe:
        observe(records)
    if growth.find_growth(record.samples):
        record.growth_by_case = _measure_growth_by_case(target, calls)
    return [soak.check(record), growth.check(record), guards.describe_damage(record.damage)]


def _repeat_call(target: Target, call: _CorrectCall, soak_record: SoakRecord) -> CallRecord | None:
    """Make a call again, and add an error or wrong results to the record of the soak test.

    Returns:
        The record of a call with wrong results; None if the results are correct or the call returned an error code.
    """
    number = soak_record.calls
    try:
        record, damage = make_call(target, call.case)
    except RejectedCallError as rejection:
        message = f"{rejection.code.name}: {target.last_error()}"
        soak_record.wrong_calls.append(WrongCall(number=number, case=call.case, message=message))
        return None
    soak_record.damage += damage
    if _are_equal(call.record, record):
        return None
    problems = list(find_problems(call.record, record))
    if not problems:
        return None
    message = "; ".join(message for message, _ in problems)
    places = tuple(place for _, differences in problems for place in differences)
    soak_record.wrong_calls.append(WrongCall(number=number, case=call.case, message=message, differences=places))
    return record


def _are_equal(first: CallRecord, second: CallRecord) -> bool:
    """Return whether two calls left the same bytes in all tensors and returned nothing else.

    This comparison is fast. The results of calls that are not equal, or that return numbers by pointer, are compared
    element by element.
    """
    return (
        not (first.values or second.values or second.missing)
        and len(first.tensors) == len(second.tensors)
        and all(
            first_tensor.shape == second_tensor.shape
            and first_tensor.dtype is second_tensor.dtype
            and are_bits_equal(first_tensor.after, second_tensor.after)
            for first_tensor, second_tensor in zip(first.tensors, second.tensors, strict=True)
        )
    )


def _measure_growth_by_case(target: Target, calls: Sequence[_CorrectCall]) -> dict[str, Mapping[str, float]]:
    """Return how much each quantity of memory grows per call of each case, by the description of the case."""
    growth_by_case: dict[str, Mapping[str, float]] = {}
    for call in calls:
        memory_before = target.measure_memory()
        for _ in range(PROBE_CALLS):
            with suppress(RejectedCallError):
                make_call(target, call.case)
        memory_after = target.measure_memory()
        growth_by_case[describe_case(call.case)] = {
            name: (memory_after[name] - memory_before[name]) / PROBE_CALLS for name in memory_before
        }
    return growth_by_case
