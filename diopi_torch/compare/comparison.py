"""Compare the call of a function with the suite's reference, error budgets and checks.

The budget of a result is the largest error that each of its elements may have. A check reads the record of a call and
passes or fails.
"""

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
"""The checks that apply to a call that draws random numbers.

They do not compare values: the program's generator has another state than the generator of the case, and the call can't
be repeated.
"""


class NotComparableError(Exception):
    """The reference can't compute the expected results of a call; the message states the reason."""


def compute_expected(prototype: Prototype, case: Case) -> BaselineCase:
    """Compute the expected results and error budgets of a call with the reference.

    The data of a program may be close to a discontinuity. If small changes of the inputs let an element of the result
    jump, its budget includes the jump, or the element is not compared.

    Args:
        prototype: the prototype of the function that is called.
        case: the arguments of the call.

    Returns:
        The case with its data, expected results and budgets.

    Raises:
        NotComparableError: there is no reference, the standard does not define the results of this call, or the
            reference rejects the call.
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
    """Return a case in which zeros may have either sign in results with an error budget.

    The cases of the suite test the signs of zeros on purpose. In a program, results contain many zeros, for example
    from dropout. The signs of these zeros depend on the order of factors.
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
    """Apply the suite's checks to the record of a call; return the outcome: verdict, message and check results."""
    checks = RANDOM_CHECKS if record.case.draws else CHECKS
    return derive_outcome([finding for check in checks if (finding := check(record)) is not None], None)
