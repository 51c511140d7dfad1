"""Changes of the shapes of element-wise calls, and of axis arguments.

A change receives Hypothesis's `draw`, the knowledge about valid calls and a case, and returns the changed case.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from diopi_proto import facts
from diopi_test.cases.case import Case, TensorSpec
from diopi_test.fuzz.changes.chances import RARELY, SOMETIMES
from diopi_test.fuzz.changes.sizes import MAX_ELEMENTWISE_ELEMENTS, long_sizes
from diopi_test.fuzz.knowledge import ValidCallKnowledge, largest_rank

MAX_RANK = 8
"""The largest number of axes of a tensor."""


def change_shapes(draw: DrawFn, knowledge: ValidCallKnowledge, case: Case) -> Case:
    """Return an element-wise call with new shapes and axes, or another call with an additional first axis.

    If the function does not accept any rank, the call stays unchanged.
    """
    if not knowledge.accepts_any_rank:
        return case
    if not knowledge.prototype.elementwise:
        return _add_leading_axis(draw, case)
    number_of_axes = draw(st.integers(0, MAX_RANK))
    small_sizes = st.sampled_from([1, 2, 3] if number_of_axes > MAX_RANK // 2 else [1, 2, 3, 4, 5, 7])
    sizes = [draw(small_sizes) for _ in range(number_of_axes)]
    if number_of_axes and draw(SOMETIMES):
        place = draw(st.integers(0, number_of_axes - 1))
        sizes[place] = 1
        sizes[place] = draw(long_sizes(max(MAX_ELEMENTWISE_ELEMENTS // math.prod(sizes), 1)))  # no size is 0 yet
    if number_of_axes and draw(RARELY):
        sizes[draw(st.integers(0, number_of_axes - 1))] = 0
    shape = tuple(sizes)
    full_name = next((name for name, _ in case.tensors), "")
    changed = replace(
        case,
        arguments=case.map_tensors(
            lambda name, spec: replace(
                spec,
                shape=_draw_broadcastable(draw, shape)
                if name in knowledge.broadcast_tensors and name != full_name
                else shape,
            ),
        ),
    )
    return _change_axes(draw, knowledge, changed)


def _draw_broadcastable(draw: DrawFn, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return a random shape that broadcasts to `shape`."""
    trailing = shape[draw(st.integers(0, len(shape))) if draw(SOMETIMES) else 0 :]
    return tuple(size if draw(st.booleans()) else 1 for size in trailing) if draw(SOMETIMES) else trailing


def _add_leading_axis(draw: DrawFn, case: Case) -> Case:
    """Return a case in which the tensors of the largest rank have an additional first axis of a drawn size."""
    number_of_axes, size = largest_rank(case), draw(st.sampled_from([1, 2, 3]))
    if number_of_axes >= MAX_RANK or number_of_axes == 0:
        return case

    def with_axis(name: str, spec: TensorSpec) -> TensorSpec:
        """Return a tensor's specification with the new axis, if the tensor has the largest rank."""
        return replace(spec, shape=(size, *spec.shape)) if len(spec.shape) == number_of_axes else spec

    return replace(case, arguments=case.map_tensors(with_axis))


def _change_axes(draw: DrawFn, knowledge: ValidCallKnowledge, case: Case) -> Case:
    """Return the case with new axis arguments within the rank of the call."""
    axes = [p for p in knowledge.attributes if p.fact(facts.NamesAxis) and case.arguments[p.name] is not None]
    new_axes = {p.name: draw_axes(draw, case.arguments[p.name], largest_rank(case)) for p in axes}
    return replace(case, arguments={**case.arguments, **new_axes})


def draw_axes(draw: DrawFn, value: Any, ranks: int) -> Any:
    """Return a drawn axis, or a tuple of different axes.

    Args:
        draw: the draw function of Hypothesis.
        value: the present value: an integer, or a list of as many axes as the result has.
        ranks: the largest number of axes of a tensor. Axes are from -`ranks` to `ranks` - 1.
    """
    axis = st.integers(-max(ranks, 1), max(ranks, 1) - 1)
    if not isinstance(value, tuple | list):
        return draw(axis)
    count = min(len(value), ranks)
    return tuple(draw(st.lists(axis, min_size=count, max_size=count, unique_by=lambda axis: axis % max(ranks, 1))))
