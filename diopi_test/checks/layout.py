"""The check that the results do not depend on the layout of the inputs."""

from __future__ import annotations

from diopi_proto.types import Error
from diopi_test.execution.call_sequence import RELAID_CALL, CallSequence
from diopi_test.execution.difference import assign_call
from diopi_test.execution.verdict import CheckResult


def check(sequence: CallSequence) -> CheckResult | None:
    """Check that a call with other layouts of the inputs has correct results, too.

    Row-major inputs become column-major, or get gaps if these are the same; other inputs become row-major. The results
    need not be equal bit for bit, because a kernel for another layout may add in another order.

    Args:
        sequence: the calls of a case.

    Returns:
        The result of the check; None if there was no such call, or if the vendor does not support the other layout.
    """
    if sequence.relaid is None or sequence.relaid.code is Error.NoImplement:
        return None
    problem = sequence.relaid.problem
    message = f"with inputs in another layout: {problem}" if problem else ""
    return CheckResult(
        check="layout",
        passed=not problem,
        message=message,
        differences=assign_call(sequence.relaid.differences, RELAID_CALL),
    )
