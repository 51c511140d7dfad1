"""Relations between the integers of a call that hold in all cases of a function: sizes, ranks, attributes.

A random call that violates such a relation is not tried. The relations are found like the "likely invariants" of
programs (Ernst et al., "The Daikon system for dynamic detection of likely invariants", 2007). Relations of several
kinds are tested on all cases. A relation that no case violates is assumed to hold. If it holds only by chance, it
reduces the variety of the calls, but never causes a wrong finding. Prototypes therefore need not declare, for example,
the relation between a kernel and the channels of an image, and a new function needs no preparation.

A relation holds in all cases, or in all cases that have a truth value, text, choice or rank in common, or omit an
argument.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_proto import facts
from diopi_proto import parameters as kinds
from diopi_proto.prototype import Prototype
from diopi_test.cases.case import Case, TensorSpec
from diopi_test.fuzz.knowledge import INTEGER_KINDS, ValidCallKnowledge
from diopi_test.oracle.data import decode_masks, materialize, plain_values
from diopi_test.oracle.evaluation import Evaluation, compute_result
from diopi_test.oracle.reference import find_reference

CallNumbers = Mapping[str, float]
"""The integers of a call, as floats, by name: `size input 0`, `rank weight`, `number groups`."""

Shape = Sequence[int]
"""The sizes of a tensor."""

MIN_CASES = 3
"""Minimum number of cases with different numbers in which a relation must hold."""

FAILURES = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
"""The exceptions that a reference raises if arguments don't match."""


@final
@dataclass(frozen=True)
class CallRelation:
    """A relation between numbers of a call; it also holds if a call lacks one of the numbers.

    Attributes:
        kind: a key of `KINDS`, which states how many numbers the relation has.
        names: the names of the numbers, as in `CallNumbers`.
        constant: the constant of the relation, such as 1 in `x == y + 1`.
    """

    kind: str
    names: tuple[str, ...]
    constant: float = 0.0

    def holds(self, numbers: CallNumbers) -> bool:
        """Return whether the relation holds in a call."""
        if any(name not in numbers for name in self.names):
            return True
        return bool(KINDS[self.kind](*(np.float64(numbers[name]) for name in self.names), np.float64(self.constant)))


KINDS: dict[str, Callable[..., Any]] = {
    "is": lambda x, c: x == c,
    "at least": lambda x, c: x >= c,
    "equals but for": lambda x, y, c: x == y + c,
    "at most": lambda x, y, c: x <= y,
    "a multiple of": lambda x, y, c: (y != 0) & (x % np.where(y == 0, 1, y) == 0),
    "the product of": lambda x, y, z, c: x == y * z,
}
"""The functions that return whether a relation holds, by kind: each takes one to three numbers and a constant."""


@final
class CallRelations:
    """The relations that hold in all cases of a function, grouped by the condition under which they hold."""

    def __init__(self, knowledge: ValidCallKnowledge) -> None:
        self._prototype = knowledge.prototype
        groups: dict[str, list[CallNumbers]] = defaultdict(list)
        for case in knowledge.cases:
            if (numbers := _case_numbers(knowledge.prototype, case)) is not None:
                for condition in _conditions(knowledge.prototype, case.arguments):
                    groups[condition].append(numbers)
        self._by_condition = {condition: list(_find_relations(seen)) for condition, seen in groups.items()}

    def are_satisfied(self, arguments: Mapping[str, Any], results: Sequence[Shape]) -> bool:
        """Return whether all relations hold in a call, and the call uses only choices that occur in the cases."""
        numbers = call_numbers(self._prototype, arguments, results)
        conditions = list(_conditions(self._prototype, arguments))
        if any(condition not in self._by_condition and not condition.startswith("rank") for condition in conditions):
            return False
        return all(
            relation.holds(numbers) for condition in conditions for relation in self._by_condition.get(condition, ())
        )

    def __len__(self) -> int:
        return sum(map(len, self._by_condition.values()))


@cache
def relations_of(knowledge: ValidCallKnowledge) -> CallRelations:
    """Return the relations that hold in the cases of a function."""
    return CallRelations(knowledge)


def _case_numbers(prototype: Prototype, case: Case) -> CallNumbers | None:
    """Return the numbers of a case, including the sizes of its results; None if the function has no reference."""
    function = find_reference(prototype.name)
    if function is None:
        return None
    values = materialize(prototype, case, compute_result)
    names = {parameter.name for parameter in prototype.arguments}
    passed = {name: value for name, value in values.items() if name in names}
    plain = plain_values(decode_masks(prototype, passed))
    try:
        results = Evaluation(prototype, function, case).arrays(plain)
    except FAILURES:  # the reference rejects numbers that must be converted first
        results = []
    return call_numbers(prototype, case.arguments, [array.shape for array in results])


def call_numbers(prototype: Prototype, arguments: Mapping[str, Any], results: Sequence[Shape]) -> CallNumbers:
    """Return the integers of a call by name.

    Args:
        prototype: the prototype of the function.
        arguments: the arguments by name; a tensor is a `TensorSpec`.
        results: the shapes of the results; empty if they are unknown.
    """
    numbers: dict[str, float] = {}
    shapes: dict[str, Shape] = {f"result {number}": shape for number, shape in enumerate(results)}
    for p in prototype.arguments:
        value = arguments[p.name]
        if p.is_tensor_array and isinstance(value, list):
            numbers[f"entries {p.name}"] = len(value)
            shapes |= {f"{p.name} {place}": value[place].shape for place in (0, -1) if value and value[place]}
        elif isinstance(value, TensorSpec):
            shapes[p.name] = value.shape
        elif p.annotation in INTEGER_KINDS and value is not None:
            numbers |= dict(
                _axes_numbers(p.name, value) if p.fact(facts.NamesAxis) else _attribute_numbers(p.name, value)
            )
    for name, shape in shapes.items():
        numbers[f"rank {name}"] = len(shape)
        for axis, size in enumerate(shape):
            numbers[f"size {name} {axis}"] = numbers[f"size {name} {axis - len(shape)}"] = size
    return numbers | dict(_sizes_along_axes(prototype, arguments, shapes))


def _axes_numbers(name: str, value: Any) -> Iterator[tuple[str, float]]:
    """Yield the number of entries of a list of axes; yield nothing for a single axis."""
    if isinstance(value, tuple | list | range):
        yield f"length {name}", len(value)


def _attribute_numbers(name: str, value: Any) -> Iterator[tuple[str, float]]:
    """Yield the numbers that describe an attribute: its value, or the length, product, sum and entries of a list."""
    if isinstance(value, tuple | list | range):
        yield f"length {name}", len(value)
        yield f"number {name}", math.prod(map(float, value))
        yield f"sum of {name}", math.fsum(value)
        for place, entry in enumerate(value):
            yield f"entry {name} {place}", entry
            yield f"entry {name} {place - len(value)}", entry
    else:
        yield f"number {name}", float(value)


def _sizes_along_axes(
    prototype: Prototype, arguments: Mapping[str, Any], shapes: Mapping[str, Shape]
) -> Iterator[tuple[str, float]]:
    """Yield the sizes of tensors along the axes that attributes name."""
    for p in prototype.arguments:
        axis = arguments[p.name]
        if p.fact(facts.NamesAxis) and isinstance(axis, int):
            for name, shape in shapes.items():
                if -len(shape) <= axis < len(shape):
                    yield f"size {name} {p.name}", shape[axis]


def _conditions(prototype: Prototype, arguments: Mapping[str, Any]) -> Iterator[str]:
    """Yield the conditions under which relations are sought: choices, omitted arguments, ranks, and no condition."""
    yield ""
    for p in prototype.arguments:
        value = arguments[p.name]
        if value is None:
            yield f"no {p.name}"
        elif isinstance(value, TensorSpec):
            yield f"rank {p.name} {len(value.shape)}"
        elif isinstance(value, bool | str | Enum) and not issubclass(p.annotation, kinds.Scalar):
            yield f"{p.name} {value}"


def _find_relations(calls: Sequence[CallNumbers]) -> Iterator[CallRelation]:
    """Yield the relations that hold in all of these calls."""
    names = sorted({name for numbers in calls for name in numbers})
    table = {name: np.array([numbers.get(name, np.nan) for numbers in calls]) for name in names}
    varied: dict[bytes, str] = {}
    for name in names:
        present = table[name][~np.isnan(table[name])]
        if len(present) >= MIN_CASES and len(set(present)) == 1:
            yield CallRelation("is", (name,), present[0])
        else:
            varied.setdefault(table[name].tobytes(), name)  # equal columns are mostly sizes counted from both ends
        if present.min() >= 0:
            yield CallRelation("at least", (name,), min(present.min(), 1.0))
    yield from _equalities(names, table)
    yield from _comparisons(list(varied.values()), table)
    yield from _product_relations(list(varied.values()), table)


def _equalities(names: Sequence[str], table: Mapping[str, NDArray[Any]]) -> Iterator[CallRelation]:
    """Yield the relations between two numbers that are absent from the same calls and equal in all others.

    Each number is paired with the first number that equals it.
    """
    first: dict[bytes, str] = {}
    for name in names:
        same_name = first.setdefault(table[name].tobytes(), name)
        if same_name != name:
            yield CallRelation("equals but for", (name, same_name))


def _comparisons(names: Sequence[str], table: Mapping[str, NDArray[Any]]) -> Iterator[CallRelation]:
    """Yield the relations between two numbers: a constant difference, an upper bound, or a multiple."""
    for i, first in enumerate(names):
        for second in names[:i]:
            x, y = _rows_with_all(table, first, second)
            if len(set(zip(x, y, strict=True))) < MIN_CASES:
                continue
            if len(differences := set(x - y)) == 1 and abs(difference := differences.pop()) <= 1:
                yield CallRelation("equals but for", (first, second), difference)
            for left, larger, a, b in ((first, second, x, y), (second, first, y, x)):
                if _may_be_bounded(left, larger) and (a <= b).all():
                    yield CallRelation("at most", (left, larger))
                if larger.startswith("number") and left.startswith("size") and b.all() and not (a % b).any():
                    yield CallRelation("a multiple of", (left, larger))


def _may_be_bounded(first: str, second: str) -> bool:
    """Return whether `second`, a size, may bound `first`: an attribute, or the size of the same axis."""
    of_one_axis = first.startswith("size") and first.rpartition(" ")[2] == second.rpartition(" ")[2]
    return (first.startswith(("number", "entry")) or of_one_axis) and second.startswith("size")


def _product_relations(names: Sequence[str], table: Mapping[str, NDArray[Any]]) -> Iterator[CallRelation]:
    """Yield the relations in which a size is the product of another size and an attribute."""
    sizes, factors = ([name for name in names if name.startswith(word)] for word in ("size", "number"))
    for factor in factors:
        for size in sizes:
            for product in sizes:
                x, y, z = _rows_with_all(table, product, size, factor)
                if product != size and len(set(zip(x, y, z, strict=True))) >= MIN_CASES and (x == y * z).all():
                    yield CallRelation("the product of", (product, size, factor))


def _rows_with_all(table: Mapping[str, NDArray[Any]], *names: str) -> list[NDArray[Any]]:
    """Return the values of these numbers in the calls that have all of them."""
    columns = np.array([table[name] for name in names])
    return list(columns[:, ~np.isnan(columns).any(axis=0)])
