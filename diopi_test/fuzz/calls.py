"""Hypothesis strategies that draw calls of a function, also as successors of an earlier call."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from diopi_proto.types import MemoryFormat
from diopi_test.cases.case import Case, CaseClass
from diopi_test.fuzz.changes import changes_for, is_small_enough
from diopi_test.fuzz.changes.chances import SELDOM
from diopi_test.fuzz.changes.sizes import grow_case
from diopi_test.fuzz.knowledge import ValidCallKnowledge
from diopi_test.fuzz.legal import IllegalError, with_forward_shapes

MAX_CALLS = 4
"""Maximum number of calls in a sequence."""

IncludeChange = st.sampled_from([False, True])
"""Whether a change is applied to a call; `False` first, so that a failing call shrinks to few changes."""


@st.composite
def cases(draw: DrawFn, knowledge: ValidCallKnowledge, earlier: Case | None = None) -> Case:
    """Return a case with some random changes, or an `earlier` call with one change.

    Args:
        draw: draws from strategies of Hypothesis.
        knowledge: the valid calls of the function.
        earlier: the call to change; None for any case of the function.

    Returns:
        The case.

    Raises:
        IllegalError: The changed call is invalid.
    """
    case = draw(st.sampled_from(knowledge.cases)) if earlier is None else earlier
    changes = changes_for(knowledge)
    applied = (
        [change for change in changes if draw(IncludeChange)] if earlier is None else [draw(st.sampled_from(changes))]
    )
    for change in applied:
        case = change(draw, knowledge, case)
    has_grown = draw(SELDOM) and knowledge.prototype.guarantee != "random"
    if has_grown:
        case = grow_case(draw, knowledge, case)
    origin = case.label.partition("-")[2].partition("#")[0]
    if not is_small_enough(knowledge, case, has_grown=has_grown):
        raise IllegalError("the call has too many elements")
    case = with_forward_shapes(knowledge, case)
    label = f"{case.dtype.name}-{origin}#{draw(st.integers(0, 999))}"
    called_again = draw(st.booleans()) and not has_grown and not _result_follows_layout(knowledge, case)
    return replace(
        case, label=label, exact=False, smoke=called_again, case_class=CaseClass.basic, non_discriminating=""
    )


def _result_follows_layout(knowledge: ValidCallKnowledge, case: Case) -> bool:
    """Return whether the result must have the layout of an input, so that another layout changes the result."""
    orders = [case.arguments[p.name] for p in knowledge.attributes if p.annotation is MemoryFormat]
    return MemoryFormat.Preserve in orders
