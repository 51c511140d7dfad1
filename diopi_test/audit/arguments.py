"""Faults of arguments: an operand swapped, ignored, read in the wrong order; an attribute ignored, negated, off by one.

The wrong results are the reference's for the wrong arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from diopi_proto.interface import lookup
from diopi_proto.parameters import Parameter, Role
from diopi_test.audit.fault import Answer, Array, Fault, changed
from diopi_test.baseline import BaselineCase, BaselineTensor
from diopi_test.data import widen

STUCK_VALUES = 4
"""How many of the values an attribute has in the cases it is tried to be stuck at."""

Change = Callable[[BaselineCase], Mapping[str, Any] | None]
"""From a case to the arguments that are taken for others, None where the fault can't show."""


def argument_faults(function: str, cases: Sequence[BaselineCase]) -> Iterator[Fault]:
    """The faults a function's parameters can have, given the values its cases use."""
    prototype = lookup(function)
    for parameter in prototype.arguments:
        if parameter.is_tensor:
            yield from _tensor_faults(parameter)
        elif parameter.role is Role.attribute:
            yield from _attribute_faults(parameter.name, cases)
    tensors = [p.name for p in prototype.arguments if p.is_tensor]
    for one, other in combinations(tensors, 2):
        yield Fault(f"{one} and {other} swapped", _recomputed(_swapped(one, other)))


def _recomputed(change: Change) -> Callable[[Answer], bool]:
    """The results for other arguments than were given; shown where they have the same form and other bits."""

    def spoil(answer: Answer) -> bool:
        changes = change(answer.case)
        wrong = None if changes is None else answer.with_arguments(**changes)
        if wrong is None:
            return False
        shown = changed(answer.results, wrong)
        answer.results = wrong
        return shown

    return spoil


def _argument(case: BaselineCase, name: str) -> Array | None:
    """The exact values of a tensor argument, None if it is absent."""
    value = case.arguments[name]
    return widen(value.values, value.dtype) if isinstance(value, BaselineTensor) else None


def _tensor_faults(parameter: Parameter) -> Iterator[Fault]:
    name = parameter.name
    if parameter.optional:
        yield Fault(f"{name} ignored", _recomputed(_substituted(name, lambda array: None)))
    yield Fault(f"{name} taken for ones", _recomputed(_substituted(name, np.ones_like)))
    yield Fault(f"{name} taken for its first element", _recomputed(_substituted(name, _first_everywhere)))
    yield Fault(f"strides of {name} ignored", _recomputed(_strides_ignored(name)))


def _substituted(name: str, substitute: Callable[[Array], Any]) -> Change:
    def change(case: BaselineCase) -> Mapping[str, Any] | None:
        array = _argument(case, name)
        return None if array is None else {name: substitute(array)}

    return change


def _first_everywhere(array: Array) -> Array:
    return np.full_like(array, array.flat[0]) if array.size else array


def _strides_ignored(name: str) -> Change:
    """The elements of a dense tensor whose axes lie in another order are read as if it were contiguous."""

    def change(case: BaselineCase) -> Mapping[str, Any] | None:
        value = case.arguments[name]
        if not isinstance(value, BaselineTensor) or value.layout not in _AXES_IN_MEMORY or value.values.ndim < 2:
            return None
        array = widen(value.values, value.dtype)
        order = _AXES_IN_MEMORY[value.layout](array.ndim)
        return {name: np.ascontiguousarray(array.transpose(order)).reshape(array.shape)}

    return change


_AXES_IN_MEMORY: dict[str, Callable[[int], list[int]]] = {
    "transposed": lambda ndim: list(range(ndim))[::-1],
    "channels_last": lambda ndim: [0, *range(2, ndim), 1],
}


def _swapped(one: str, other: str) -> Change:
    def change(case: BaselineCase) -> Mapping[str, Any] | None:
        first, second = _argument(case, one), _argument(case, other)
        if first is None or second is None or first.dtype != second.dtype:
            return None
        return {one: second, other: first}

    return change


def _attribute_faults(name: str, cases: Sequence[BaselineCase]) -> Iterator[Fault]:
    values = {repr(case.arguments[name]): case.arguments[name] for case in cases}
    for text, value in list(values.items())[:STUCK_VALUES]:
        yield Fault(f"{name} stuck at {text}", _recomputed(_modified(name, _constant(value))))
    for label, modify in _MODIFICATIONS.items():
        if any(modify(value) is not None for value in values.values()):
            yield Fault(f"{name} {label}", _recomputed(_modified(name, modify)))


def _modified(name: str, modify: Callable[[Any], Any]) -> Change:
    def change(case: BaselineCase) -> Mapping[str, Any] | None:
        return {name: modify(case.arguments[name])}

    return change


def _constant(value: Any) -> Callable[[Any], Any]:
    return lambda given: value


def _off_by_one(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(entry + 1 for entry in value) or None
    return value + 1 if isinstance(value, int | float) and not isinstance(value, bool) else None


def _negated(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    return -value if isinstance(value, int | float) else None


def _reversed(value: Any) -> Any:
    return value[::-1] if isinstance(value, tuple) and value != value[::-1] else None


_MODIFICATIONS = {"off by one": _off_by_one, "negated": _negated, "in reverse order": _reversed}
