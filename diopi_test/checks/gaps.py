"""Nothing is written between the elements of a strided result."""

from __future__ import annotations

import numpy as np

from diopi_proto.parameters import Role
from diopi_test.run import Run
from diopi_test.verdict import Finding


def check(run: Run) -> Finding | None:
    """The bytes of a result's storage that belong to no element are what they were; None where there are none."""
    problems, applies = [], False
    for record in run.tensors:
        if record.role is Role.input or record.before is None or not record.gaps.any():
            continue
        applies = True
        changed = np.flatnonzero(record.gaps & (record.before != record.after))
        if changed.size:
            problems.append(
                f"{changed.size} bytes between the elements of {record.name} changed, the first at {changed[0]}"
            )
    return Finding("gaps", not problems, ", ".join(problems)) if applies else None
