"""The checks: each looks at one `Run`, or at a `Series`, and gives one finding, or None where it does not apply."""

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
    meaning,
    order,
    repeat,
    values,
    written,
)
from diopi_test.run import Run
from diopi_test.series import Series
from diopi_test.verdict import Finding

CHECKS: tuple[Callable[[Run], Finding | None], ...] = (
    form.check,
    written.check,
    values.check,
    meaning.check,
    draws.check,
    inputs.check,
    gaps.check,
)
"""Of one call, in the order a report lists them."""

CHECKS_OF_RELEASE: tuple[Callable[[Run], Finding | None], ...] = (guards.check,)
"""Of one call once its tensors are released."""

COMPARISONS: tuple[Callable[[Series], Finding | None], ...] = (
    repeat.check,
    order.check,
    layout.check,
    inplace.check,
    leaks.check,
)
"""Of all calls of a case."""
