"""Changes that nearly always keep a call valid. `diopi_test.fuzz.legal` rejects the calls that became invalid.

A change receives the draw function of Hypothesis, the knowledge about the function, and a call. It returns another
call. The first alternative of each draw is the simplest one, so that a failing call shrinks to few changes and small
sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis.strategies import DrawFn

from diopi_test.cases.case import Case
from diopi_test.fuzz.changes.attributes import change_attributes
from diopi_test.fuzz.changes.element_types import change_types
from diopi_test.fuzz.changes.layouts import change_layouts
from diopi_test.fuzz.changes.shapes import change_shapes
from diopi_test.fuzz.changes.sizes import MAX_GROWN_ELEMENTS, change_sizes, max_elements
from diopi_test.fuzz.changes.values import change_values
from diopi_test.fuzz.knowledge import ValidCallKnowledge, count_elements

Change = Callable[[DrawFn, ValidCallKnowledge, Case], Case]
"""A change of a call; the module's docstring describes its arguments."""

CHANGES: tuple[Change, ...] = (
    change_sizes,
    change_shapes,
    change_attributes,
    change_types,
    change_layouts,
    change_values,
)
"""The changes in the order in which they are applied.

The order matters: axis attributes depend on ranks, and value domains depend on element types.
"""

CHANGES_OF_RANDOM_FUNCTIONS: tuple[Change, ...] = (change_sizes, change_shapes)
"""The changes for random functions, whose results are validated by statistical tests that need data like those of
the cases."""


def changes_for(knowledge: ValidCallKnowledge) -> Sequence[Change]:
    """Return the changes that may be applied to calls of a function."""
    return CHANGES_OF_RANDOM_FUNCTIONS if knowledge.prototype.guarantee == "random" else CHANGES


def is_small_enough(knowledge: ValidCallKnowledge, case: Case, *, has_grown: bool = False) -> bool:
    """Return whether the arguments of a call have at most twice the elements that its largest tensor may have.

    Args:
        knowledge: the knowledge about the function.
        case: the call.
        has_grown: whether the call has a very long axis, which permits up to 2 * `MAX_GROWN_ELEMENTS`.
    """
    return count_elements(case) <= 2 * (MAX_GROWN_ELEMENTS if has_grown else max_elements(knowledge))
