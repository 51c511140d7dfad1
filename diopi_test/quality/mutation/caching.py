"""Mutants that cache a value of a call and reuse it in a later, different call that has the same key.

The first call of each key stores what later calls with the same key use: a plan, an element type, a result. The order
of the calls therefore decides what is cached. The cases run in the order of their file, as in a run.
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
from diopi_test.execution.negative_cases import inferred_dtype
from diopi_test.oracle.data import convert_array, widen
from diopi_test.oracle.records import BaselineCase, expected_arrays, tensors_in
from diopi_test.quality.mutation.mutant import Array, Corruption, Effect, Mutant, SimulatedCall
from diopi_test.quality.mutation.randomness import is_random
from lib_rt import Tensor
from lib_rt.dtypes import to_numpy

Key = Callable[[BaselineCase], Hashable]
"""A function that returns the key under which a call finds the cached value."""

Mistake = Callable[[SimulatedCall, SimulatedCall], Effect]
"""A function that corrupts the second call with a value cached in the first one, and returns the effect."""


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


# The names of kinds of mutants, which describe the defect
ATTRIBUTE, STRIDES = "attribute cached from an earlier call", "strides cached from an earlier call"
TYPES, RESULT = "element types cached from an earlier call", "result cached without regard to data"

CACHING_KINDS = frozenset({ATTRIBUTE, STRIDES, TYPES, RESULT})
"""The kinds of caching mutants that nearly every function can have.

If a mutant of these kinds changes no result of any case, no case can reveal it, and reports list the mutant.
"""


def caching_mutants(function: str) -> Iterator[Mutant]:
    """Yield the mutants of a function that cache values between calls.

    Args:
        function: the name of the function.

    Yields:
        The mutants.
    """
    names = _attribute_names(function)
    for name in names:
        yield _caching_mutant(CachedValue(ATTRIBUTE, _shape_and_type_key, _use_cached_attributes(name)), name)
    if len(names) > 1:
        yield _caching_mutant(
            CachedValue(
                "all attributes cached from an earlier call", _shape_and_type_key, _use_cached_attributes(*names)
            )
        )
    has_tensors = any(p.is_tensor or p.is_tensor_array for p in lookup(function).arguments)
    yield from map(
        _caching_mutant,
        (*_RANDOM_VALUES, *_COMPUTED_VALUES) if has_tensors and not is_random(function) else _RANDOM_VALUES,
    )
    if has_tensors and not is_random(function):
        yield Mutant(name=STRIDES, make_stride_caching=_cache_strides)


def _caching_mutant(part: CachedValue, parameter: str | None = None) -> Mutant:
    """Return the mutant that caches a value; `parameter` names the cached attribute."""
    name = part.kind if parameter is None else f"{parameter} cached from an earlier call"
    return Mutant(name=name, kind=part.kind, parameter=parameter, make_caching=partial(remember_first_call, part))


def remember_first_call(part: CachedValue) -> Corruption:
    """Return a corruption that stores the first call of each key and applies the mistake to later calls of the key."""
    first: dict[Hashable, SimulatedCall] = {}

    def corrupt(call: SimulatedCall) -> Effect:
        """Cache the first call of each key; apply the mistake if an earlier call has the same key."""
        key = part.key(call.case)
        earlier = first.setdefault(key, replace(call, results={n: list(a) for n, a in call.results.items()}))
        if earlier.case is call.case:
            return Effect.not_applicable
        call.earlier = earlier.case.label
        return part.mistake(earlier, call)

    return corrupt


# Keys


def _tensor_properties(case: BaselineCase, *property_names: str) -> Hashable:
    """Return the named properties, `shape` or `dtype`, of every tensor argument; None for an omitted tensor."""

    def properties_of(value: Any) -> Hashable:
        """Return the properties of a tensor, or of each tensor in a list."""
        if isinstance(value, list):
            return tuple(map(properties_of, value))
        properties = {"shape": value.values.shape, "dtype": value.dtype} if tensors_in(value) else {}
        return tuple(properties.get(property_name) for property_name in property_names)

    tensors = (p.name for p in lookup(case.function).arguments if p.is_tensor or p.is_tensor_array)
    return tuple(properties_of(case.arguments[name]) for name in tensors)


def _shape_key(case: BaselineCase) -> Hashable:
    """Return a key that consists of the shapes of all tensor arguments."""
    return _tensor_properties(case, "shape")


def _shape_and_type_key(case: BaselineCase) -> Hashable:
    """Return a key that consists of the shapes and element types of all tensor arguments."""
    return _tensor_properties(case, "shape", "dtype")


def _python_equality_key(case: BaselineCase) -> Hashable:
    """Return a key of the shapes and types of all tensor arguments, and of the attributes.

    Attributes are compared as Python does: 0, 0.0, −0.0 and False are equal.
    """
    values = [case.arguments[name] for name in _attribute_names(case.function)]
    return _shape_and_type_key(case), tuple(values)


def _key_without_data(case: BaselineCase) -> Hashable:
    """Return a key of the attributes, and of the shapes and types of tensor arguments and results.

    The key contains neither the elements nor the strides of tensors.
    """
    values = [repr(case.arguments[name]) for name in _attribute_names(case.function)]
    return _shape_and_type_key(case), tuple(values), _result_form_key(case)


def _result_form_key(case: BaselineCase) -> Hashable:
    """Return a key that consists of the shapes and element types of all results."""
    return tuple(
        (name, tuple((entry.values.shape, entry.dtype) for entry in expected_arrays(value)))
        for name, value in case.expected.items()
    )


def _unordered_tensor_key(case: BaselineCase) -> Hashable:
    """Return a key of the shapes and types of all arguments that are single tensors, without regard to their order."""
    return tuple(sorted(map(repr, _forms_by_name(case).values())))


def _forms_by_name(case: BaselineCase) -> Mapping[str, Hashable]:
    """Return shape and element type of every argument that is a single tensor, by name."""
    tensors = {p.name: case.arguments[p.name] for p in lookup(case.function).arguments if p.is_tensor}
    return {name: (value.values.shape, value.dtype.name) for name, value in tensors.items() if value is not None}


def _attribute_names(function: str) -> list[str]:
    """Return the names of a function's attributes, except generators."""
    return [p.name for p in lookup(function).arguments if p.role is Role.attribute and p.annotation not in GENERATORS]


# Mistakes


def _use_cached_attributes(*names: str) -> Mistake:
    """Return a mistake that uses the attributes of the earlier call."""

    def mistake(earlier: SimulatedCall, call: SimulatedCall) -> Effect:
        """Recompute the later call with the attributes of the earlier call, if they differ."""
        cached = {name: earlier.case.arguments[name] for name in names}
        if all(repr(value) == repr(call.case.arguments[name]) for name, value in cached.items()):
            return Effect.not_applicable
        return call.recompute(**cached)

    return mistake


def _use_cached_types(earlier: SimulatedCall, call: SimulatedCall) -> Effect:
    """Convert tensors to the earlier call's types, and results to the earlier call's result types and back.

    Returns:
        `not_applicable` if the types of all arguments are equal, `undefined` if the standard defines no result for the
        converted arguments, else whether a result changed.
    """

    def convert(value: Any, earlier_value: Any) -> Any:
        """Return an argument with its tensors converted to the element types of the earlier call."""
        if isinstance(value, list):
            return [convert(entry, earlier_entry) for entry, earlier_entry in zip(value, earlier_value, strict=True)]
        if not tensors_in(value):
            return value
        return convert_array(value.values, earlier_value.dtype)

    if _tensor_properties(earlier.case, "dtype") == _tensor_properties(call.case, "dtype"):
        return Effect.not_applicable
    arguments, cached = call.case.arguments, earlier.case.arguments
    tensors = (p.name for p in call.prototype.arguments if p.is_tensor or p.is_tensor_array)
    expected = call.results
    if call.recompute(**{n: convert(arguments[n], cached[n]) for n in tensors if arguments[n]}) is Effect.undefined:
        return Effect.undefined
    converted_results, call.results = call.results, expected
    return call.replace_results(
        {name: _convert_to_cached_types(earlier.results[name], arrays) for name, arrays in converted_results.items()}
    )


def _convert_to_cached_types(earlier: Sequence[Array], arrays: Sequence[Array]) -> list[Array]:
    """Return arrays converted to the element types of earlier arrays and back.

    The arrays stay unchanged if there are more or fewer earlier arrays.
    """
    if len(earlier) != len(arrays):
        return list(arrays)
    pairs = zip(earlier, arrays, strict=True)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # changed arguments and formulas may cause any warning
        return [array.astype(cached.dtype).astype(array.dtype) for cached, array in pairs]


def _use_cached_kind_of_scalar(earlier: SimulatedCall, call: SimulatedCall) -> Effect:
    """Use the scalars of the earlier call with their Python types, which also change the type promotion.

    The keys of both calls are equal, so the scalars differ in their types, or in the sign of a zero. The call returns
    an error code if the promoted type has a higher category (such as floating-point) than a result tensor.

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
    """Replace the results by the results of the earlier call; return whether a specified element changed."""
    return call.replace_results({name: list(arrays) for name, arrays in earlier.results.items()})


def _use_cached_order(earlier: SimulatedCall, call: SimulatedCall) -> Effect:
    """Reorder the tensors so that their shapes and types are in the order of the earlier call.

    Returns:
        `not_applicable` if the order is equal or the parameters differ, else the effect of the reordered arguments.
    """
    earlier_forms, forms = _forms_by_name(earlier.case), _forms_by_name(call.case)
    if earlier_forms == forms or set(earlier_forms) != set(forms):
        return Effect.not_applicable
    remaining = dict(forms)
    source: dict[str, str] = {}
    for name, form in earlier_forms.items():
        source[name] = next(source_name for source_name, remaining_form in remaining.items() if remaining_form == form)
        del remaining[source[name]]
    plain = call.case.plain_arguments()
    return call.recompute(**{name: plain[source_name] for name, source_name in source.items()})


_RANDOM_VALUES = (CachedValue("result cached by shape and type", _result_form_key, _use_cached_results),)
"""The values that every function may cache in addition to attributes, even a random function."""

_COMPUTED_VALUES = (
    CachedValue(RESULT, _key_without_data, _use_cached_results),
    CachedValue(TYPES, _shape_key, _use_cached_types),
    CachedValue("kind of scalar cached from an earlier call", _python_equality_key, _use_cached_kind_of_scalar),
    CachedValue("order of tensors cached from an earlier call", _unordered_tensor_key, _use_cached_order),
)
"""Further values that a function with tensor arguments may cache, unless it is random."""


# Strides: the calls of one case may differ in them, so the earlier call may belong to the same case


def _cache_strides() -> Callable[[SimulatedCall, Mapping[str, Any]], Effect]:
    """Return a corruption that reads a tensor with the strides of an earlier call.

    The earlier call is the first call that is equal except for the elements and strides of its tensors. If the strides
    of several tensors differ, the corruption misreads them one after the other until a result changes. It does not stop
    at an undefined result, which misread indices may give, for example.

    Returns:
        The corruption.
    """
    earlier_calls: dict[Hashable, tuple[str, dict[str, Any]]] = {}

    def corrupt(call: SimulatedCall, arguments: Mapping[str, Any]) -> Effect:
        """Read each tensor whose own strides differ with the cached strides, until a result changes."""
        tensors = {
            name: value for name, value in arguments.items() if name in call.case.arguments and _dense_tensors(value)
        }
        strides = {name: [tensor.strides for tensor in _dense_tensors(value)] for name, value in tensors.items()}
        call.earlier, cached_strides = earlier_calls.setdefault(
            _key_without_data(call.case), (call.case.label, strides)
        )
        effect = Effect.not_applicable
        for name in tensors:
            if effect is not Effect.changed and cached_strides[name] != strides[name]:
                effect = call.recompute(**{name: _read_with_strides(tensors[name], iter(cached_strides[name]))})
        return effect

    return corrupt


def _dense_tensors(value: Any) -> list[Tensor]:
    """Return the tensors of a value, except sparse ones, which have no strides."""
    tensors = [tensor for tensor in (value if isinstance(value, list) else [value]) if isinstance(tensor, Tensor)]
    return [tensor for tensor in tensors if tensor.strides or not tensor.shape]


def _read_with_strides(value: Any, strides: Iterator[Sequence[int]]) -> Any:
    """Return the elements that a tensor, or each tensor of an array, has if it is read with other strides.

    Args:
        value: the tensor or the list of tensors.
        strides: the strides of each tensor, in elements.

    Returns:
        An array in the type in which the reference computes, or a list of arrays. Places after the end of the storage
        wrap to its beginning.
    """
    if isinstance(value, list):
        return [tensor and _read_with_strides(tensor, strides) for tensor in value]
    places = np.full(value.shape, value.storage_offset)
    for axis, stride in enumerate(next(strides)):
        broadcast_shape = [1] * len(value.shape)
        broadcast_shape[axis] = -1
        places += (np.arange(value.shape[axis]) * stride).reshape(broadcast_shape)
    elements = np.frombuffer(value.storage().tobytes(), to_numpy(value.dtype))
    with np.errstate(all="ignore"):
        return widen(elements[places % max(elements.size, 1)], value.dtype)
