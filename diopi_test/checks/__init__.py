"""The checks, with one module each: the properties that a call, or the calls of a sequence, must have.

A check returns a result, or None if it does not apply. The checks examine the records of calls (`execution`) with the
expected results, error budgets and validators (`oracle`). They never call a vendor.
"""

from __future__ import annotations

from collections.abc import Callable

from diopi_test.checks import (
    draws,
    form,
    gaps,
    guards,
    inplace,
    inputs,
    layout,
    leaks,
    order,
    repeat,
    validity,
    values,
    written,
)
from diopi_test.execution.call_record import CallRecord
from diopi_test.execution.call_sequence import CallSequence
from diopi_test.execution.verdict import CheckResult

CHECKS: tuple[Callable[[CallRecord], CheckResult | None], ...] = (
    form.check,
    written.check,
    values.check,
    validity.check,
    draws.check,
    inputs.check,
    gaps.check,
)
"""The checks of a single call, in the order in which a report lists them."""

CHECKS_OF_RELEASE: tuple[Callable[[CallRecord], CheckResult | None], ...] = (guards.check,)
"""The checks of a single call after its tensors were released."""

COMPARISONS: tuple[Callable[[CallSequence], CheckResult | None], ...] = (
    repeat.check,
    order.check,
    layout.check,
    inplace.check,
    leaks.check,
)
"""The checks that compare the calls of a case, see `CallSequence`."""
