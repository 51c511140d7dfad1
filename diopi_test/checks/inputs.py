"""Inputs are only read, but for workspaces, between whose elements nothing is written."""

from __future__ import annotations

import numpy as np

from diopi_proto.parameters import Role, Workspace
from diopi_test.checks import where
from diopi_test.execution.call_record import CallRecord, is_same
from diopi_test.execution.verdict import CheckResult


def check(run: CallRecord) -> CheckResult:
    """The storage of every input is bit for bit what it was, the bytes between its elements included."""
    problems, places = [], []
    workspaces = {parameter.name for parameter in run.prototype.parameters if parameter.annotation is Workspace}
    for record in run.tensors:
        if record.role is not Role.input or record.before is None or is_same(record.before, record.after):
            continue
        after = record.with_values_of(record.before) if record.name in workspaces else record.after
        changed = np.flatnonzero(record.before != after)
        if not changed.size:
            continue
        problems.append(f"{changed.size} bytes of {record.name} changed, the first at {changed[0]}")
        places += where.changed_elements(run, record)
    return CheckResult("inputs", not problems, ", ".join(problems), differences=tuple(places[: where.MOST]))
