"""Running one case on a vendor: the calls that show what there is to see, and the verdict on them."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace

from diopi_impl import BaseVendor
from diopi_proto.interface import lookup
from diopi_proto.types import Dtype, Error
from diopi_test.baseline import BaselineCase
from diopi_test.call import PLAIN, Call, Manner, RefusedError
from diopi_test.checks import CHECKS, CHECKS_OF_RELEASE, COMPARISONS
from diopi_test.counterpart import counterpart
from diopi_test.run import Run
from diopi_test.series import Attempt, Series
from diopi_test.verdict import Finding, Outcome, Verdict
from lib_rt import Device

current_case: ContextVar[BaselineCase] = ContextVar("current_case")
"""The case that is being run, for vendors that are made from its expected results."""

_VERDICT_OF_CODE = {Error.NoImplement: Verdict.not_implemented, Error.DtypeNotSupported: Verdict.unsupported}


def run_case(vendor: BaseVendor, device: Device, case: BaselineCase) -> Outcome:
    """Run `case` on `vendor`, whose device is `device`, and judge it; nothing of the suite's stays allocated.

    A case of the smoke level is called more than once, see `Series`.
    """
    with _running(case):
        if not vendor.has(case.function):
            return Outcome(Verdict.not_implemented, f"{vendor.name} does not implement {case.function}")
        first = _attempt(vendor, device, case, PLAIN)
        if first.run is None:
            return _judge_code(vendor, case, first)
        series = _continued(vendor, device, case, first) if case.smoke and first.is_right else Series(first)
    compared = [finding for compare in COMPARISONS if (finding := compare(series)) is not None]
    return judge_findings(vendor, case, [*series.findings, *compared])


@contextmanager
def _running(case: BaselineCase) -> Iterator[None]:
    token = current_case.set(case)
    try:
        yield
    finally:
        current_case.reset(token)


def _attempt(vendor: BaseVendor, device: Device, case: BaselineCase, manner: Manner) -> Attempt:
    """Call the case's function, and look at what it left behind."""
    before = _allocated(device)
    try:
        with Call(vendor, device, case, manner) as call:
            run = call.run()
            findings = [finding for check in CHECKS if (finding := check(run)) is not None]
            if case.smoke and not all(finding.passed for finding in findings):
                run = replace(run, late=call.late())
    except RefusedError as refused:
        return Attempt(refused.code, vendor.last_error(), left=_more(device, before))
    findings += [finding for check in CHECKS_OF_RELEASE if (finding := check(run)) is not None]
    return Attempt(Error.Success, "", run, findings, _more(device, before))


def _allocated(device: Device) -> tuple[int, int]:
    return device.live_blocks, device.allocations


def _more(device: Device, before: tuple[int, int]) -> tuple[int, int]:
    """By how much there are more tensors and pieces of device memory than `before`."""
    if _allocated(device) != before:
        gc.collect()  # what nobody can reach any more is not kept
    tensors, pieces = _allocated(device)
    return tensors - before[0], pieces - before[1]


def _continued(vendor: BaseVendor, device: Device, case: BaselineCase, first: Attempt) -> Series:
    """The series of which the first call went well."""
    queued = _attempt(vendor, device, case, Manner(elsewhere=True, queued=True))
    waited = _attempt(vendor, device, case, Manner(elsewhere=True)) if queued.problem else None
    relaid = None
    if not queued.problem and _is_in_leading_type(case):
        relaid = _attempt(vendor, device, case, Manner(elsewhere=True, relaid=True))
    return Series(first, queued, waited, relaid, _out_of_place(vendor, device, case))


def _is_in_leading_type(case: BaselineCase) -> bool:
    """Whether a case is in the element type that stands for all of its function's: float32 where it takes that."""
    dtypes = lookup(case.function).dtypes
    return case.dtype is Dtype.float32 or (Dtype.float32 not in dtypes and case.dtype in dtypes[:1])


def _out_of_place(vendor: BaseVendor, device: Device, case: BaselineCase) -> Run | None:
    """What the call that an in-place case is to agree with left behind, if there is one and it succeeds."""
    plain = counterpart(case)
    if plain is None or not vendor.has(plain.function):
        return None
    with suppress(RefusedError), _running(plain), Call(vendor, device, plain) as call:
        return call.run()
    return None


def _judge_code(vendor: BaseVendor, case: BaselineCase, attempt: Attempt) -> Outcome:
    verdict = _VERDICT_OF_CODE.get(attempt.code, Verdict.failed)
    return _waive(vendor, case, Outcome(verdict, attempt.problem))


def judge_findings(vendor: BaseVendor, case: BaselineCase, findings: Sequence[Finding]) -> Outcome:
    """Passed if every check is content; else failed, or waived where the vendor says so."""
    message = "; ".join(f"{finding.check}: {finding.message}" for finding in findings if not finding.passed)
    verdict = Verdict.failed if message else Verdict.passed
    return _waive(vendor, case, Outcome(verdict, message, findings))


def _waive(vendor: BaseVendor, case: BaselineCase, outcome: Outcome) -> Outcome:
    waiver = vendor.waiver_for(case.id)
    if waiver is None or outcome.verdict is not Verdict.failed:
        return outcome
    return Outcome(Verdict.waived, f"{waiver.reason} ({outcome.message})", outcome.findings)
