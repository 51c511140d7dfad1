"""The check that a call is executed in the order of its stream: after earlier work, and before later work."""

from __future__ import annotations

from diopi_test.execution.call_sequence import QUEUED_CALL, CallSequence
from diopi_test.execution.difference import assign_call
from diopi_test.execution.verdict import CheckResult


def check(sequence: CallSequence) -> CheckResult | None:
    """Check that the call sees copies queued before it, and that copies queued after it see its results.

    The inputs of the second call are queued behind other copies that keep the stream busy, and the host does not wait.
    A call that reads its inputs before the stream has written them has wrong results. After every call, the same stream
    copies the results back immediately. If they are wrong, they are read again a moment later. Results that have
    changed in between were written too late.

    Args:
        sequence: the calls of a case.

    Returns:
        The result of the check; None if the first call wrote nothing too late and there was no second call.
    """
    late = sequence.first.run.late if sequence.first.run is not None else ()
    if late:
        names = ", ".join(late)
        message = f"{names} changed after a copy queued behind the call had read the results"
        return CheckResult(check="order", passed=False, message=message, problems=("written_late",))
    if sequence.queued is None:
        return None
    fails = bool(sequence.queued.problem) and sequence.waited is not None and not sequence.waited.problem
    if not fails:
        return CheckResult(check="order", passed=True)
    message = f"with inputs still being copied: {sequence.queued.problem}"
    differences = assign_call(sequence.queued.differences, QUEUED_CALL)
    return CheckResult(check="order", passed=False, message=message, differences=differences, problems=("read_early",))
