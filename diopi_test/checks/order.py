"""Work is done in stream order: after what was queued before the call, before what is queued after it."""

from __future__ import annotations

from diopi_test.execution.call_sequence import QUEUED, CallSequence
from diopi_test.execution.difference import assign_call
from diopi_test.execution.verdict import CheckResult


def check(sequence: CallSequence) -> CheckResult | None:
    """Copies queued just before the call are seen by it, and copies queued just after it see its results.

    The inputs of the second call are sent behind other copies that keep the stream busy, and the host does not wait for
    them: a call that reads its inputs before the stream has written them is wrong. The results of every call are copied
    back by the same stream at once; where they are wrong, they are read again a moment later: results that have changed
    by then were written too late.
    """
    late = sequence.first.run.late if sequence.first.run is not None else ()
    if late:
        names = ", ".join(late)
        return CheckResult("order", False, f"{names} changed after a copy queued behind the call had read the results")
    if sequence.queued is None:
        return None
    fails = bool(sequence.queued.problem) and sequence.waited is not None and not sequence.waited.problem
    if not fails:
        return CheckResult("order", True)
    message = f"with inputs still on their way: {sequence.queued.problem}"
    return CheckResult("order", False, message, differences=assign_call(sequence.queued.differences, QUEUED))
