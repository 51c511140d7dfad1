"""Nothing is written outside a tensor's storage."""

from __future__ import annotations

from diopi_test.run import Run
from diopi_test.verdict import Finding


def check(run: Run) -> Finding:
    """The guard zones on both sides of every allocation are intact to the byte."""
    return Finding("guards", not run.damage, ", ".join(str(error) for error in run.damage))
