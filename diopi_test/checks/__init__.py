"""The checks: each looks at one `Run` and gives one finding, or None where it does not apply."""

from __future__ import annotations

from collections.abc import Callable

from diopi_test.checks import draws, form, gaps, guards, inputs, meaning, values, written
from diopi_test.run import Run
from diopi_test.verdict import Finding

Check = Callable[[Run], Finding | None]

CHECKS: tuple[Check, ...] = (
    form.check,
    written.check,
    values.check,
    meaning.check,
    draws.check,
    inputs.check,
    gaps.check,
    guards.check,
)
"""In the order a report lists them."""
