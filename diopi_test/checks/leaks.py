"""Nothing is left allocated."""

from __future__ import annotations

from diopi_test.execution.call_sequence import CallSequence
from diopi_test.execution.verdict import CheckResult


def check(sequence: CallSequence) -> CheckResult | None:
    """A second call leaves no tensor and no piece of device memory allocated beyond its context.

    What a vendor keeps for the next call (tables, workspaces) it has since the first; what every call adds to is lost.
    Counted is what goes through the runtime: tensors of any context, and memory from `Device.malloc`.
    """
    if sequence.queued is None:
        return None
    tensors, pieces = sequence.queued.left
    left = f"a second call left {tensors} tensors and {pieces} pieces of device memory allocated"
    return CheckResult("leaks", tensors <= 0 and pieces <= 0, left if tensors > 0 or pieces > 0 else "")
