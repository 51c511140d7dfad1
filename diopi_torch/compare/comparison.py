"""Compare a function's call with the suite's reference, budgets and checks."""

from __future__ import annotations

from dataclasses import replace

from diopi_proto.prototype import Prototype
from diopi_test.baseline.stability import restrict_to_stable
from diopi_test.cases.case import Case
from diopi_test.cases.selection.open_calls import reason_open
from diopi_test.checks import CHECKS, form, gaps, inputs
from diopi_test.execution.call_record import CallRecord
from diopi_test.execution.verdict import Outcome
from diopi_test.fuzz.relations import FAILURES
from diopi_test.oracle.evaluation import Evaluation, compute_baseline_case
from diopi_test.oracle.records import BaselineCase, Expected
from diopi_test.oracle.reference import find_reference
from diopi_test.run.run_case import derive_outcome

RANDOM_CHECKS = (form.check, inputs.check, gaps.check)
"""The checks of a call that draws random numbers; its generator differs from the case's, and it can't be repeated."""


class NotComparableError(Exception):
    """The reference can't compute the expected results of a call; the message states the reason."""


def compute_expected(prototype: Prototype, case: Case) -> BaselineCase:
    """Return a case with its expected results, computed as for a fuzzed call.

    Args:
        prototype: the prototype of the function that is called.
        case: the arguments of the call.

    Returns:
        The case with its data and expected results.

    Raises:
        NotComparableError: if the reference can't compute the results.
    """
    function = find_reference(prototype.name)
    if function is None:
        raise NotComparableError("there is no reference")
    if reason := reason_open(prototype, case):
        raise NotComparableError(reason)
    try:
        baseline_case = _allow_zeros_of_either_sign(compute_baseline_case(prototype, case))
        if baseline_case.draws:
            return baseline_case
        return restrict_to_stable(baseline_case, Evaluation(prototype, function, case))
    except (*FAILURES, MemoryError) as error:
        raise NotComparableError(f"the reference rejects the call: {error}") from error


def _allow_zeros_of_either_sign(case: BaselineCase) -> BaselineCase:
    """Return a case in which a zero that results from rounding may have either sign.

    Cases of the suite test signs on purpose. The results of programs contain many zeros, for example from dropout, and
    their signs depend on the order of factors.
    """
    expected = {
        name: [_with_unsigned_zeros(result) for result in value]
        if isinstance(value, list)
        else value and _with_unsigned_zeros(value)
        for name, value in case.expected.items()
    }
    return replace(case, expected=expected)


def _with_unsigned_zeros(expected: Expected) -> Expected:
    """Return an expected result whose budget allows zeros of either sign; exact results are unchanged."""
    if expected.budget is None:
        return expected
    return replace(expected, budget=expected.budget.with_unsigned_zeros(expected.values, expected.dtype))


def derive_call_outcome(record: CallRecord) -> Outcome:
    """Apply the checks to the record of a call and return the outcome."""
    checks = RANDOM_CHECKS if record.case.draws else CHECKS
    return derive_outcome([finding for check in checks if (finding := check(record)) is not None], None)
