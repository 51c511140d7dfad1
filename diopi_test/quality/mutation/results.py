"""Faults of results: elements wrong, in a narrower type or another order; not written, or not made as asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

from diopi_proto.interface import lookup
from diopi_proto.parameters import Role
from diopi_proto.types import Dtype, MemoryFormat
from diopi_test.baseline.records import Expected, expected_arrays, tensors_in
from diopi_test.cases.formats import FORMATS, format_of
from diopi_test.cases.layouts import contiguous, layout_named
from diopi_test.oracle.budget import K
from diopi_test.quality.mutation.mutant import (
    Array,
    Effect,
    Mutant,
    SimulatedCall,
    changed_if,
    differ,
    is_float,
    transposed,
)
from lib_rt import poison_of
from lib_rt.dtypes import from_numpy, to_numpy


def _each(change: Callable[[Array], Array | None], of_draws: bool = False) -> Callable[[SimulatedCall], Effect]:
    """A fault of every result array by itself; `change` gives the wrong array, or None if it can't show there.

    In random results any element may differ: only faults `of_draws` apply to them.
    """
    return _each_expected(lambda array, expected: change(array), of_draws)


def _each_expected(
    change: Callable[[Array, Expected], Array | None], of_draws: bool = False
) -> Callable[[SimulatedCall], Effect]:
    """As `_each`; `change` sees the expectation too. A difference counts where the standard specifies the result."""

    def corrupt(call: SimulatedCall) -> Effect:
        corrupted = False
        for name, arrays in call.results.items():
            for number, expected in enumerate(expected_arrays(call.case.expected[name])):
                by_chance = expected.needs_validator and call.case.draws
                wrong = change(arrays[number], expected) if of_draws or not by_chance else None
                if wrong is not None:
                    corrupted |= _is_wrong(wrong.reshape(arrays[number].shape), arrays[number], expected.specified)
                    arrays[number] = wrong.reshape(arrays[number].shape)
        return changed_if(corrupted)

    return corrupt


def _is_wrong(given: Array, right: Array, specified: Any) -> bool:
    where = ... if specified is None else specified
    return given[where].tobytes() != right[where].tobytes()


def _element(position: Callable[[int], int]) -> Callable[[Array], Array | None]:
    """One element is wrong: by a tenth of itself plus a constant, negated where it is a truth value."""

    def change(array: Array) -> Array | None:
        if not array.size:
            return None
        wrong = array.copy().reshape(-1)
        index = position(array.size)
        value = wrong[index]
        if wrong.dtype == bool:
            wrong[index] = not value
        elif wrong.dtype.kind in "iu":
            wrong[index] = value ^ 1
        else:
            with np.errstate(all="ignore"):
                wrong[index] = 1 if not np.isfinite(value) else value * array.dtype.type(1.125) + array.dtype.type(1)
        return wrong

    return change


def _tail_unwritten(array: Array) -> Array | None:
    """The last partial block of sixteen is not computed."""
    start = (array.size - 1) // 16 * 16 if array.size > 16 else array.size - 1
    if not array.size:
        return None
    wrong = array.copy().reshape(-1)
    wrong.view(np.uint8).reshape(array.size, -1)[start:] = 0
    return wrong


def _scaled(relative: float) -> Callable[[Array], Array | None]:
    def change(array: Array) -> Array | None:
        if not is_float(array):
            return None
        with np.errstate(all="ignore"):
            return (array.astype(np.complex128 if array.dtype.kind == "c" else np.float64) * (1 + relative)).astype(
                array.dtype
            )

    return change


def _off_by_epsilons(array: Array) -> Array | None:
    """Every element is off by four times the distance from 1 to the next number."""
    if not is_float(array):
        return None
    return _scaled(4 * float(ml_dtypes.finfo(array.dtype).eps))(array)


def _replaced(condition: Callable[[Array], Array], value: Callable[[Array], Any]) -> Callable[[Array], Array | None]:
    """Floating elements that meet a condition become something else."""

    def change(array: Array) -> Array | None:
        if not is_float(array) or array.dtype.kind == "c":
            return None
        with np.errstate(all="ignore"):
            return np.where(condition(array), value(array), array).astype(array.dtype)

    return change


def _zeros_positive(array: Array, expected: Expected) -> Array | None:
    """Negative zeros become positive, except for underflow and cancellation, whose zeros have any sign."""
    if not is_float(array) or array.dtype.kind == "c":
        return None
    zeros = (expected.values == 0) & np.signbit(expected.values)
    if expected.unit is not None:
        zeros &= K * expected.unit < format_of(expected.dtype).tiny
    return np.where(zeros, np.zeros_like(array), array)


def _through(dtype: Dtype) -> Callable[[Array], Array | None]:
    """The result was computed in a narrower type and cast."""
    narrow = to_numpy(dtype)

    def change(array: Array) -> Array | None:
        own = next((d for d in FORMATS if to_numpy(d) == array.dtype), None)
        if own is None or FORMATS[own].precision <= FORMATS[dtype].precision:
            return None
        with np.errstate(all="ignore"):
            return array.astype(narrow).astype(array.dtype)

    return change


def _through_double(array: Array) -> Array | None:
    """Integers pass through double."""
    with np.errstate(invalid="ignore"):
        return array.astype(np.float64).astype(array.dtype) if array.dtype == np.int64 else None


def _reversed(array: Array) -> Array | None:
    """Indices and counts come in the reverse order along the first axis that has two."""
    axis = next((i for i, length in enumerate(array.shape) if length > 1), None)
    return None if axis is None or array.dtype.kind not in "iu" else np.flip(array, axis).copy()


def _neighbours_exchanged(array: Array) -> Array | None:
    """The first two indices or counts that differ change places."""
    flat = array.reshape(-1).copy()
    differing = np.flatnonzero(flat[1:] != flat[:-1])
    if array.dtype.kind not in "iu" or not differing.size:
        return None
    first = differing[0]
    flat[[first, first + 1]] = flat[[first + 1, first]]
    return flat


def _repeated(array: Array) -> Array | None:
    """Every element comes twice, and the last half of them never."""
    return np.repeat(array.reshape(-1), 2)[: array.size]


def _added(array: Array) -> Array:
    """The result added to what an equal call before left behind; truth values are negated."""
    with np.errstate(all="ignore"):
        return ~array if array.dtype == bool else array + array


def _not_written(*names: str) -> Callable[[SimulatedCall], Effect]:
    """Results stay as they were found: poison, or the old state. So is anything written after the stream's work."""

    def corrupt(call: SimulatedCall) -> Effect:
        left = {name: call.results.pop(name) for name in names or list(call.results)}
        found = {name: found_before(call, name, arrays) for name, arrays in left.items()}
        return changed_if(differ(left, found))

    return corrupt


def found_before(call: SimulatedCall, name: str, arrays: list[Array]) -> list[Array]:
    """What the tensors of a result hold before the call, or the size that is passed by pointer."""
    given = call.case.arguments.get(name)
    if given is None:
        return [_poison(array) for array in arrays]
    return [tensor.values for tensor in tensors_in(given)] or [np.asarray(given) for _ in arrays]


def _poison(array: Array) -> Array:
    return np.frombuffer(poison_of(from_numpy(array.dtype)) * array.size, array.dtype).reshape(array.shape)


def _made_contiguous(call: SimulatedCall) -> Effect:
    """Results that the callee makes are in row-major order, whatever memory format was requested."""
    wanted, call.layouts = call.layouts, dict.fromkeys(call.layouts, "contiguous")
    return changed_if(
        any(
            layout_named(wanted[name])(array.shape) != contiguous(array.shape)
            for name in wanted
            for array in call.results[name]
        )
    )


_OTHER_TYPES = {Dtype.float32: Dtype.float64, Dtype.int64: Dtype.int32, Dtype.int32: Dtype.int64}


def _made_in_another_type(call: SimulatedCall) -> Effect:
    """Results that the callee makes are of a neighbouring type, with the same values."""
    for name in call.layouts:
        call.results[name] = [_as_another_type(array) for array in call.results[name]]
    return changed_if(bool(call.layouts))


def _as_another_type(array: Array) -> Array:
    other = _OTHER_TYPES.get(from_numpy(array.dtype), Dtype.float32)
    with np.errstate(all="ignore"):
        return (array.real if array.dtype.kind == "c" else array).astype(to_numpy(other))


def result_mutants(function: str) -> Iterator[Mutant]:
    """The faults of results; nearly all are the same for every function."""
    yield from _COMMON
    results = lookup(function).results
    if any(result.is_callee_allocated for result in results):
        yield Mutant("result allocated in another type", _made_in_another_type)
    for attribute in lookup(function).arguments:
        if attribute.annotation is MemoryFormat:
            yield Mutant(f"{attribute.name} ignored", _made_contiguous, None, "attribute ignored", attribute.name)
    for result in results:
        if result.role is Role.inout:
            yield Mutant(f"{result.name} not updated", _not_written(result.name), kind="state not updated")
        elif len(results) > 1:
            yield Mutant(f"{result.name} not written", _not_written(result.name), kind="result not written")


_COMMON = (
    Mutant("first element wrong", _each(_element(lambda size: 0))),
    Mutant("last element wrong", _each(_element(lambda size: size - 1))),
    Mutant("one element in 2000 wrong", _each(_element(lambda size: 1999 % size))),
    Mutant("last block not computed", _each(_tail_unwritten)),
    Mutant("result added to the previous result", corrupt_repetition=_each(_added)),
    Mutant("all elements zero", _each(np.zeros_like, of_draws=True)),
    Mutant("nothing written", _not_written()),
    Mutant("off by 4 eps", _each(_off_by_epsilons)),
    Mutant("off by 1e-3", _each(_scaled(1e-3))),
    Mutant("off by 4 %", _each(_scaled(0.04))),
    Mutant("NaN replaced by 0", _each(_replaced(np.isnan, np.zeros_like))),
    Mutant(
        "infinity replaced by the largest number",
        _each(_replaced(np.isinf, lambda a: np.copysign(ml_dtypes.finfo(a.dtype).max, a))),
    ),
    Mutant("sign of zero dropped", _each_expected(_zeros_positive)),
    Mutant("computed in bfloat16", _each(_through(Dtype.bfloat16))),
    Mutant("computed in float16", _each(_through(Dtype.float16))),
    Mutant("computed in float32", _each(_through(Dtype.float32))),
    Mutant("integers converted to float64 and back", _each(_through_double)),
    Mutant("result transposed", _each(transposed)),
    Mutant("indices reversed", _each(_reversed)),
    Mutant("neighboring indices swapped", _each(_neighbours_exchanged)),
    Mutant("every element repeated", _each(_repeated, of_draws=True)),
)
