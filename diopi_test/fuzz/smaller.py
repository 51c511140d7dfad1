"""Propose smaller calls that may fail like a failing call, because Hypothesis does not shrink shapes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from diopi_test.cases.case import Case
from diopi_test.cases.layouts import contiguous
from diopi_test.fuzz.changes.sizes import changeable_sizes, resize_case
from diopi_test.fuzz.knowledge import ValidCallKnowledge


def smaller_calls(knowledge: ValidCallKnowledge, case: Case) -> Iterator[Case]:
    """Yield simpler calls: an element-wise call with one axis, calls with a smaller size, and a row-major call.

    The largest size is replaced first, by 1, then by larger sizes.
    """
    shapes = set(case.shapes)
    if knowledge.prototype.elementwise and len(shapes) == 1 and len(shape := next(iter(shapes))) > 1:
        yield replace(case, arguments=case.map_tensors(lambda _, spec: replace(spec, shape=(math.prod(shape),))))
    for size in reversed(changeable_sizes(knowledge, case)):
        for shorter in smaller_sizes(size):
            yield resize_case(knowledge, case, {size: shorter})
    if any(spec.layout is not contiguous for _, spec in case.tensors):
        yield replace(case, arguments=case.map_tensors(lambda _, spec: replace(spec, layout=contiguous)))


def smaller_sizes(size: int) -> Iterator[int]:
    """Yield smaller sizes, from 1 to `size` − 1; each halves the distance to `size`: for 9, yield 1, 5, 7, 8."""
    step = size - 1
    while step > 0:
        yield size - step
        step //= 2
