"""Running one negative case on a vendor: the call must be refused, with a reason, and leave everything as it was."""

from __future__ import annotations

from diopi_impl import BaseVendor
from diopi_proto.types import Error
from diopi_test.call import Call
from diopi_test.checks import guards, inputs, untouched
from diopi_test.execution import judge_findings
from diopi_test.negative import Flaw, NegativeCase
from diopi_test.verdict import Finding, Outcome, Verdict
from lib_rt import Device


def run_negative_case(vendor: BaseVendor, device: Device, negative: NegativeCase) -> Outcome:
    """Call `vendor` with `negative`, on its device `device`, and judge how it refuses; nothing stays allocated."""
    case = negative.case
    if not vendor.has(case.function):
        return Outcome(Verdict.not_implemented, f"{vendor.name} does not implement {case.function}")
    with Call(vendor, device, case) as call:
        code, last_error, run = call.refused()
    if code is Error.NoImplement:
        return Outcome(Verdict.not_implemented, f"{code.name}: {last_error}")
    findings = [check(run) for check in (untouched.check, inputs.check, guards.check)]
    return judge_findings(vendor, case, [_refused(negative.flaw, code, last_error), *findings])


def _refused(flaw: Flaw, code: Error, last_error: str) -> Finding:
    """An error code was returned, and the last error tells why."""
    if code is Error.Success:
        return Finding("refused", False, f"Success was returned although {flaw.text}")
    if not last_error.strip():
        return Finding("refused", False, f"{code.name} was returned as {flaw.text}, but the last error is empty")
    return Finding("refused", True, f"{code.name}: {last_error}")
