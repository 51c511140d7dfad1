"""Other shapes of element-wise calls, and other axes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from diopi_proto import facts
from diopi_test.cases.model import Case, TensorSpec
from diopi_test.fuzz.changes.chances import RARELY, SOMETIMES
from diopi_test.fuzz.changes.sizes import MAX_ELEMENTS, long_sizes
from diopi_test.fuzz.known import Known, named_tensors, rank, with_tensors

RANKS = 8
"""Axes a tensor has at most."""


def other_shapes(draw: DrawFn, known: Known, case: Case) -> Case:
    """An element-wise call of any shape, to which the tensors broadcast that may; another one with more axes."""
    if not known.takes_any_rank:
        return case
    if not known.prototype.elementwise:
        return _with_axis(draw, case)
    ranks = draw(st.integers(0, RANKS))
    small_sizes = st.sampled_from([1, 2, 3] if ranks > RANKS // 2 else [1, 2, 3, 4, 5, 7])
    sizes = [draw(small_sizes) for _ in range(ranks)]
    if ranks and draw(SOMETIMES):
        place = draw(st.integers(0, ranks - 1))
        sizes[place] = 1
        sizes[place] = draw(long_sizes(max(MAX_ELEMENTS // math.prod(sizes), 1)))  # before any is 0
    if ranks and draw(RARELY):
        sizes[draw(st.integers(0, ranks - 1))] = 0
    shape = tuple(sizes)
    whole = next((name for name, _ in named_tensors(case)), "")
    changed = replace(
        case,
        arguments=with_tensors(
            case,
            lambda name, spec: replace(
                spec, shape=_repeating(draw, shape) if name in known.broadcast and name != whole else shape
            ),
        ),
    )
    return _within_rank(draw, known, changed)


def _repeating(draw: DrawFn, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts to another."""
    trailing = shape[draw(st.integers(0, len(shape))) if draw(SOMETIMES) else 0 :]
    return tuple(size if draw(st.booleans()) else 1 for size in trailing) if draw(SOMETIMES) else trailing


def _with_axis(draw: DrawFn, case: Case) -> Case:
    """A call whose tensors of the largest rank have one more axis in front."""
    number_of_axes, size = rank(case), draw(st.sampled_from([1, 2, 3]))
    if number_of_axes >= RANKS or number_of_axes == 0:
        return case

    def grown(name: str, spec: TensorSpec) -> TensorSpec:
        return replace(spec, shape=(size, *spec.shape)) if len(spec.shape) == number_of_axes else spec

    return replace(case, arguments=with_tensors(case, grown))


def _within_rank(draw: DrawFn, known: Known, case: Case) -> Case:
    """A call whose axes are drawn anew."""
    axes = [p for p in known.attributes if p.fact(facts.NamesAxis) and case.arguments[p.name] is not None]
    new_axes = {p.name: other_axes(draw, case.arguments[p.name], rank(case)) for p in axes}
    return replace(case, arguments={**case.arguments, **new_axes})


def other_axes(draw: DrawFn, value: Any, ranks: int) -> Any:
    """One axis, or several that differ."""
    axis = st.integers(-max(ranks, 1), max(ranks, 1) - 1)
    if not isinstance(value, tuple | list):
        return draw(axis)
    count = min(len(value), ranks)
    return tuple(draw(st.lists(axis, min_size=count, max_size=count, unique_by=lambda axis: axis % max(ranks, 1))))
