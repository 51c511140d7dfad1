"""The checks, one module each: what must hold of a call, or of the calls of a sequence.

A check gives one finding, or None where it does not apply. Imports what calls leave behind (`execution`), expectations
(`baseline`), error budgets and validators (`oracle`); never a vendor.
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
"""Of one call, in the order a report lists them."""

CHECKS_OF_RELEASE: tuple[Callable[[CallRecord], CheckResult | None], ...] = (guards.check,)
"""Of one call once its tensors are released."""

COMPARISONS: tuple[Callable[[CallSequence], CheckResult | None], ...] = (
    repeat.check,
    order.check,
    layout.check,
    inplace.check,
    leaks.check,
)
"""Of all calls of a case."""
