"""Changes that leave a call valid in nearly all cases; the reference rejects the other calls (`legal`).

A change receives the draw function of Hypothesis, the knowledge about the function, and a call. It returns another
call. The first alternative of each draw is the simplest one, so that a failing call shrinks to few changes and small
sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis.strategies import DrawFn

from diopi_test.cases.case import Case
from diopi_test.fuzz.changes.attributes import other_attributes
from diopi_test.fuzz.changes.element_types import other_types
from diopi_test.fuzz.changes.layouts import other_layouts
from diopi_test.fuzz.changes.shapes import other_shapes
from diopi_test.fuzz.changes.sizes import most_elements, other_sizes
from diopi_test.fuzz.changes.values import other_values
from diopi_test.fuzz.known import Known, elements

Change = Callable[[DrawFn, Known, Case], Case]

CHANGES: tuple[Change, ...] = (
    other_sizes,
    other_shapes,
    other_attributes,
    other_types,
    other_layouts,
    other_values,
)
"""The changes in the order in which they are applied: axes after ranks, domains after types."""

OF_DRAWS: tuple[Change, ...] = (other_sizes, other_shapes)
"""The changes for random functions, whose results are validated by statistical tests that need data like those of
the cases."""


def changes_for(known: Known) -> Sequence[Change]:
    """The changes that a function's calls may have."""
    return OF_DRAWS if known.prototype.guarantee == "random" else CHANGES


def fits(known: Known, case: Case) -> bool:
    """Return whether the reference computes a call of this size quickly."""
    return elements(case) <= 2 * most_elements(known)
