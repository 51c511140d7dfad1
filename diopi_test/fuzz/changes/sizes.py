"""Other sizes of axes, which all tensors and lists of sizes with the same ones get."""

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
from diopi_test.fuzz.known import Known, as_tuple, named_tensors, sampled, sizes_of, with_tensors

MAX_ELEMENTS = 100_000
"""Elements of the largest tensor of an element-wise call."""

MAX_ELEMENTS_OF_REDUCTIONS = 12_000
"""Those of other calls, whose reference may take more than a step an element."""

SMALL = st.sampled_from([1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 31, 32, 33, 6, 10])
"""Sizes of axes, those around powers of two among them."""

EDGES = (63, 65, 127, 128, 129, 255, 257, 511, 513, 1023, 1025, 2049, 3001, 4095, 4097, 10_007, 32_769, 65_535, 65_537)
"""Sizes of a long axis."""


def most_elements(known: Known) -> int:
    """Elements that the largest tensor of a call may have."""
    return MAX_ELEMENTS if known.prototype.elementwise else MAX_ELEMENTS_OF_REDUCTIONS


def other_sizes(draw: DrawFn, known: Known, case: Case) -> Case:
    """Each size of the call's tensors replaced by another, the same one wherever it stands."""
    free = free_sizes(known, case)
    sizes = {size: draw(st.one_of(st.just(size), SMALL)) for size in free}
    if draw(RARELY) and known.may_be_empty and free:
        emptied = draw(st.sampled_from(free))
        sizes[emptied] = 0
    if draw(SOMETIMES) and free:
        long = draw(st.sampled_from(free))
        sizes[long] = 1
        largest = max((math.prod(_renamed(spec.shape, sizes)) for _, spec in named_tensors(case)), default=1)
        room = most_elements(known) // max(largest, 1)
        if room > 40:
            sizes[long] = draw(long_sizes(room))
    return resized(known, case, sizes)


def free_sizes(known: Known, case: Case) -> list[int]:
    """The sizes of a call that may be others."""
    fixed_sizes = {
        spec.shape[axis] for n, spec in named_tensors(case) for axis in _axes_from_end(spec) if (n, axis) in known.fixed
    }
    return sorted(sizes_of(case) - fixed_sizes - {0, 1})


def long_sizes(limit: int) -> st.SearchStrategy[int]:
    """Sizes of a long axis, up to `most`."""
    edges = [size for size in EDGES if size <= limit]
    return st.one_of(st.integers(1, limit), *([st.sampled_from(edges)] if edges else ()))


def _axes_from_end(spec: TensorSpec) -> range:
    return range(-len(spec.shape), 0)


def _renamed(numbers: Sequence[int], sizes: Mapping[int, int]) -> tuple[int, ...]:
    return tuple(sizes.get(number, number) for number in numbers)


def resized(known: Known, case: Case, sizes: Mapping[int, int]) -> Case:
    """A call with sizes replaced in tensors, results and linked attributes; positions below one lie below the other."""

    def renamed(name: str, spec: TensorSpec) -> TensorSpec:
        ends = _ends_moved(spec, sizes)
        return replace(spec, shape=_renamed(spec.shape, sizes), domain=_rescaled(spec, sizes), compute=ends)

    arguments = dict(with_tensors(case, renamed))
    for name in known.linked:
        value = arguments[name]
        if value is not None:
            new = _renamed(as_tuple(value), sizes)
            arguments[name] = new if isinstance(value, tuple | list) else new[0]
    results = {
        name: replace(override, shape=_renamed(override.shape, sizes)) if override and override.shape else override
        for name, override in case.results.items()
    }
    return replace(case, arguments=arguments, results=results)


def _rescaled(spec: TensorSpec, sizes: Mapping[int, int]) -> Domain:
    """A domain of whole numbers below a size, with numbers below the one in its place; any other as it is."""
    if spec.compute is not None or category(spec.dtype) != 1 or not sizes:
        return spec.domain
    values = sampled(spec)
    if not values.size or not np.isfinite(values).all():  # none, or those of a floating type
        return spec.domain
    bound = int(values.max()) + 1
    below = next((size for size in sorted(sizes) if bound <= size <= bound + 1), None)
    if below is None or sizes[below] == below or values.min() < -below:
        return spec.domain
    return _stretched(spec.domain, below, sizes[below])


def _ends_moved(spec: TensorSpec, sizes: Mapping[int, int]) -> Any:
    """Return the computation of a tensor of the ends of sequences, moved along an axis of the new size.

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


def _stretched(domain: Domain, old: int, new: int) -> Domain:
    """Numbers below `old` spread over those below `new`: different ones stay different where there are as many."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        values = domain(rng, count, dtype).astype(np.int64)
        if new < old and count > 2 and len(np.unique(values)) == count:
            raise ValueError(f"{count} numbers that differ do not lie below {new}")
        return np.where(values < 0, -(-values * new // old), values * new // old)

    return draw
