"""Result form: element type and shape, and that the callee made what it had to make."""

from __future__ import annotations

from diopi_test.run import Run
from diopi_test.verdict import Finding


def check(run: Run) -> Finding:
    """Every result exists, with the expected dtype and, but for axes of length 1, the expected shape."""
    problems = [f"{name} was not made" for name in run.missing]
    for record, expected in run.results():
        if record.dtype is not expected.dtype:
            problems.append(f"{record.name} is {record.dtype.name}, expected {expected.dtype.name}")
        if record.before is None and _without_ones(record.shape) != _without_ones(expected.values.shape):
            problems.append(f"{record.name} has shape {record.shape}, expected {expected.values.shape}")
    return Finding("form", not problems, ", ".join(problems))


def _without_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(length for length in shape if length != 1)
