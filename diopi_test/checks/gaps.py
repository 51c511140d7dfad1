"""The check that a call writes nothing between the elements of a strided result."""

from __future__ import annotations

import numpy as np

from diopi_proto.messages import pluralize
from diopi_proto.parameters import Role
from diopi_test.execution.call_record import CallRecord, are_bits_equal
from diopi_test.execution.verdict import CheckResult


def check(run: CallRecord) -> CheckResult | None:
    """Check that the bytes between the elements of results and updated tensors are unchanged.

    Args:
        run: the record of the call.

    Returns:
        The result of the check; None if there are no such bytes.
    """
    problems, applies = [], False
    for record in run.tensors:
        if record.role is Role.input or record.before is None or not record.has_gaps:
            continue
        applies = True
        if are_bits_equal(record.before, record.with_values_of(record.before)):
            continue
        changed = np.flatnonzero(record.gaps & (record.before != record.after))
        problems.append(
            f"{pluralize(changed.size, 'byte')} between the elements of {record.name} changed, "
            f"the first at {changed[0]}"
        )
    return CheckResult(check="gaps", passed=not problems, message=", ".join(problems)) if applies else None
