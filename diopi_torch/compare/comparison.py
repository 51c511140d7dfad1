"""Compare a function's call with the suite's reference, budgets and checks."""

from __future__ import annotations

from dataclasses import replace

from diopi_proto.prototype import Prototype
from diopi_test.baseline.evaluate import Evaluation, compute_baseline_case
from diopi_test.baseline.records import BaselineCase, Expected
from diopi_test.baseline.stability import restrict_to_stable
from diopi_test.cases.model import Case
from diopi_test.cases.open_calls import reason_open
from diopi_test.checks import CHECKS, form, gaps, inputs
from diopi_test.execution.call_record import CallRecord
from diopi_test.execution.verdict import Outcome
from diopi_test.fuzz.relations import FAILURES
from diopi_test.harness.run_case import derive_outcome
from diopi_test.oracle.budget import with_unsigned_zeros
from diopi_test.oracle.reference import find_reference

OF_DRAWS = (form.check, inputs.check, gaps.check)
"""The checks of a call that draws: the device's generator is not the case's, and a call is not made again."""


class NotComparableError(Exception):
    """The reference can't compute a call's expected results; the message says why."""


def compute_expected(prototype: Prototype, case: Case) -> BaselineCase:
    """Return a case with its expected results, computed as for a fuzzed call.

    Args:
        prototype: the prototype of the function that is called.
        case: the arguments of the call.

    Raises:
        NotComparableError: The reference can't compute the results.
    """
    function = find_reference(prototype.name)
    if function is None:
        raise NotComparableError("there is no reference")
    if reason := reason_open(prototype, case):
        raise NotComparableError(reason)
    try:
        baseline_case = _with_unsigned_zeros(compute_baseline_case(prototype, case))
        if baseline_case.draws:
            return baseline_case
        return restrict_to_stable(baseline_case, Evaluation(prototype, function, case), baseline_case)
    except (*FAILURES, MemoryError) as error:
        raise NotComparableError(f"the reference refuses it: {error}") from error


def _with_unsigned_zeros(case: BaselineCase) -> BaselineCase:
    """A case in which a 0 that comes of rounding may have either sign.

    Cases ask for signs on purpose. What programs compute is full of zeros, as those that dropout leaves, and which sign
    they get depends on the order of factors.
    """
    expected = {
        name: [_unsigned(result) for result in value] if isinstance(value, list) else value and _unsigned(value)
        for name, value in case.expected.items()
    }
    return replace(case, expected=expected)


def _unsigned(expected: Expected) -> Expected:
    if expected.unit is None:
        return expected
    return replace(expected, unit=with_unsigned_zeros(expected.values, expected.unit, expected.dtype))


def derive_call_outcome(record: CallRecord) -> Outcome:
    """Check a call and return its outcome."""
    checks = OF_DRAWS if record.case.draws else CHECKS
    return derive_outcome([finding for check in checks if (finding := check(record)) is not None], None)
