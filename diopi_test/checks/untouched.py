"""The check that a call that fails leaves its results unchanged."""

from __future__ import annotations

import numpy as np

from diopi_proto.messages import pluralize
from diopi_proto.parameters import Role
from diopi_test.checks import location
from diopi_test.execution.call_record import CallRecord, are_bits_equal
from diopi_test.execution.verdict import CheckResult


def check(run: CallRecord) -> CheckResult:
    """Check that a rejected call changed no result and returned nothing through pointers. Workspaces may change."""
    written = [value.name for value in run.values if value.before is None or value.actual != value.before]
    problems, places = [f"{name} was handed back" for name in written], []
    for record in run.tensors:
        if record.role in (Role.input, Role.workspace):
            continue
        if record.before is None:
            problems.append(f"{record.name} was handed back")
        elif not are_bits_equal(record.before, record.after):
            changed = np.flatnonzero(record.before != record.after)
            problems.append(f"{pluralize(changed.size, 'byte')} of {record.name} changed, the first at {changed[0]}")
            places += location.changed_elements(run, record)
    return CheckResult(
        check="untouched",
        passed=not problems,
        message=", ".join(problems),
        differences=tuple(places[: location.MAX_LOCATIONS]),
    )
