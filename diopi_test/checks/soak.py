"""The check that every call of a soak test has correct results, and equal bits where the function must repeat them."""

from __future__ import annotations

from diopi_proto.messages import pluralize
from diopi_test.checks import location
from diopi_test.execution.difference import assign_call
from diopi_test.execution.soak import SoakRecord, describe_case
from diopi_test.execution.verdict import CheckResult

MAX_LISTED = 10
"""The maximum number of further wrong calls whose numbers a message contains."""


def check(record: SoakRecord) -> CheckResult:
    """Check that no call of a soak test was recorded as wrong.

    Args:
        record: the observations of the soak test.

    Returns:
        The result of the check. The message names the first wrong call, its case and shapes, and the numbers of the
        other wrong calls. If the time limit ended the test early, the message says so.
    """
    if not record.wrong_calls:
        is_complete = record.calls == record.planned
        message = "" if is_complete else f"stopped by the time limit after {record.calls:,} of {record.planned:,} calls"
        return CheckResult(check="soak", passed=True, message=message)
    first, *further = record.wrong_calls
    call_text = f"call {first.number:,} of {record.planned:,}"
    message = f"{call_text}, {describe_case(first.case)}: {first.message}"
    if further:
        numbers = ", ".join(f"{call.number:,}" for call in further[:MAX_LISTED])
        numbers += ", …" if len(further) > MAX_LISTED else ""
        message += f"; {pluralize(len(further), 'further call')} with wrong results: {numbers}"
    return CheckResult(
        check="soak",
        passed=False,
        message=message,
        differences=assign_call(first.differences[: location.MAX_LOCATIONS], call_text),
    )
