"""Other shapes of element-wise calls, and other axes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from diopi_proto import facts
from diopi_test.cases.case import Case, TensorSpec
from diopi_test.fuzz.changes.chances import RARELY, SOMETIMES
from diopi_test.fuzz.changes.sizes import MAX_ELEMENTS, long_sizes
from diopi_test.fuzz.known import Known, named_tensors, rank, with_tensors

MAX_RANK = 8
"""The largest number of axes of a tensor."""


def other_shapes(draw: DrawFn, known: Known, case: Case) -> Case:
    """Return an element-wise call with new shapes, another call of any rank with one more axis, or the call itself."""
    if not known.takes_any_rank:
        return case
    if not known.prototype.elementwise:
        return _with_axis(draw, case)
    number_of_axes = draw(st.integers(0, MAX_RANK))
    small_sizes = st.sampled_from([1, 2, 3] if number_of_axes > MAX_RANK // 2 else [1, 2, 3, 4, 5, 7])
    sizes = [draw(small_sizes) for _ in range(number_of_axes)]
    if number_of_axes and draw(SOMETIMES):
        place = draw(st.integers(0, number_of_axes - 1))
        sizes[place] = 1
        sizes[place] = draw(long_sizes(max(MAX_ELEMENTS // math.prod(sizes), 1)))  # no size is 0 yet
    if number_of_axes and draw(RARELY):
        sizes[draw(st.integers(0, number_of_axes - 1))] = 0
    shape = tuple(sizes)
    full_name = next((name for name, _ in named_tensors(case)), "")
    changed = replace(
        case,
        arguments=with_tensors(
            case,
            lambda name, spec: replace(
                spec, shape=_broadcastable(draw, shape) if name in known.broadcast and name != full_name else shape
            ),
        ),
    )
    return _with_other_axes(draw, known, changed)


def _broadcastable(draw: DrawFn, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Draw a shape that broadcasts to `shape`."""
    trailing = shape[draw(st.integers(0, len(shape))) if draw(SOMETIMES) else 0 :]
    return tuple(size if draw(st.booleans()) else 1 for size in trailing) if draw(SOMETIMES) else trailing


def _with_axis(draw: DrawFn, case: Case) -> Case:
    """Add an axis in front of the tensors of the largest rank."""
    number_of_axes, size = rank(case), draw(st.sampled_from([1, 2, 3]))
    if number_of_axes >= MAX_RANK or number_of_axes == 0:
        return case

    def grown(name: str, spec: TensorSpec) -> TensorSpec:
        return replace(spec, shape=(size, *spec.shape)) if len(spec.shape) == number_of_axes else spec

    return replace(case, arguments=with_tensors(case, grown))


def _with_other_axes(draw: DrawFn, known: Known, case: Case) -> Case:
    """Draw the axis arguments of a call anew, within its rank."""
    axes = [p for p in known.attributes if p.fact(facts.NamesAxis) and case.arguments[p.name] is not None]
    new_axes = {p.name: other_axes(draw, case.arguments[p.name], rank(case)) for p in axes}
    return replace(case, arguments={**case.arguments, **new_axes})


def other_axes(draw: DrawFn, value: Any, ranks: int) -> Any:
    """Draw an axis, or as many different axes as `value` has, at most `ranks`."""
    axis = st.integers(-max(ranks, 1), max(ranks, 1) - 1)
    if not isinstance(value, tuple | list):
        return draw(axis)
    count = min(len(value), ranks)
    return tuple(draw(st.lists(axis, min_size=count, max_size=count, unique_by=lambda axis: axis % max(ranks, 1))))
