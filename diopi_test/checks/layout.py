"""The results do not depend on where the elements of the inputs lie."""

from __future__ import annotations

from diopi_proto.types import Error
from diopi_test.execution.call_sequence import RELAID, CallSequence
from diopi_test.execution.difference import assign_call
from diopi_test.execution.verdict import CheckResult


def check(sequence: CallSequence) -> CheckResult | None:
    """A call whose inputs lie in another layout gives right results too; None where the vendor says it has none.

    Inputs that lie row by row are given column by column, and with gaps where that is the same; others row by row. The
    results need not have the same bits: a kernel for another layout may add in another order.
    """
    if sequence.relaid is None or sequence.relaid.code is Error.NoImplement:
        return None
    problem = sequence.relaid.problem
    message = f"with inputs in another layout: {problem}" if problem else ""
    return CheckResult("layout", not problem, message, differences=assign_call(sequence.relaid.differences, RELAID))
