"""The check that a call does not write to its inputs, except to the elements of a workspace."""

from __future__ import annotations

import numpy as np

from diopi_proto.messages import pluralize
from diopi_proto.parameters import Role, Workspace
from diopi_test.checks import location
from diopi_test.execution.call_record import CallRecord, are_bits_equal
from diopi_test.execution.verdict import CheckResult


def check(run: CallRecord) -> CheckResult:
    """Return the check that no byte of the storage of an input changed, except for the elements of workspaces."""
    problems, places = [], []
    workspaces = {parameter.name for parameter in run.prototype.parameters if parameter.annotation is Workspace}
    for record in run.tensors:
        if record.role is not Role.input or record.before is None or are_bits_equal(record.before, record.after):
            continue
        contents = record.with_values_of(record.before) if record.name in workspaces else record.after
        changed = np.flatnonzero(record.before != contents)
        if not changed.size:
            continue
        problems.append(f"{pluralize(changed.size, 'byte')} of {record.name} changed, the first at {changed[0]}")
        places += location.changed_elements(run, record)
    return CheckResult(
        check="inputs",
        passed=not problems,
        message=", ".join(problems),
        differences=tuple(places[: location.MAX_LOCATIONS]),
    )
