"""The check that a call leaves no memory allocated."""

from __future__ import annotations

from diopi_proto.messages import pluralize
from diopi_test.execution.call_sequence import CallSequence
from diopi_test.execution.verdict import CheckResult


def check(sequence: CallSequence) -> CheckResult | None:
    """Check that a second call leaves no tensor and no device memory allocated after its context is closed.

    Memory that a vendor caches for later calls (tables, workspaces) is allocated in the first call, but a leak grows
    with every call. The check counts only what the runtime knows: tensors of any context, and memory from
    `Device.malloc`.

    Args:
        sequence: the calls of a case.

    Returns:
        The result of the check; None if there was no second call.
    """
    if sequence.queued is None:
        return None
    tensors, pieces = sequence.queued.left
    left = (
        f"a second call left {pluralize(tensors, 'tensor')} and {pluralize(pieces, 'piece')} of device memory allocated"
    )
    problems = tuple(name for name, number in (("tensors", tensors), ("device_memory", pieces)) if number > 0)
    return CheckResult(check="leaks", passed=not problems, message=left if problems else "", problems=problems)
