"""Every specified element of every result was written: no poison is left in it."""

from __future__ import annotations

import numpy as np

from diopi_proto.parameters import Role
from diopi_test.run import Run
from diopi_test.verdict import Finding
from lib_rt import is_poison


def check(run: Run) -> Finding:
    """No result element still holds the bit pattern it was filled with; integers only where that is not the answer.

    Integers whose meaning is judged are left to their judge.
    """
    problems = []
    for record, expected in run.results():
        if record.role is not Role.output or record.before is None:
            continue
        left = is_poison(record.values)
        if expected.values.dtype == record.values.dtype and record.values.dtype.kind in "iu":
            left &= record.values != expected.values
            left &= not expected.judged
        if expected.specified is not None:
            left &= expected.specified
        if left.any():
            first = tuple(int(i) for i in np.argwhere(left)[0])
            problems.append(
                f"{int(left.sum())} of {left.size} elements of {record.name} were not written, the first at {first}"
            )
    return Finding("written", not problems, ", ".join(problems))
