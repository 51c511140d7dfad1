"""Changes that leave a call legal, or nearly always: what is not is found out by the reference (`legal`).

Each takes what Hypothesis draws with, what is known of the function, and a call, and gives another call. What is drawn
first is the simplest, so that a call that goes wrong shrinks to one with few changes and small sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis.strategies import DrawFn

from diopi_test.cases.model import Case
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
"""In the order in which they are made: axes after ranks, domains after types."""

OF_DRAWS: tuple[Change, ...] = (other_sizes, other_shapes)
"""Changes for random functions: statistical tests validate their results, and need data like those of their cases."""


def changes_for(known: Known) -> Sequence[Change]:
    """The changes that a function's calls may have."""
    return OF_DRAWS if known.prototype.guarantee == "random" else CHANGES


def fits(known: Known, case: Case) -> bool:
    """Whether a call is of a size that the reference computes quickly."""
    return elements(case) <= 2 * most_elements(known)
