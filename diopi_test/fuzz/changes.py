"""Changes that leave a call legal, or nearly always: what is not is found out by the reference (`legal`).

Each takes what Hypothesis draws with, what is known of the function, and a call, and gives another call. What is drawn
first is the simplest, so that a call that goes wrong shrinks to one with few changes and small sizes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto import facts
from diopi_proto import parameters as kinds
from diopi_proto.dtypes import category, common
from diopi_proto.interface import lookup
from diopi_proto.parameters import Parameter
from diopi_proto.types import Dtype
from diopi_test.cases.domains import Domain
from diopi_test.cases.formats import format_of
from diopi_test.cases.layouts import LAYOUTS, expanded
from diopi_test.cases.model import Case, ResultOf, ResultOverride, TensorSpec
from diopi_test.cases.tensors import Literal
from diopi_test.fuzz.known import (
    WHOLE,
    Known,
    as_tuple,
    elements,
    named_tensors,
    rank,
    sampled,
    sizes_of,
    with_tensors,
)

REAL = (kinds.Scalar, kinds.f64, kinds.f32)
"""The kinds of attributes that domains are chosen for."""

Change = Callable[[DrawFn, Known, Case], Case]

MOST = 100_000
"""Elements of the largest tensor of an element-wise call."""

MOST_OF_OTHERS = 12_000
"""Those of other calls, whose reference may take more than a step an element."""

RANKS = 8
"""Axes a tensor has at most."""

SMALL = st.sampled_from([1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 31, 32, 33, 6, 10])
"""Sizes of axes, those around powers of two among them."""

EDGES = (63, 65, 127, 128, 129, 255, 257, 511, 513, 1023, 1025, 2049, 3001, 4095, 4097, 10_007, 32_769, 65_535, 65_537)
"""Sizes of one long axis."""


def most_elements(known: Known) -> int:
    """Elements that the largest tensor of a call may have."""
    return MOST if known.prototype.elementwise else MOST_OF_OTHERS


# Sizes.


def other_sizes(draw: DrawFn, known: Known, case: Case) -> Case:
    """Each size of the call's tensors replaced by another, the same one wherever it stands."""
    free = free_sizes(known, case)
    sizes = {size: draw(st.one_of(st.just(size), SMALL)) for size in free}
    if draw(_rarely) and known.may_be_empty and free:
        emptied = draw(st.sampled_from(free))
        sizes[emptied] = 0
    if draw(_sometimes) and free:
        long = draw(st.sampled_from(free))
        sizes[long] = 1
        others = max((math.prod(_renamed(spec.shape, sizes)) for _, spec in named_tensors(case)), default=1)
        room = most_elements(known) // max(others, 1)
        if room > 40:
            sizes[long] = draw(long_sizes(room))
    return resized(known, case, sizes)


def free_sizes(known: Known, case: Case) -> list[int]:
    """The sizes of a call that may be others."""
    held = {
        spec.shape[axis] for n, spec in named_tensors(case) for axis in _axes_from_end(spec) if (n, axis) in known.fixed
    }
    return sorted(sizes_of(case) - held - {0, 1})


def long_sizes(most: int) -> st.SearchStrategy[int]:
    """Sizes of a long axis, up to `most`."""
    edges = [size for size in EDGES if size <= most]
    return st.one_of(st.integers(1, most), *([st.sampled_from(edges)] if edges else ()))


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
        name: replace(one, shape=_renamed(one.shape, sizes)) if one and one.shape else one
        for name, one in case.results.items()
    }
    return replace(case, arguments=arguments, results=results)


def _rescaled(spec: TensorSpec, sizes: Mapping[int, int]) -> Domain:
    """A domain of whole numbers below a size, with numbers below the one in its place; any other as it is."""
    if spec.compute is not None or category(spec.dtype) != 1 or not sizes:
        return spec.domain
    given = sampled(spec)
    if not given.size or not np.isfinite(given).all():  # none, or those of a floating type
        return spec.domain
    bound = int(given.max()) + 1
    below = next((size for size in sorted(sizes) if bound <= size <= bound + 1), None)
    if below is None or sizes[below] == below or given.min() < -below:
        return spec.domain
    return _stretched(spec.domain, below, sizes[below])


def _ends_moved(spec: TensorSpec, sizes: Mapping[int, int]) -> Any:
    """What a tensor is computed by; where sequences lie in an axis, these positions lie in the axis of the new size.

    They are seen by their numbers, which are given as they are: they rise from 0 to a size.
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


def other_shapes(draw: DrawFn, known: Known, case: Case) -> Case:
    """An element-wise call of any shape, to which the tensors broadcast that may; another one with more axes."""
    if not known.takes_any_rank:
        return case
    if not known.prototype.elementwise:
        return _with_axis(draw, case)
    ranks = draw(st.integers(0, RANKS))
    few = st.sampled_from([1, 2, 3] if ranks > RANKS // 2 else [1, 2, 3, 4, 5, 7])
    sizes = [draw(few) for _ in range(ranks)]
    if ranks and draw(_sometimes):
        place = draw(st.integers(0, ranks - 1))
        sizes[place] = 1
        sizes[place] = draw(long_sizes(max(MOST // math.prod(sizes), 1)))  # before any is 0
    if ranks and draw(_rarely):
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
    kept = shape[draw(st.integers(0, len(shape))) if draw(_sometimes) else 0 :]
    return tuple(size if draw(st.booleans()) else 1 for size in kept) if draw(_sometimes) else kept


def _with_axis(draw: DrawFn, case: Case) -> Case:
    """A call whose tensors of the largest rank have one more axis in front."""
    most, size = rank(case), draw(st.sampled_from([1, 2, 3]))
    if most >= RANKS or most == 0:
        return case

    def grown(name: str, spec: TensorSpec) -> TensorSpec:
        return replace(spec, shape=(size, *spec.shape)) if len(spec.shape) == most else spec

    return replace(case, arguments=with_tensors(case, grown))


def _within_rank(draw: DrawFn, known: Known, case: Case) -> Case:
    """A call whose axes are drawn anew."""
    axes = [p for p in known.attributes if p.fact(facts.NamesAxis) and case.arguments[p.name] is not None]
    drawn = {p.name: _axes(draw, case.arguments[p.name], rank(case)) for p in axes}
    return replace(case, arguments={**case.arguments, **drawn})


def _axes(draw: DrawFn, given: Any, ranks: int) -> Any:
    """One axis, or several that differ."""
    each = st.integers(-max(ranks, 1), max(ranks, 1) - 1)
    if not isinstance(given, tuple | list):
        return draw(each)
    count = min(len(given), ranks)
    return tuple(draw(st.lists(each, min_size=count, max_size=count, unique_by=lambda axis: axis % max(ranks, 1))))


# Attributes.


def other_attributes(draw: DrawFn, known: Known, case: Case) -> Case:
    """Numbers of another case with the domains it has for them; axes, texts and truth values each by itself."""
    if known.is_made_for_attributes(case):
        return case
    donor = draw(st.sampled_from(known.of_category(case.dtype) or known.cases))
    free = [p for p in known.attributes if p.name not in known.linked]
    together = [p.name for p in free if _is_free_number(p, known) and donor.arguments[p.name] is not None]
    arguments = dict(case.arguments)
    if draw(st.booleans()):
        arguments = dict(with_tensors(case, _with_domains(donor)))
        arguments |= {name: donor.arguments[name] for name in together if arguments[name] is not None}
    is_usual = known.is_usual(replace(case, arguments=arguments))
    for p in free:
        is_number = issubclass(p.annotation, REAL)
        if arguments[p.name] is not None and draw(_sometimes) and (is_usual or not is_number):
            arguments[p.name] = _attribute(draw, known, p, arguments[p.name], rank(case), case.dtype)
    return replace(case, arguments=arguments)


def _is_free_number(parameter: Parameter, known: Known) -> bool:
    """Whether an attribute is a number that tensors of positions, as targets of losses are, have no part in."""
    tensors = [p.name for p in known.prototype.arguments if p.is_tensor and known.prototype.dtypes_of(p.name)]
    has_positions = any(all(category(dtype) == 1 for dtype in known.prototype.dtypes_of(name)) for name in tensors)
    return not (
        (has_positions and parameter.annotation in (kinds.i64, kinds.const_i64))
        or (parameter.fact(facts.NamesAxis) and parameter.annotation not in (kinds.Size, kinds.const_Size))
        or parameter.fact(facts.OneOf)
        or issubclass(parameter.annotation, kinds.boolean)
    )


def _attribute(draw: DrawFn, known: Known, parameter: Parameter, value: Any, ranks: int, dtype: Dtype) -> Any:
    """An attribute over its whole domain where that is known: of numbers, what lies between those of the cases."""
    if parameter.fact(facts.NamesAxis):
        return _axes(draw, value, ranks)
    if texts := parameter.fact(facts.OneOf):
        return draw(st.sampled_from(texts.choices))
    if issubclass(parameter.annotation, kinds.boolean):
        return draw(st.booleans())
    others = known.values_of(parameter.name, dtype)
    same = [other for other in others if type(other) is type(value)]
    if type(value) is float:
        return draw(st.floats(min(same), max(same))) if all(map(math.isfinite, same)) else value
    if type(value) is int and issubclass(parameter.annotation, kinds.Scalar):
        return draw(st.integers(min(same), max(same)))
    return value if parameter.annotation in WHOLE else draw(st.sampled_from(same))


# Element types.


def other_types(draw: DrawFn, known: Known, case: Case) -> Case:
    """Another element type under test, with the domains of a case that has it; operands of several types."""
    if not known.prototype.dtypes:
        return case
    new = draw(st.sampled_from(known.prototype.dtypes))
    donors = known.of_category(new)
    if category(new) != category(case.dtype) and known.is_made_for_attributes(case):
        return case
    if new is not case.dtype and donors:
        case = _in_type(known, case, new, draw(st.sampled_from(donors)))
    if known.mixes_types and draw(_sometimes):
        case = _in_several_types(draw, known, case)
    return _ordered(draw, known, case)


def _in_type(known: Known, case: Case, new: Dtype, donor: Case) -> Case:
    domains = _domains(donor)

    def typed(name: str, spec: TensorSpec) -> TensorSpec:
        taken = known.prototype.dtypes_of(name) if not name.startswith("_") else known.prototype.dtypes
        if isinstance(spec.compute, ResultOf) and not name.startswith("_"):
            saved = lookup(spec.compute.function).rule_of(spec.compute.result)([new])
            return replace(spec, dtype=saved) if saved in taken else spec
        if spec.dtype is not case.dtype or new not in taken:
            return spec
        of_other_kind = category(new) != category(case.dtype)
        return replace(spec, dtype=new, domain=domains.get(name, spec.domain) if of_other_kind else spec.domain)

    arguments = dict(with_tensors(case, typed))
    if category(new) != category(case.dtype):
        scalars = [p.name for p in known.attributes if issubclass(p.annotation, kinds.Scalar)]
        arguments |= {name: donor.arguments[name] for name in scalars}
    results = {name: one and replace(one, dtype=None) for name, one in case.results.items()}
    return replace(case, dtype=new, arguments=arguments, results=results)


def _in_several_types(draw: DrawFn, known: Known, case: Case) -> Case:
    """Each operand but the first in a type of its own; what is overwritten must hold the result."""
    first = next(name for name, _ in named_tensors(case))
    arguments = dict(case.arguments)
    for p in known.prototype.operands:
        spec = arguments[p.name]
        if p.name == first or not isinstance(spec, TensorSpec):
            continue
        dtype = draw(st.sampled_from(known.prototype.dtypes_of(p.name)))
        domains = [_domains(other).get(p.name) for other in known.of_category(dtype)]
        if category(dtype) != category(spec.dtype) and domains and domains[0]:
            arguments[p.name] = replace(spec, dtype=dtype, domain=domains[0])
        elif category(dtype) == category(spec.dtype):
            arguments[p.name] = replace(spec, dtype=dtype)
    mixed = replace(
        case, arguments=arguments, results={n: one and replace(one, dtype=None) for n, one in case.results.items()}
    )
    return mixed if _holds_its_result(known, mixed) else case


def _holds_its_result(known: Known, case: Case) -> bool:
    if not known.prototype.is_inplace:
        return True
    operands = [case.arguments[p.name] for p in known.prototype.operands]
    tensors = [value.dtype for value in operands if isinstance(value, TensorSpec)]
    numbers = [value for value in operands if value is not None and not isinstance(value, TensorSpec)]
    rule = known.prototype.rule_of(known.prototype.results[0].name)
    return category(rule([common(tensors, numbers)])) <= category(tensors[0])


def _ordered(draw: DrawFn, known: Known, case: Case) -> Case:
    """A result in another type, of those the caller may order."""
    if not known.prototype.ordered or not draw(_sometimes):
        return case
    dtype = draw(st.sampled_from(known.prototype.ordered))
    results = {name: one and replace(one, dtype=dtype) for name, one in case.results.items()}
    return replace(case, results=results)


# Where the elements lie.


def other_layouts(draw: DrawFn, known: Known, case: Case) -> Case:
    """Each tensor that lies otherwise than row by row in some case in a layout of its own."""
    if known.orders_memory:
        return case
    dense = [LAYOUTS[name] for name in ("contiguous", "transposed", "strided", "channels_last")]

    def laid(name: str, spec: TensorSpec) -> TensorSpec:
        if name not in known.laid:
            return spec
        views = [expanded] if name in known.may_be_expanded and spec.compute is None else []
        return replace(spec, layout=draw(st.sampled_from([*dense, *views])))

    made = [p.name for p in known.prototype.results if p.annotation in (kinds.Out, kinds.Outs) and p.name in known.laid]
    results = {**case.results}
    for name in made:
        if (one := results.get(name, ResultOverride())) is not None:
            results[name] = replace(one, layout=draw(st.sampled_from(dense)))
    return replace(case, arguments=with_tensors(case, laid), results=results)


# Values.


def other_values(draw: DrawFn, known: Known, case: Case) -> Case:
    """Values from the domains of another case, of another size, or of several domains in one tensor."""
    donors = known.of_category(case.dtype)
    way = draw(st.sampled_from(["scaled", "another", "mixed"]))
    if way == "scaled" or not donors:
        exponent = draw(st.integers(-30, 30))
        return replace(case, arguments=with_tensors(case, lambda n, s: _scaled(known, n, s, exponent)))
    donor = draw(st.sampled_from(donors))
    domains, given = _domains(donor), _domains(case)
    numbers = [p.name for p in known.attributes if issubclass(p.annotation, REAL)]

    def drawn(name: str, spec: TensorSpec) -> TensorSpec:
        other = domains.get(name)
        if other is None or spec.compute is not None or category(spec.dtype) == 1 != category(case.dtype):
            return spec
        mixes = way == "mixed" and known.prototype.elementwise and name in given
        return replace(spec, domain=_mixed(spec.domain, other) if mixes else other)

    return replace(case, arguments={**with_tensors(case, drawn), **{name: donor.arguments[name] for name in numbers}})


def _with_domains(donor: Case) -> Callable[[str, TensorSpec], TensorSpec]:
    """Gives floating tensors the domains of another case."""
    domains = _domains(donor)

    def changed(name: str, spec: TensorSpec) -> TensorSpec:
        fits = name in domains and spec.compute is None and category(spec.dtype) == category(donor.dtype) >= 2
        return replace(spec, domain=domains[name]) if fits else spec

    return changed


def _domains(case: Case) -> dict[str, Domain]:
    """The domains of a case's tensors, of those that have one."""
    return {name: spec.domain for name, spec in named_tensors(case) if spec.compute is None}


def _mixed(one: Domain, other: Domain) -> Domain:
    """Values of both, in places drawn at random."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        first, second = one(rng, count, dtype), other(rng, count, dtype)
        return np.where(rng.random(count) < 0.5, first, second)

    return draw


def _scaled(known: Known, name: str, spec: TensorSpec, exponent: int) -> TensorSpec:
    """A tensor of values 2^exponent as large, as far as they lie between those of the cases; squares do not vanish."""
    if spec.compute is not None or category(spec.dtype) < 2 or name.startswith("_"):
        return spec
    low, high = known.range_of(name)
    factor = 2.0 ** max(exponent, -(format_of(spec.dtype).max_exponent // 4))
    domain = spec.domain

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        values = domain(rng, count, dtype)
        with np.errstate(all="ignore"):
            scaled = values * factor
        parts = (scaled.real, scaled.imag) if np.iscomplexobj(scaled) else (scaled,)
        least = format_of(dtype).tiny  # what would be subnormal, or 0, stays as it is
        within = np.logical_and.reduce([(low <= part) & (part <= high) & (np.abs(part) >= least) for part in parts])
        return np.where(within, scaled, values)

    return replace(spec, domain=draw)


_sometimes = st.sampled_from([False, False, True])
_rarely = st.sampled_from([False] * 9 + [True])

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
"""Those for functions that draw at random: their numbers are judged by tests that want data as their cases have."""


def changes_for(known: Known) -> Sequence[Change]:
    """The changes that a function's calls may have."""
    return OF_DRAWS if known.prototype.promise == "random" else CHANGES


def fits(known: Known, case: Case) -> bool:
    """Whether a call is of a size that the reference computes quickly."""
    return elements(case) <= 2 * most_elements(known)
