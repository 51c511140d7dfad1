"""Faults of what is kept: something of an earlier call is used again under a key that is equal for two different calls.

The first call of each key leaves behind what later ones with the same key use: a plan, an element type, a result. They
are tried on the cases in the order of their file, in which a vendor gets them too.
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
from diopi_test.baseline.records import BaselineCase, expected_arrays, tensors_in
from diopi_test.cases.data import convert_array, widen
from diopi_test.execution.negative_cases import standard_dtype
from diopi_test.quality.mutation.mutant import Array, Corruption, Effect, Mutant, SimulatedCall
from diopi_test.quality.mutation.randomness import is_random
from lib_rt import Tensor
from lib_rt.dtypes import to_numpy

Key = Callable[[BaselineCase], Hashable]
Mistake = Callable[[SimulatedCall, SimulatedCall], Effect]
"""Corrupts the second answer with what the call of the first left behind."""


@final
@dataclass(frozen=True)
class Part:
    """What of a call is kept.

    Attributes:
        kind: of the fault.
        key: calls with equal keys are taken for the same.
        mistake: how the later call goes wrong.
    """

    kind: str
    key: Key
    mistake: Mistake


ATTRIBUTE, STRIDES = "attribute cached from an earlier call", "strides cached from an earlier call"
TYPES, RESULT = "element types cached from an earlier call", "result cached without regard to data"

CACHING_KINDS = frozenset({ATTRIBUTE, STRIDES, TYPES, RESULT})
"""The kinds of faults that nearly every function can have."""


def caching_mutants(function: str) -> Iterator[Mutant]:
    """The faults of what a function keeps from call to call."""
    names = _attributes(function)
    for name in names:
        yield _fault(Part(ATTRIBUTE, _shapes_and_types, _with_attributes(name)), name)
    if len(names) > 1:
        yield _fault(Part("all attributes cached from an earlier call", _shapes_and_types, _with_attributes(*names)))
    has_tensors = any(p.is_tensor or p.is_tensor_array for p in lookup(function).arguments)
    yield from map(_fault, (*_OF_DRAWS, *_OF_ANSWERS) if has_tensors and not is_random(function) else _OF_DRAWS)
    if has_tensors and not is_random(function):
        yield Mutant(STRIDES, make_stride_caching=_strides_kept)


def _fault(part: Part, parameter: str | None = None) -> Mutant:
    name = part.kind if parameter is None else f"{parameter} cached from an earlier call"
    return Mutant(name, kind=part.kind, parameter=parameter, make_caching=partial(keeping, part))


def keeping(part: Part) -> Corruption:
    """Remembers the first call of each key, and applies the mistake to later ones."""
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


def _forms(case: BaselineCase, *of_a_tensor: str) -> Hashable:
    """A property of every tensor argument, `shape` or `dtype`; None for those left out."""

    def form(value: Any) -> Hashable:
        if isinstance(value, list):
            return tuple(map(form, value))
        said = {"shape": value.values.shape, "dtype": value.dtype} if tensors_in(value) else {}
        return tuple(said.get(what) for what in of_a_tensor)

    tensors = (p.name for p in lookup(case.function).arguments if p.is_tensor or p.is_tensor_array)
    return tuple(form(case.arguments[name]) for name in tensors)


def _shapes(case: BaselineCase) -> Hashable:
    return _forms(case, "shape")


def _shapes_and_types(case: BaselineCase) -> Hashable:
    return _forms(case, "shape", "dtype")


def _equal_numbers(case: BaselineCase) -> Hashable:
    """Attributes compared as Python compares them: 0, 0.0, −0.0 and False are equal."""
    values = [case.arguments[name] for name in _attributes(case.function)]
    return _shapes_and_types(case), tuple(values)


def _all_but_data(case: BaselineCase) -> Hashable:
    values = [repr(case.arguments[name]) for name in _attributes(case.function)]
    return _shapes_and_types(case), tuple(values), _result_forms(case)


def _result_forms(case: BaselineCase) -> Hashable:
    return tuple(
        (name, tuple((entry.values.shape, entry.dtype) for entry in expected_arrays(value)))
        for name, value in case.expected.items()
    )


def _set_of_tensors(case: BaselineCase) -> Hashable:
    return tuple(sorted(map(repr, _in_order(case).values())))


def _in_order(case: BaselineCase) -> Mapping[str, Hashable]:
    """Shape and element type of every argument that is one tensor."""
    tensors = {p.name: case.arguments[p.name] for p in lookup(case.function).arguments if p.is_tensor}
    return {name: (value.values.shape, value.dtype.name) for name, value in tensors.items() if value is not None}


def _attributes(function: str) -> list[str]:
    return [p.name for p in lookup(function).arguments if p.role is Role.attribute and p.annotation not in GENERATORS]


# Mistakes


def _with_attributes(*names: str) -> Mistake:
    """The attributes of the earlier call."""

    def mistake(earlier: SimulatedCall, call: SimulatedCall) -> Effect:
        taken = {name: earlier.case.arguments[name] for name in names}
        if all(repr(value) == repr(call.case.arguments[name]) for name, value in taken.items()):
            return Effect.not_applicable
        return call.recompute(**taken)

    return mistake


def _in_its_types(earlier: SimulatedCall, call: SimulatedCall) -> Effect:
    """Tensors are converted to the element types they had in the earlier call, and results to theirs on the way."""

    def converted(value: Any, before: Any) -> Any:
        if isinstance(value, list):
            return [converted(one, other) for one, other in zip(value, before, strict=True)]
        if not tensors_in(value):
            return value
        return convert_array(value.values, before.dtype)

    if _forms(earlier.case, "dtype") == _forms(call.case, "dtype"):
        return Effect.not_applicable
    given, taken = call.case.arguments, earlier.case.arguments
    tensors = (p.name for p in call.prototype.arguments if p.is_tensor or p.is_tensor_array)
    right = call.results
    if call.recompute(**{n: converted(given[n], taken[n]) for n in tensors if given[n]}) is Effect.undefined:
        return Effect.undefined
    wrong, call.results = call.results, right
    return call.replace_results({name: _stored_as(earlier.results[name], arrays) for name, arrays in wrong.items()})


def _stored_as(earlier: Sequence[Array], arrays: Sequence[Array]) -> list[Array]:
    """Arrays converted to the element types of earlier ones and back, unless there were more then, or fewer."""
    if len(earlier) != len(arrays):
        return list(arrays)
    pairs = zip(earlier, arrays, strict=True)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        return [array.astype(before.dtype).astype(array.dtype) for before, array in pairs]


def _with_its_numbers(earlier: SimulatedCall, call: SimulatedCall) -> Effect:
    """Scalars are taken for the kind they had in the earlier call, so the common type is the one of then.

    A result whose type does not fit the caller's tensor is refused.
    """
    scalars = [p.name for p in call.prototype.arguments if issubclass(p.annotation, Scalar)]
    taken = {name: earlier.case.arguments[name] for name in scalars}
    if repr(taken) == repr({name: call.case.arguments[name] for name in scalars}):
        return Effect.not_applicable
    mistaken = replace(call.case, arguments={**call.case.arguments, **taken})
    for result in call.prototype.results:
        held = [entry.dtype for entry in expected_arrays(call.case.expected[result.name])]
        if any(category(standard_dtype(call.prototype, result, mistaken)) > category(dtype) for dtype in held):
            call.error = Error.ErrorOccurred
            return Effect.changed
    return call.recompute(**taken)


def _its_results(earlier: SimulatedCall, call: SimulatedCall) -> Effect:
    """The results of the earlier call."""
    return call.replace_results({name: list(arrays) for name, arrays in earlier.results.items()})


def _in_its_order(earlier: SimulatedCall, call: SimulatedCall) -> Effect:
    """The tensors change places until their shapes and types come in the order of the earlier call."""
    before, now = _in_order(earlier.case), _in_order(call.case)
    if before == now or set(before) != set(now):
        return Effect.not_applicable
    left = dict(now)
    source: dict[str, str] = {}
    for name, form in before.items():
        source[name] = next(other for other, its in left.items() if its == form)
        del left[source[name]]
    plain = call.case.plain_arguments()
    return call.recompute(**{name: plain[other] for name, other in source.items()})


_OF_DRAWS = (Part("result cached by shape and type", _result_forms, _its_results),)
"""What random functions may keep, in addition to attributes."""

_OF_ANSWERS = (
    Part(RESULT, _all_but_data, _its_results),
    Part(TYPES, _shapes, _in_its_types),
    Part("kind of scalar cached from an earlier call", _equal_numbers, _with_its_numbers),
    Part("order of tensors cached from an earlier call", _set_of_tensors, _in_its_order),
)
"""What all other functions may keep, in addition."""


# Strides, which the calls of one case differ in


def _strides_kept() -> Callable[[SimulatedCall, Mapping[str, Any]], Effect]:
    """A tensor is read with the strides it had in an earlier call that is otherwise equal.

    If there are several, it is the first of those that show: an index that is misread has no answer.
    """
    first: dict[Hashable, tuple[str, dict[str, Any]]] = {}

    def corrupt(call: SimulatedCall, given: Mapping[str, Any]) -> Effect:
        tensors = {name: value for name, value in given.items() if name in call.case.arguments and _dense(value)}
        strides = {name: [tensor.strides for tensor in _dense(value)] for name, value in tensors.items()}
        call.earlier, before = first.setdefault(_all_but_data(call.case), (call.case.label, strides))
        effect = Effect.not_applicable
        for name in tensors:
            if effect is not Effect.changed and before[name] != strides[name]:
                effect = call.recompute(**{name: _misread(tensors[name], iter(before[name]))})
        return effect

    return corrupt


def _dense(value: Any) -> list[Tensor]:
    """The tensors of a value, but for sparse ones, which have no strides."""
    given = [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, Tensor)]
    return [one for one in given if one.strides or not one.shape]


def _misread(value: Any, strides: Iterator[Sequence[int]]) -> Any:
    """The elements of a tensor, or of each of an array, at other strides, over and over where its storage ends."""
    if isinstance(value, list):
        return [one and _misread(one, strides) for one in value]
    places = np.full(value.shape, value.storage_offset)
    for axis, stride in enumerate(next(strides)):
        along = [1] * len(value.shape)
        along[axis] = -1
        places += (np.arange(value.shape[axis]) * stride).reshape(along)
    elements = np.frombuffer(value.storage().tobytes(), to_numpy(value.dtype))
    with np.errstate(all="ignore"):
        return widen(elements[places % max(elements.size, 1)], value.dtype)
