"""Mutants that cache: they reuse a value of an earlier call under a key that is equal for two different calls.

The first call of each key stores what later calls with the same key use: a plan, an element type, a result. The cases
run in the order of their file, as in a run.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, final

import numpy as np

from diopi_proto.dtypes import category
from diopi_proto.interface import lookup
from diopi_proto.parameters import GENERATORS, Role, Scalar
from diopi_proto.types import Error
from diopi_test.cases.data import convert_array, widen
from diopi_test.execution.negative_cases import inferred_dtype
from diopi_test.oracle.records import BaselineCase, expected_arrays, tensors_in
from diopi_test.quality.mutation.mutant import Array, Corruption, Effect, Mutant, SimulatedCall
from diopi_test.quality.mutation.randomness import is_random
from lib_rt import Tensor
from lib_rt.dtypes import to_numpy

Key = Callable[[BaselineCase], Hashable]
Mistake = Callable[[SimulatedCall, SimulatedCall], Effect]
"""Corrupts the second answer with what the call of the first left behind."""


@final
@dataclass(frozen=True)
class CachedValue:
    """A value of a call that a mutant caches.

    Attributes:
        kind: the kind of the mutant.
        key: returns the cache key; the mutant does not distinguish calls with equal keys.
        mistake: corrupts the later call.
    """

    kind: str
    key: Key
    mistake: Mistake


ATTRIBUTE, STRIDES = "attribute cached from an earlier call", "strides cached from an earlier call"
TYPES, RESULT = "element types cached from an earlier call", "result cached without regard to data"

CACHING_KINDS = frozenset({ATTRIBUTE, STRIDES, TYPES, RESULT})
"""The kinds of faults that nearly every function can have."""


def caching_mutants(function: str) -> Iterator[Mutant]:
    """Yield the mutants of a function that cache values between calls.

    Args:
        function: the name of the function.

    Yields:
        The mutants.
    """
    names = _attributes(function)
    for name in names:
        yield _caching_mutant(CachedValue(ATTRIBUTE, _shapes_and_types, _use_cached_attributes(name)), name)
    if len(names) > 1:
        yield _caching_mutant(
            CachedValue("all attributes cached from an earlier call", _shapes_and_types, _use_cached_attributes(*names))
        )
    has_tensors = any(p.is_tensor or p.is_tensor_array for p in lookup(function).arguments)
    yield from map(
        _caching_mutant,
        (*_RANDOM_VALUES, *_COMPUTED_VALUES) if has_tensors and not is_random(function) else _RANDOM_VALUES,
    )
    if has_tensors and not is_random(function):
        yield Mutant(name=STRIDES, make_stride_caching=_cache_strides)


def _caching_mutant(part: CachedValue, parameter: str | None = None) -> Mutant:
    name = part.kind if parameter is None else f"{parameter} cached from an earlier call"
    return Mutant(name=name, kind=part.kind, parameter=parameter, make_caching=partial(remember_first_call, part))


def remember_first_call(part: CachedValue) -> Corruption:
    """Return a corruption that stores the first call of each key and applies the mistake to later ones."""
    first: dict[Hashable, SimulatedCall] = {}

    def corrupt(call: SimulatedCall) -> Effect:
        key = part.key(call.case)
        earlier = first.setdefault(key, replace(call, results={n: list(a) for n, a in call.results.items()}))
        if earlier.case is call.case:
            return Effect.not_applicable
        call.earlier = earlier.case.label
        return part.mistake(earlier, call)

    return corrupt


# Keys


def _forms(case: BaselineCase, *property_names: str) -> Hashable:
    """Return properties of every tensor argument, `shape` or `dtype`; empty for omitted tensors."""

    def form(value: Any) -> Hashable:
        if isinstance(value, list):
            return tuple(map(form, value))
        properties = {"shape": value.values.shape, "dtype": value.dtype} if tensors_in(value) else {}
        return tuple(properties.get(property_name) for property_name in property_names)

    tensors = (p.name for p in lookup(case.function).arguments if p.is_tensor or p.is_tensor_array)
    return tuple(form(case.arguments[name]) for name in tensors)


def _shapes(case: BaselineCase) -> Hashable:
    return _forms(case, "shape")


def _shapes_and_types(case: BaselineCase) -> Hashable:
    return _forms(case, "shape", "dtype")


def _equal_numbers(case: BaselineCase) -> Hashable:
    """Return a key that compares attributes as Python does: 0, 0.0, −0.0 and False are equal."""
    values = [case.arguments[name] for name in _attributes(case.function)]
    return _shapes_and_types(case), tuple(values)


def _everything_but_data(case: BaselineCase) -> Hashable:
    values = [repr(case.arguments[name]) for name in _attributes(case.function)]
    return _shapes_and_types(case), tuple(values), _result_forms(case)


def _result_forms(case: BaselineCase) -> Hashable:
    return tuple(
        (name, tuple((entry.values.shape, entry.dtype) for entry in expected_arrays(value)))
        for name, value in case.expected.items()
    )


def _set_of_tensors(case: BaselineCase) -> Hashable:
    return tuple(sorted(map(repr, _tensor_forms(case).values())))


def _tensor_forms(case: BaselineCase) -> Mapping[str, Hashable]:
    """Return shape and element type of every argument that is a single tensor, by name."""
    tensors = {p.name: case.arguments[p.name] for p in lookup(case.function).arguments if p.is_tensor}
    return {name: (value.values.shape, value.dtype.name) for name, value in tensors.items() if value is not None}


def _attributes(function: str) -> list[str]:
    return [p.name for p in lookup(function).arguments if p.role is Role.attribute and p.annotation not in GENERATORS]


# Mistakes


def _use_cached_attributes(*names: str) -> Mistake:
    """Return a mistake that uses the attributes of the earlier call."""

    def mistake(earlier: SimulatedCall, call: SimulatedCall) -> Effect:
        cached = {name: earlier.case.arguments[name] for name in names}
        if all(repr(value) == repr(call.case.arguments[name]) for name, value in cached.items()):
            return Effect.not_applicable
        return call.recompute(**cached)

    return mistake


def _use_cached_types(earlier: SimulatedCall, call: SimulatedCall) -> Effect:
    """Convert tensors to the element types of the earlier call, and results to its result types and back."""

    def converted(value: Any, before: Any) -> Any:
        if isinstance(value, list):
            return [converted(entry, earlier_entry) for entry, earlier_entry in zip(value, before, strict=True)]
        if not tensors_in(value):
            return value
        return convert_array(value.values, before.dtype)

    if _forms(earlier.case, "dtype") == _forms(call.case, "dtype"):
        return Effect.not_applicable
    arguments, cached = call.case.arguments, earlier.case.arguments
    tensors = (p.name for p in call.prototype.arguments if p.is_tensor or p.is_tensor_array)
    expected = call.results
    if call.recompute(**{n: converted(arguments[n], cached[n]) for n in tensors if arguments[n]}) is Effect.undefined:
        return Effect.undefined
    converted_results, call.results = call.results, expected
    return call.replace_results(
        {name: _stored_as(earlier.results[name], arrays) for name, arrays in converted_results.items()}
    )


def _stored_as(earlier: Sequence[Array], arrays: Sequence[Array]) -> list[Array]:
    """Return arrays converted to the element types of earlier ones and back, if their numbers agree."""
    if len(earlier) != len(arrays):
        return list(arrays)
    pairs = zip(earlier, arrays, strict=True)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # changed arguments and formulas may cause any warning
        return [array.astype(before.dtype).astype(array.dtype) for before, array in pairs]


def _use_cached_kind_of_scalar(earlier: SimulatedCall, call: SimulatedCall) -> Effect:
    """Use the kind of scalar of the earlier call, and therefore its common type.

    The call fails if the type of a result does not fit the caller's tensor.

    Returns:
        The effect.
    """
    scalars = [p.name for p in call.prototype.arguments if issubclass(p.annotation, Scalar)]
    cached = {name: earlier.case.arguments[name] for name in scalars}
    if repr(cached) == repr({name: call.case.arguments[name] for name in scalars}):
        return Effect.not_applicable
    mutated = replace(call.case, arguments={**call.case.arguments, **cached})
    for result in call.prototype.results:
        dtypes = [entry.dtype for entry in expected_arrays(call.case.expected[result.name])]
        if any(category(inferred_dtype(call.prototype, result, mutated)) > category(dtype) for dtype in dtypes):
            call.error = Error.ErrorOccurred
            return Effect.changed
    return call.recompute(**cached)


def _use_cached_results(earlier: SimulatedCall, call: SimulatedCall) -> Effect:
    """Use the results of the earlier call."""
    return call.replace_results({name: list(arrays) for name, arrays in earlier.results.items()})


def _use_cached_order(earlier: SimulatedCall, call: SimulatedCall) -> Effect:
    """Reorder the tensors so that their shapes and types are in the order of the earlier call."""
    before, now = _tensor_forms(earlier.case), _tensor_forms(call.case)
    if before == now or set(before) != set(now):
        return Effect.not_applicable
    remaining = dict(now)
    source: dict[str, str] = {}
    for name, form in before.items():
        source[name] = next(source_name for source_name, remaining_form in remaining.items() if remaining_form == form)
        del remaining[source[name]]
    plain = call.case.plain_arguments()
    return call.recompute(**{name: plain[source_name] for name, source_name in source.items()})


_RANDOM_VALUES = (CachedValue("result cached by shape and type", _result_forms, _use_cached_results),)
"""The values that random functions may cache, in addition to attributes."""

_COMPUTED_VALUES = (
    CachedValue(RESULT, _everything_but_data, _use_cached_results),
    CachedValue(TYPES, _shapes, _use_cached_types),
    CachedValue("kind of scalar cached from an earlier call", _equal_numbers, _use_cached_kind_of_scalar),
    CachedValue("order of tensors cached from an earlier call", _set_of_tensors, _use_cached_order),
)
"""The values that all other functions may cache, in addition."""


# Strides, which the calls of one case differ in


def _cache_strides() -> Callable[[SimulatedCall, Mapping[str, Any]], Effect]:
    """Return a corruption that reads a tensor with the strides of an earlier, otherwise equal call.

    If several tensors differ in their strides, the first one that changes a result is misread, because misread indices
    have
    no defined result.

    Returns:
        The corruption.
    """
    first: dict[Hashable, tuple[str, dict[str, Any]]] = {}

    def corrupt(call: SimulatedCall, arguments: Mapping[str, Any]) -> Effect:
        tensors = {name: value for name, value in arguments.items() if name in call.case.arguments and _dense(value)}
        strides = {name: [tensor.strides for tensor in _dense(value)] for name, value in tensors.items()}
        call.earlier, before = first.setdefault(_everything_but_data(call.case), (call.case.label, strides))
        effect = Effect.not_applicable
        for name in tensors:
            if effect is not Effect.changed and before[name] != strides[name]:
                effect = call.recompute(**{name: _misread(tensors[name], iter(before[name]))})
        return effect

    return corrupt


def _dense(value: Any) -> list[Tensor]:
    """Return the tensors of a value, except sparse ones, which have no strides."""
    tensors = [tensor for tensor in (value if isinstance(value, list) else [value]) if isinstance(tensor, Tensor)]
    return [tensor for tensor in tensors if tensor.strides or not tensor.shape]


def _misread(value: Any, strides: Iterator[Sequence[int]]) -> Any:
    """Return the elements of a tensor, or of each tensor of an array, at other strides; wrap at the end of storage."""
    if isinstance(value, list):
        return [tensor and _misread(tensor, strides) for tensor in value]
    places = np.full(value.shape, value.storage_offset)
    for axis, stride in enumerate(next(strides)):
        broadcast_shape = [1] * len(value.shape)
        broadcast_shape[axis] = -1
        places += (np.arange(value.shape[axis]) * stride).reshape(broadcast_shape)
    elements = np.frombuffer(value.storage().tobytes(), to_numpy(value.dtype))
    with np.errstate(all="ignore"):
        return widen(elements[places % max(elements.size, 1)], value.dtype)
