"""Inputs are only read."""

from __future__ import annotations

import numpy as np

from diopi_proto.parameters import Role
from diopi_test.run import Run
from diopi_test.verdict import Finding


def check(run: Run) -> Finding:
    """The storage of every input is bit for bit what it was, the bytes between its elements included."""
    problems = []
    for record in run.tensors:
        if record.role is Role.input and record.before is not None:
            changed = np.flatnonzero(record.before != record.after)
            if changed.size:
                problems.append(f"{changed.size} bytes of {record.name} changed, the first at {changed[0]}")
    return Finding("inputs", not problems, ", ".join(problems))
