"""Mutants of arguments: a tensor ignored or read in the wrong order, operands swapped, an attribute off by one.

The results of these mutants are the reference's results for the mutated arguments. The functions that change arguments
get a stored case. They return the changed arguments by name, or None if the mutant does not apply to the case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from diopi_proto.interface import lookup
from diopi_proto.parameters import GENERATORS, Parameter, Role
from diopi_test.oracle.records import BaselineCase, BaselineTensor, tensors_in
from diopi_test.quality.mutation.mutant import Array, Effect, Mutant, SimulatedCall, read_transposed

STUCK_VALUES = 4
"""The maximum number of mutants per attribute that always use one value, taken from the cases."""

AXES = ("dim", "dims", "dim0", "dim1", "axis")
"""The names of attributes that name axes."""

Change = Callable[[BaselineCase], Mapping[str, Any] | None]
"""A function that returns the wrong arguments of a case, or None if the mistake does not apply to the case."""


def argument_mutants(function: str, cases: Sequence[BaselineCase]) -> Iterator[Mutant]:
    """Yield the mutants of a function's parameters.

    Args:
        function: the name of the function.
        cases: its cases, whose attribute values determine some mutants.

    Yields:
        The mutants.
    """
    prototype = lookup(function)
    for parameter in prototype.arguments:
        if parameter.is_tensor or parameter.is_tensor_array:
            yield from _tensor_mutants(parameter)
        elif parameter.role is Role.attribute and parameter.annotation not in GENERATORS:
            yield from _attribute_mutants(parameter, cases)
    tensors = [p.name for p in prototype.arguments if p.is_tensor]
    for first, second in combinations(tensors, 2):
        yield Mutant(
            name=f"{first} and {second} swapped",
            corrupt=recompute_with(partial(_swap_tensors, first, second)),
            kind="operands swapped",
        )


def recompute_with(change: Change) -> Callable[[SimulatedCall], Effect]:
    """Return a corruption that recomputes the results with changed arguments.

    Args:
        change: returns the changed arguments of a case; None if the change does not apply to the case.

    Returns:
        The corruption.
    """

    def corrupt(call: SimulatedCall) -> Effect:
        """Recompute the results of a call with the changed arguments."""
        changes = change(call.case)
        return Effect.not_applicable if changes is None else call.recompute(**changes)

    return corrupt


def _tensor_mutants(parameter: Parameter) -> Iterator[Mutant]:
    """Yield the mutants of a parameter that takes a tensor or an array of tensors.

    The mutants ignore the tensor if it is optional, replace it, transpose it, do not broadcast it, or ignore its
    strides. A further mutant reads an array of tensors in reverse order.
    """
    name = parameter.name
    faults = dict(_TENSOR_MISTAKES)
    if parameter.optional:
        faults["ignored"] = lambda array: None
    for label, substitute in faults.items():
        yield _parameter_mutant(name, label, "tensor", partial(_substitute_tensor, name, substitute))
    yield _parameter_mutant(name, "not broadcast", "tensor", partial(_repeat_instead_of_broadcast, name))
    if parameter.is_tensor_array:
        yield _parameter_mutant(name, "in reverse order", "tensor", partial(_reverse_entries, name))
    yield Mutant(
        name=f"strides of {name} ignored",
        corrupt=recompute_with(partial(_ignore_strides, name)),
        corrupt_memory=None,
        kind="strides of a tensor ignored",
        parameter=name,
    )


def _parameter_mutant(name: str, label: str, subject: str, change: Change) -> Mutant:
    """Return the mutant that calls the function with one wrong argument.

    Args:
        name: the name of the parameter.
        label: the mistake in words, such as `off by one`.
        subject: `tensor` or `attribute`.
        change: returns the wrong argument.
    """
    return Mutant(
        name=f"{name} {label}",
        corrupt=recompute_with(change),
        corrupt_memory=None,
        kind=f"{subject} {label}",
        parameter=name,
    )


def _substitute_tensor(name: str, substitute: Callable[[Array], Any], case: BaselineCase) -> Mapping[str, Any] | None:
    """Return the argument `name` with its tensor, or each tensor of its array, replaced; None if nothing changes.

    Args:
        name: the name of a tensor, or of an array of tensors.
        substitute: returns the elements that replace those of a tensor.
        case: the case.
    """
    value = case.plain_arguments()[name]
    if isinstance(value, list):
        substituted: Any = [None if entry is None else substitute(entry) for entry in value]
        differ = any(
            original is not None and not _have_same_bytes(original, changed)
            for original, changed in zip(value, substituted, strict=True)
        )
    else:
        substituted = None if value is None else substitute(value)
        differ = value is not None and not _have_same_bytes(value, substituted)
    return {name: substituted} if differ else None


def _have_same_bytes(first: Array, second: Array | None) -> bool:
    """Return whether two arrays have the same shape and bytes."""
    return second is not None and first.shape == second.shape and first.tobytes() == second.tobytes()


def _repeat_first_element(array: Array) -> Array:
    """Return an array of the same shape that repeats the first element."""
    return np.full_like(array, array.flat[0]) if array.size else array


_TENSOR_MISTAKES: dict[str, Callable[[Array], Any]] = {
    "replaced by ones": np.ones_like,
    "replaced by its first element": _repeat_first_element,
    "transposed": read_transposed,
}
"""What a mutant reads in place of a tensor, by the description in the mutant's name."""


def _repeat_instead_of_broadcast(name: str, case: BaselineCase) -> Mapping[str, Any] | None:
    """Return the argument `name` repeated in row-major order, instead of broadcast, to the common shape of all tensors.

    Return None if the tensors have no common shape, or if the repeated array equals the broadcast array.
    """
    arguments = case.plain_arguments()
    arrays = [value for value in arguments.values() if isinstance(value, np.ndarray)]
    array = arguments[name]
    if not isinstance(array, np.ndarray) or not array.size:
        return None
    try:
        shape = np.broadcast_shapes(*(value.shape for value in arrays))
    except ValueError:
        return None
    broadcast, repeated = np.broadcast_to(array, shape), np.resize(array, shape)
    return None if np.array_equal(broadcast, repeated, equal_nan=broadcast.dtype.kind in "fc") else {name: repeated}


def _reverse_entries(name: str, case: BaselineCase) -> Mapping[str, Any] | None:
    """Return the list `name` with its entries in reverse order; None if there are fewer than two."""
    entries = case.plain_arguments()[name]
    return {name: entries[::-1]} if entries and len(entries) > 1 else None


def _ignore_strides(name: str, case: BaselineCase) -> Mapping[str, Any] | None:
    """Return the tensor `name`, which is not row-major, misread as if its memory were in row-major order.

    Return None for tensors in other layouts than those of `_AXES_IN_MEMORY`, and if nothing changes.
    """
    value = case.arguments[name]
    if not isinstance(value, BaselineTensor) or value.layout not in _AXES_IN_MEMORY or value.values.ndim < 2:
        return None
    array = case.plain_arguments()[name]
    order = _AXES_IN_MEMORY[value.layout](array.ndim)
    misread = np.ascontiguousarray(array.transpose(order)).reshape(array.shape)
    return None if _have_same_bytes(array, misread) else {name: misread}


_AXES_IN_MEMORY: dict[str, Callable[[int], list[int]]] = {
    "transposed": lambda ndim: list(range(ndim))[::-1],
    "channels_last": lambda ndim: [0, *range(2, ndim), 1],
}
"""By layout, a function that returns the axes of a tensor in their order in memory, from the number of axes."""


def _swap_tensors(first_name: str, second_name: str, case: BaselineCase) -> Mapping[str, Any] | None:
    """Return two tensor arguments with their values swapped; None if the types differ or the values are equal."""
    arguments = case.plain_arguments()
    first, second = arguments[first_name], arguments[second_name]
    if first is None or second is None or first.dtype != second.dtype or _have_same_bytes(first, second):
        return None
    return {first_name: second, second_name: first}


def _attribute_mutants(parameter: Parameter, cases: Sequence[BaselineCase]) -> Iterator[Mutant]:
    """Yield the mutants of an attribute: ignored, stuck at a value, off by one, negated, reversed, next axis."""
    name = parameter.name
    values = {repr(case.arguments[name]): case.arguments[name] for case in cases}
    stuck = {repr(None): None, **values} if parameter.optional else values
    for text, value in list(stuck.items())[:STUCK_VALUES]:
        label = "ignored" if value is None else f"stuck at {text}"
        yield Mutant(
            name=f"{name} {label}",
            corrupt=recompute_with(partial(_modify_attribute, name, _constant_function(value))),
            corrupt_memory=None,
            kind="attribute ignored",
            parameter=name,
        )
    for label, modify in _MODIFICATIONS.items():
        if any(modify(value) is not None for value in values.values()):
            yield _parameter_mutant(name, label, "attribute", partial(_modify_attribute, name, modify))
    if name in AXES:
        yield Mutant(
            name=f"{name} replaced by the next axis",
            corrupt=recompute_with(partial(_use_next_axis, name)),
            corrupt_memory=None,
            kind="axis replaced by the next axis",
            parameter=name,
        )


def _modify_attribute(name: str, modify: Callable[[Any], Any], case: BaselineCase) -> Mapping[str, Any] | None:
    """Return the attribute `name` after `modify`; None if the modification does not change its value."""
    value = case.arguments[name]
    modified = modify(value)
    return None if repr(modified) == repr(value) else {name: modified}


def _constant_function(value: Any) -> Callable[[Any], Any]:
    """Return a function that returns `value` for every argument."""
    return lambda original: value


def _add_one(value: Any) -> Any:
    """Return a number, or every number of a list, plus one; None for other values."""
    if isinstance(value, tuple):
        return tuple(entry + 1 for entry in value) or None
    return value + 1 if isinstance(value, int | float) and not isinstance(value, bool) else None


def _negate(value: Any) -> Any:
    """Return a negated truth value, number or list of numbers; None for other values."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, tuple):
        return tuple(-entry for entry in value) or None
    return -value if isinstance(value, int | float) else None


def _reverse(value: Any) -> Any:
    """Return a list in reverse order; None for other values and for lists that do not change."""
    return value[::-1] if isinstance(value, tuple) and value != value[::-1] else None


_MODIFICATIONS = {"off by one": _add_one, "negated": _negate, "in reverse order": _reverse}
"""The wrong values of an attribute that mutants use, by the description in the mutant's name."""


def _use_next_axis(name: str, case: BaselineCase) -> Mapping[str, Any] | None:
    """Return the attribute with each axis replaced by the next one; the first axis follows the last.

    Return None if the attribute is None, or if no tensor has two axes.
    """
    axes = case.arguments[name]
    ndim = max((tensor.values.ndim for tensor in _tensor_arguments(case)), default=0)
    if axes is None or ndim < 2:
        return None
    return {name: tuple((axis + 1) % ndim for axis in axes) if isinstance(axes, tuple) else (axes + 1) % ndim}


def _tensor_arguments(case: BaselineCase) -> Iterator[BaselineTensor]:
    """Yield every tensor argument, including those in arrays."""
    return (tensor for value in case.arguments.values() for tensor in tensors_in(value))
