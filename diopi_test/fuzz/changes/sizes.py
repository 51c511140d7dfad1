"""Changes of the sizes of axes: equal sizes in all tensors and size lists of a call are replaced together.

A change receives Hypothesis's `draw`, the knowledge about valid calls and a case, and returns the changed case.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.dtypes import category
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, TensorSpec
from diopi_test.cases.domains import Domain
from diopi_test.cases.tensors import Literal
from diopi_test.fuzz.changes.chances import RARELY, SOMETIMES
from diopi_test.fuzz.knowledge import (
    ValidCallKnowledge,
    all_sizes,
    as_tuple,
    sample_domain,
)

MAX_ELEMENTWISE_ELEMENTS = 100_000
"""Maximum number of elements of the largest tensor of an element-wise call."""

MAX_OTHER_ELEMENTS = 12_000
"""The same maximum for other calls, whose reference may need several steps per element."""

SMALL_SIZES = st.sampled_from([1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 31, 32, 33, 6, 10])
"""Small sizes of axes, including sizes around powers of two."""

MAX_GROWN_ELEMENTS = 2**22
"""The maximum number of elements of the largest tensor of a call with a very long axis."""

EDGES = tuple(
    sorted({2**bits + offset for bits in range(6, 23) for offset in (-1, 0, 1)} | {65_534, 3001, 10_007, 1_000_003})
)
"""Sizes of a long axis: powers of two and their neighbors, the neighbors of 65,535, and some other sizes."""


def max_elements(knowledge: ValidCallKnowledge) -> int:
    """Return the maximum number of elements of the largest tensor of a call."""
    return MAX_ELEMENTWISE_ELEMENTS if knowledge.prototype.elementwise else MAX_OTHER_ELEMENTS


def change_sizes(draw: DrawFn, knowledge: ValidCallKnowledge, case: Case) -> Case:
    """Return a call with new sizes: equal sizes of its tensors get equal new sizes.

    Sometimes one size becomes long, and rarely one becomes 0 if some case has empty tensors.
    """
    free = changeable_sizes(knowledge, case)
    sizes = {size: draw(st.one_of(st.just(size), SMALL_SIZES)) for size in free}
    if draw(RARELY) and knowledge.may_be_empty and free:
        emptied = draw(st.sampled_from(free))
        sizes[emptied] = 0
    if draw(SOMETIMES) and free:
        lengthened = draw(st.sampled_from(free))
        sizes[lengthened] = 1
        largest = max((math.prod(_replace_sizes(shape, sizes)) for shape in case.shapes), default=1)
        room = max_elements(knowledge) // max(largest, 1)
        if room > 40:
            sizes[lengthened] = draw(long_sizes(room))
    return resize_case(knowledge, case, sizes)


def changeable_sizes(knowledge: ValidCallKnowledge, case: Case) -> list[int]:
    """Return the sizes of a call that may be changed: neither 0 nor 1, nor the size of an axis that never varies."""
    fixed_sizes = {
        spec.shape[axis]
        for n, spec in case.tensors
        for axis in _axes_from_end(spec)
        if (n, axis) in knowledge.fixed_axes
    }
    return sorted(all_sizes(case) - fixed_sizes - {0, 1})


MIN_GROWN_BITS = 14
"""Very long axes have at least 2 to this power elements, if the other axes permit it."""


def long_sizes(limit: int, min_bits: int = 0) -> st.SearchStrategy[int]:
    """Return a strategy for sizes of a long axis: half of the sizes are log-uniform, and half are from `EDGES`.

    Args:
        limit: the largest size.
        min_bits: the smallest size is 2 to this power, if this is at most the limit.

    Returns:
        The strategy.
    """
    min_bits = min(min_bits, limit.bit_length() - 1)
    edges = [size for size in EDGES if 2**min_bits <= size <= limit]
    log_uniform = st.integers(min_bits, limit.bit_length() - 1).flatmap(
        lambda bits: st.integers(2**bits, min(2 ** (bits + 1) - 1, limit))
    )
    return st.one_of(log_uniform, *([st.sampled_from(edges)] if edges else ()))


def grow_case(draw: DrawFn, knowledge: ValidCallKnowledge, case: Case) -> Case:
    """Return a call with one very long axis, so that its largest tensor has up to 2²² elements."""
    free = changeable_sizes(knowledge, case)
    if not free:
        return case
    lengthened = draw(st.sampled_from(free))
    largest = max(math.prod(_replace_sizes(shape, {lengthened: 1})) for shape in case.shapes)
    size = draw(long_sizes(max(MAX_GROWN_ELEMENTS // max(largest, 1), 1), MIN_GROWN_BITS))
    return resize_case(knowledge, case, {lengthened: size})


def _axes_from_end(spec: TensorSpec) -> range:
    """Return the axes of a tensor as negative numbers."""
    return range(-len(spec.shape), 0)


def _replace_sizes(numbers: Sequence[int], sizes: Mapping[int, int]) -> tuple[int, ...]:
    """Return a tuple of numbers in which each number that is a key of `sizes` is replaced."""
    return tuple(sizes.get(number, number) for number in numbers)


def resize_case(knowledge: ValidCallKnowledge, case: Case, sizes: Mapping[int, int]) -> Case:
    """Return a call with sizes replaced in tensors, results and size attributes.

    Domains of indices, and tensors of sequence ends, are adapted to the new sizes.

    Args:
        knowledge: the knowledge about the function.
        case: the call.
        sizes: the new size by present size.
    """

    def with_new_sizes(name: str, spec: TensorSpec) -> TensorSpec:
        """Return a tensor's specification with the new sizes."""
        ends = _move_sequence_ends(spec, sizes)
        return replace(
            spec, shape=_replace_sizes(spec.shape, sizes), domain=_rescale_index_domain(spec, sizes), compute=ends
        )

    arguments = case.map_tensors(with_new_sizes)
    for name in knowledge.size_attributes:
        value = arguments[name]
        if value is not None:
            new = _replace_sizes(as_tuple(value), sizes)
            arguments[name] = new if isinstance(value, tuple | list) else new[0]
    results = {
        name: replace(override, shape=_replace_sizes(override.shape, sizes))
        if override and override.shape
        else override
        for name, override in case.results.items()
    }
    return replace(case, arguments=arguments, results=results)


def _rescale_index_domain(spec: TensorSpec, sizes: Mapping[int, int]) -> Domain:
    """Return a domain of indices below a replaced size, adapted to the new size; return other domains unchanged."""
    if spec.compute is not None or category(spec.dtype) != 1 or not sizes:
        return spec.domain
    values = sample_domain(spec)
    if not values.size or not np.isfinite(values).all():  # none, or those of a floating type
        return spec.domain
    bound = int(values.max()) + 1
    old_size = next((size for size in sorted(sizes) if bound <= size <= bound + 1), None)
    if old_size is None or sizes[old_size] == old_size or values.min() < -old_size:
        return spec.domain
    return _stretch_domain(spec.domain, old_size, sizes[old_size])


def _move_sequence_ends(spec: TensorSpec, sizes: Mapping[int, int]) -> Any:
    """Return the computation of a tensor of sequence ends, adapted to an axis of the new size.

    Such a tensor is recognized by its literal numbers, which rise from 0 to a size.

    Returns:
        The computation; unchanged for other tensors.
    """
    if not isinstance(spec.compute, Literal) or category(spec.dtype) != 1 or len(spec.shape) != 1:
        return spec.compute
    ends = spec.compute.array
    if len(ends) < 2 or ends[0] != 0 or (np.diff(ends) < 0).any() or int(ends[-1]) not in sizes:
        return spec.compute
    return Literal(ends * sizes[int(ends[-1])] // ends[-1])


def _stretch_domain(domain: Domain, old: int, new: int) -> Domain:
    """Return a domain with integers below `old` spread over the integers below `new`; distinct values stay distinct."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        """Draw values from the original domain and rescale them; raise ValueError if distinct values don't fit."""
        values = domain(rng, count, dtype).astype(np.int64)
        if new < old and count > 2 and len(np.unique(values)) == count:
            raise ValueError(f"{count} numbers that differ do not lie below {new}")
        return np.where(values < 0, -(-values * new // old), values * new // old)

    return draw
