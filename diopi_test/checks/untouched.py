"""A call that failed leaves its results as they were."""

from __future__ import annotations

import numpy as np

from diopi_proto.parameters import Role
from diopi_test.run import Run
from diopi_test.verdict import Finding


def check(run: Run) -> Finding:
    """Results still hold what they held, poison or what was to be updated, and nothing was handed back."""
    problems = [f"{value.name} was handed back" for value in run.values]
    for record in run.tensors:
        if record.role is Role.input:
            continue
        if record.before is None:
            problems.append(f"{record.name} was handed back")
        elif (changed := np.flatnonzero(record.before != record.after)).size:
            problems.append(f"{changed.size} bytes of {record.name} changed, the first at {changed[0]}")
    return Finding("untouched", not problems, ", ".join(problems))
