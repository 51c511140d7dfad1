"""Faults of arguments: a tensor ignored or read in the wrong order, operands swapped, an attribute off by one.

The wrong results are the reference's for the wrong arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from diopi_proto.interface import lookup
from diopi_proto.parameters import GENERATORS, Parameter, Role
from diopi_test.baseline.records import BaselineCase, BaselineTensor, tensors_in
from diopi_test.quality.mutation.mutant import Array, Effect, Mutant, SimulatedCall, transposed

STUCK_VALUES = 4
"""How many of the values that an attribute has in the cases are tried as the value it is stuck at."""

AXES = ("dim", "dims", "dim0", "dim1", "axis")
"""What attributes that name axes are called."""

Change = Callable[[BaselineCase], Mapping[str, Any] | None]
"""From a case to the mistaken arguments, None where the mistake does not apply."""


def argument_mutants(function: str, cases: Sequence[BaselineCase]) -> Iterator[Mutant]:
    """The faults a function's parameters can have, given the values its cases use."""
    prototype = lookup(function)
    for parameter in prototype.arguments:
        if parameter.is_tensor or parameter.is_tensor_array:
            yield from _tensor_faults(parameter)
        elif parameter.role is Role.attribute and parameter.annotation not in GENERATORS:
            yield from _attribute_faults(parameter, cases)
    tensors = [p.name for p in prototype.arguments if p.is_tensor]
    for one, other in combinations(tensors, 2):
        yield Mutant(
            f"{one} and {other} swapped", recompute_with(partial(_swapped, one, other)), kind="operands swapped"
        )


def recompute_with(change: Change) -> Callable[[SimulatedCall], Effect]:
    """The results for other arguments than were given."""

    def corrupt(call: SimulatedCall) -> Effect:
        changes = change(call.case)
        return Effect.not_applicable if changes is None else call.recompute(**changes)

    return corrupt


def _tensor_faults(parameter: Parameter) -> Iterator[Mutant]:
    name = parameter.name
    faults = dict(_TENSOR_MISTAKES)
    if parameter.optional:
        faults["ignored"] = lambda array: None
    for label, substitute in faults.items():
        yield _of_parameter(name, label, "tensor", partial(_substituted, name, substitute))
    yield _of_parameter(name, "not broadcast", "tensor", partial(_not_broadcast, name))
    if parameter.is_tensor_array:
        yield _of_parameter(name, "in reverse order", "tensor", partial(_entries_reversed, name))
    yield Mutant(
        f"strides of {name} ignored",
        recompute_with(partial(_strides_ignored, name)),
        None,
        "strides of a tensor ignored",
        name,
    )


def _of_parameter(name: str, label: str, what: str, change: Change) -> Mutant:
    return Mutant(f"{name} {label}", recompute_with(change), None, f"{what} {label}", name)


def _substituted(name: str, substitute: Callable[[Array], Any], case: BaselineCase) -> Mapping[str, Any] | None:
    """A tensor, or every tensor of an array, replaced; None if that changes nothing."""
    given = case.plain_arguments()[name]
    if isinstance(given, list):
        taken: Any = [None if entry is None else substitute(entry) for entry in given]
        differ = any(one is not None and not _same(one, other) for one, other in zip(given, taken, strict=True))
    else:
        taken = None if given is None else substitute(given)
        differ = given is not None and not _same(given, taken)
    return {name: taken} if differ else None


def _same(one: Array, other: Array | None) -> bool:
    return other is not None and one.shape == other.shape and one.tobytes() == other.tobytes()


def _first_everywhere(array: Array) -> Array:
    return np.full_like(array, array.flat[0]) if array.size else array


_TENSOR_MISTAKES: dict[str, Callable[[Array], Any]] = {
    "replaced by ones": np.ones_like,
    "replaced by its first element": _first_everywhere,
    "transposed": transposed,
}


def _not_broadcast(name: str, case: BaselineCase) -> Mapping[str, Any] | None:
    """The elements of a tensor that is to be broadcast are read one after the other, over and over."""
    arguments = case.plain_arguments()
    given = [value for value in arguments.values() if isinstance(value, np.ndarray)]
    array = arguments[name]
    if not isinstance(array, np.ndarray) or not array.size:
        return None
    try:
        shape = np.broadcast_shapes(*(value.shape for value in given))
    except ValueError:
        return None
    right, wrong = np.broadcast_to(array, shape), np.resize(array, shape)
    return None if np.array_equal(right, wrong, equal_nan=right.dtype.kind in "fc") else {name: wrong}


def _entries_reversed(name: str, case: BaselineCase) -> Mapping[str, Any] | None:
    entries = case.plain_arguments()[name]
    return {name: entries[::-1]} if entries and len(entries) > 1 else None


def _strides_ignored(name: str, case: BaselineCase) -> Mapping[str, Any] | None:
    """The elements of a dense tensor whose axes lie in another order are read as if it were contiguous."""
    value = case.arguments[name]
    if not isinstance(value, BaselineTensor) or value.layout not in _AXES_IN_MEMORY or value.values.ndim < 2:
        return None
    array = case.plain_arguments()[name]
    order = _AXES_IN_MEMORY[value.layout](array.ndim)
    wrong = np.ascontiguousarray(array.transpose(order)).reshape(array.shape)
    return None if _same(array, wrong) else {name: wrong}


_AXES_IN_MEMORY: dict[str, Callable[[int], list[int]]] = {
    "transposed": lambda ndim: list(range(ndim))[::-1],
    "channels_last": lambda ndim: [0, *range(2, ndim), 1],
}


def _swapped(one: str, other: str, case: BaselineCase) -> Mapping[str, Any] | None:
    arguments = case.plain_arguments()
    first, second = arguments[one], arguments[other]
    if first is None or second is None or first.dtype != second.dtype or _same(first, second):
        return None
    return {one: second, other: first}


def _attribute_faults(parameter: Parameter, cases: Sequence[BaselineCase]) -> Iterator[Mutant]:
    name = parameter.name
    values = {repr(case.arguments[name]): case.arguments[name] for case in cases}
    stuck = {repr(None): None, **values} if parameter.optional else values
    for text, value in list(stuck.items())[:STUCK_VALUES]:
        label = "ignored" if value is None else f"stuck at {text}"
        yield Mutant(
            f"{name} {label}",
            recompute_with(partial(_modified, name, _constant(value))),
            None,
            "attribute ignored",
            name,
        )
    for label, modify in _MODIFICATIONS.items():
        if any(modify(value) is not None for value in values.values()):
            yield _of_parameter(name, label, "attribute", partial(_modified, name, modify))
    if name in AXES:
        yield Mutant(
            f"{name} replaced by the next axis",
            recompute_with(partial(_next_axis, name)),
            None,
            "axis replaced by the next axis",
            name,
        )


def _modified(name: str, modify: Callable[[Any], Any], case: BaselineCase) -> Mapping[str, Any] | None:
    given = case.arguments[name]
    taken = modify(given)
    return None if repr(taken) == repr(given) else {name: taken}


def _constant(value: Any) -> Callable[[Any], Any]:
    return lambda given: value


def _off_by_one(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(entry + 1 for entry in value) or None
    return value + 1 if isinstance(value, int | float) and not isinstance(value, bool) else None


def _negated(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, tuple):
        return tuple(-entry for entry in value) or None
    return -value if isinstance(value, int | float) else None


def _reversed(value: Any) -> Any:
    return value[::-1] if isinstance(value, tuple) and value != value[::-1] else None


_MODIFICATIONS = {"off by one": _off_by_one, "negated": _negated, "in reverse order": _reversed}


def _next_axis(name: str, case: BaselineCase) -> Mapping[str, Any] | None:
    """The axis after the one that is named, the first after the last."""
    given = case.arguments[name]
    ndim = max((tensor.values.ndim for tensor in _tensors(case)), default=0)
    if given is None or ndim < 2:
        return None
    return {name: tuple((axis + 1) % ndim for axis in given) if isinstance(given, tuple) else (given + 1) % ndim}


def _tensors(case: BaselineCase) -> Iterator[BaselineTensor]:
    """Every tensor argument, those in arrays too."""
    return (tensor for value in case.arguments.values() for tensor in tensors_in(value))
