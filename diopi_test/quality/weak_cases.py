"""Weak cases: those whose expected results a wrong implementation would give, too.

A rule examines the complete cases of one function and names those that it finds weak. A case that must be as it is
gives the reason (`Case.weak`); what holds for a whole kind of cases is an exception of the rule itself, or an argument
that the prototype ignores. Nothing of this is stored: the baseline does not depend on what is found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_proto import parameters as kinds
from diopi_proto.dtypes import truth
from diopi_proto.interface import lookup
from diopi_proto.parameters import Parameter, Role
from diopi_proto.prototype import Prototype
from diopi_test.baseline.evaluate import Evaluation
from diopi_test.baseline.level import level_of
from diopi_test.baseline.parallel import Spread
from diopi_test.baseline.records import BaselineCase, Expected, entries_of
from diopi_test.baseline.shuffle import shuffled
from diopi_test.baseline.store import file_of
from diopi_test.cases.model import Case
from diopi_test.cases.selection import select_cases
from diopi_test.checks.values import compare
from diopi_test.oracle.budget import K, R
from diopi_test.oracle.reference import find_reference
from lib_rt.dtypes import to_numpy

Array = NDArray[Any]

FEW = 8
"""A result of fewer elements may be one value by chance if it holds truth values, of which there are only two."""

MOSTLY = 0.9
"""The share of the elements that makes a result of at least `FEW` be mostly one value."""

VALUES_TRIED = 8
"""How many of the values an attribute has in other cases a case is tried with."""


@final
@dataclass(frozen=True)
class Finding:
    """A weak case: its id, the rule, and what the rule saw."""

    case: str
    rule: str
    seen: str

    def __str__(self) -> str:
        return f"{self.case}: {self.rule}: {self.seen}"


@final
@dataclass(frozen=True, eq=False)
class Examined:
    """A case as described and as made, and its place among the cases of its function."""

    case: Case
    made: BaselineCase
    place: int = 0

    @property
    def prototype(self) -> Prototype:
        """Of the function called."""
        return lookup(self.made.function)

    @cached_property
    def results(self) -> Mapping[str, list[Expected]]:
        """The results the caller wants, by name; the entries of an array of tensors one by one."""
        return {name: entries_of(value) for name, value in self.made.expected.items()}

    @cached_property
    def expected(self) -> list[Expected]:
        """All results, in the reference's order."""
        return [entry for entries in self.results.values() for entry in entries]

    @cached_property
    def plain(self) -> dict[str, Any]:
        """The arguments as the reference takes them."""
        return self.made.plain_arguments()

    @property
    def gives_truths(self) -> bool:
        """Whether the results are truth values, in-place forms' in their own element type."""
        return lookup(self.prototype.base).result is truth

    @property
    def is_examined(self) -> bool:
        """Whether the values of the results can show a fault.

        Random results have a distribution instead. A result without elements has none, one made of a tensor without
        elements (other than those no result depends on) is the function's value for empty input, and where all tensors
        are 0-d, the case tests the rank.
        """
        if self.made.draws or not any(_specified(e).size for e in self.expected):
            return False
        tensors = {name: _arrays(v) for name, v in self.plain.items() if isinstance(v, list | np.ndarray)}
        read = [arrays for name, arrays in tensors.items() if _has_effect(self, name)]
        made_of_nothing = any(sum(array.size for array in arrays) == 0 for arrays in read)
        ranks = {array.ndim for array in (*chain(*tensors.values()), *(e.values for e in self.expected))}
        return not made_of_nothing and (not tensors or ranks != {0})

    def distinguishes(self, /, **changes: Any) -> bool | None:
        """Whether the results of other arguments would fail this case; None where there are no such results."""
        function = find_reference(self.made.function)
        assert function is not None
        evaluation = Evaluation(self.prototype, function, self.case)
        try:
            arrays = evaluation.arrays({**self.plain, **changes})
        except Exception:  # the standard defines no result for these arguments
            return None
        if [array.shape for array in arrays] != [e.values.shape for e in self.expected]:
            return True
        return any(_fails(array, e) for array, e in zip(arrays, self.expected, strict=True))


def _arrays(value: Any) -> list[Array]:
    """The tensors in one argument."""
    entries = value if isinstance(value, list) else [value]
    return [entry for entry in entries if isinstance(entry, np.ndarray)]


def _fails(array: Array, expected: Expected) -> bool:
    """Whether values that a reference gave would not pass for the expected ones."""
    with np.errstate(all="ignore"):
        comparison = compare(array.astype(to_numpy(expected.dtype)), expected)
    return bool(comparison.wrong.any()) or (comparison.rms is not None and comparison.rms > R)


def _specified(expected: Expected) -> Array:
    """The elements that the standard specifies, flattened."""
    values = expected.values if expected.specified is None else expected.values[expected.specified]
    return values.reshape(-1)


OF_ALL_CASES = frozenset({"does not depend on an attribute"})
"""The rules that compare a function's cases: one with all values of an attribute is enough."""

Rule = Callable[[Sequence[Examined]], Iterator[tuple[Examined, str]]]
"""From the cases of a function to the weak ones, each with what was seen in it."""

RULES: dict[str, Rule] = {}
"""All rules, by what they say of a weak case."""


def rule(name: str) -> Callable[[Rule], Rule]:
    """Register a rule."""

    def register(function: Rule) -> Rule:
        RULES[name] = function
        return function

    return register


# Rules of results


def _each_result(cases: Sequence[Examined]) -> Iterator[tuple[Examined, str, Array]]:
    """The values of each result that has elements; those of an array of tensors in one."""
    for one in cases:
        for name, entries in one.results.items():
            values = [_specified(e) for e in entries]
            if sum(v.size for v in values):
                yield one, name, np.concatenate(values)


@rule("all NaN")
def all_nan(cases: Sequence[Examined]) -> Iterator[tuple[Examined, str]]:
    """Any kernel that divides 0 by 0 gets it right."""
    for one, name, values in _each_result(cases):
        if values.dtype.kind in "fc" and np.isnan(values).all():
            yield one, name


@rule("one value")
def one_value(cases: Sequence[Examined]) -> Iterator[tuple[Examined, str]]:
    """A kernel that fills the result with a constant, or leaves zeros there, gets it right, or nearly.

    Gradients scattered to a few places are zero elsewhere, which is an answer too: `FEW` nonzero elements show the
    places. A single number other than 0 is an answer; memory may hold 0 by chance. Truth values and positions have
    too few values for that in a small result.
    """
    for one, name, values in _each_result(cases):
        is_float = values.dtype.kind in "fc" and not one.gives_truths
        is_answer = values.size == 1 and (values[0] != 0 or len(one.expected) > 1)
        if values.size < FEW and (is_answer or not is_float):
            continue
        value, times = _most_frequent(values)
        if _is_nearly_all(value, times, values.size):
            yield one, f"{times} of {values.size} elements of {name} are {value}"


def _is_nearly_all(value: Any, times: int, size: int) -> bool:
    if np.isnan(value) or (value == 0 and size - times >= FEW):
        return False
    return times >= (MOSTLY * size if size >= FEW else size)


def _most_frequent(values: Array) -> tuple[Any, int]:
    distinct, counts = np.unique(values, return_counts=True)
    most = int(counts.argmax())
    return distinct[most], int(counts[most])


@rule("budget wider than the values")
def blunt(cases: Sequence[Examined]) -> Iterator[tuple[Examined, str]]:
    """The error allowed to half of the elements covers all differences between them; of few, those to 0."""
    for one in cases:
        for name, entries in one.results.items():
            for entry in entries:
                if _is_blunt(entry):
                    yield one, name


def _is_blunt(expected: Expected) -> bool:
    values = _specified(expected)
    if expected.unit is None or not np.isfinite(values).any():
        return False
    unit = (expected.unit if expected.specified is None else expected.unit[expected.specified]).reshape(-1)
    unit, values = unit[np.isfinite(values)], values[np.isfinite(values)]
    with np.errstate(over="ignore", invalid="ignore"):
        spread = np.abs(values - (values.mean() if values.size >= FEW else 0)).max()
        return bool(spread > 0 and np.median(K * unit) >= spread)


# Rules of arguments


@rule("does not depend on a tensor")
def independent_of_tensor(cases: Sequence[Examined]) -> Iterator[tuple[Examined, str]]:
    """A kernel that never reads the tensor gets it right.

    Calls that leave results out need not read what only those depend on, and a few truth values show little.
    """
    for one in cases:
        if _has_absent_results(one) or _is_few_truths(one):
            continue
        for parameter in one.prototype.arguments:
            if _is_read(one, parameter) and _is_independent(one, parameter.name):
                yield one, parameter.name


def _has_absent_results(one: Examined) -> bool:
    return any(override is None for override in one.case.results.values())


def _is_few_truths(one: Examined) -> bool:
    return one.gives_truths and sum(e.values.size for e in one.expected) < FEW


def _is_read(one: Examined, parameter: Parameter) -> bool:
    """Whether the parameter is a tensor that is there and that a result may depend on."""
    if not (parameter.is_tensor or parameter.is_tensor_array):
        return False
    return bool(_arrays(one.plain[parameter.name])) and _has_effect(one, parameter.name)


def _is_independent(one: Examined, name: str) -> bool:
    """Whether the results are the same for every value tried in place of the tensor."""
    indistinct = False
    for other in _other_tensors(one, name):
        if differs := one.distinguishes(**{name: other}):
            return False
        indistinct |= differs is False
    return indistinct


def _other_tensors(one: Examined, name: str) -> Iterator[Any]:
    """Values to try in place of a tensor argument: changed ones, and those of other tensors of its shape and type."""
    value = one.plain[name]
    for change in (_rolled, np.ones_like, np.zeros_like, _negated):
        yield [change(a) if a is not None else None for a in value] if isinstance(value, list) else change(value)
    if not isinstance(value, list):
        others = [one.plain[p.name] for p in one.prototype.arguments if p.is_tensor and p.name != name]
        arrays = [a for a in others if isinstance(a, np.ndarray)]
        alike = (a for a in arrays if a.shape == value.shape and a.dtype == value.dtype)
        yield from (a for a in alike if not np.array_equal(a, value))  # the same numbers show nothing


def _rolled(array: Array) -> Array:
    """Every element moved to the next place."""
    return np.roll(array.reshape(-1), 1).reshape(array.shape)


def _negated(array: Array) -> Array:
    return ~array if array.dtype == bool else -array


@rule("does not depend on an attribute")
def independent_of_attribute(cases: Sequence[Examined]) -> Iterator[tuple[Examined, str]]:
    """A kernel that takes another value of the attribute for this one gets it right, in every case that has it.

    The most frequent value of an attribute counts as its default and is not examined. A value with which there would be
    no results, or results of other shapes, is not a possible mistake.
    """
    if not cases:
        return
    for parameter in cases[0].prototype.arguments:
        if parameter.role is Role.attribute and not issubclass(parameter.annotation, _NO_VALUES):
            yield from _indistinct_values(cases, parameter.name)


_NO_VALUES = (*kinds.GENERATORS, kinds.Pointer)
"""Attributes that aren't numbers or text."""


def _indistinct_values(cases: Sequence[Examined], name: str) -> Iterator[tuple[Examined, str]]:
    in_order = sorted(cases, key=lambda one: one.place)  # decides between equally frequent values
    frequency = Counter(repr(one.plain[name]) for one in in_order)
    values = {repr(one.plain[name]): one.plain[name] for one in in_order}
    common = [text for text, _ in frequency.most_common(VALUES_TRIED + 1)]
    for text in [text for text in values if text != common[0]]:
        having = [one for one in cases if repr(one.plain[name]) == text and _has_effect(one, name)]
        others = [values[other] for other in common if other != text][:VALUES_TRIED]
        answers = [one.distinguishes(**{name: other}) for one in having for other in others]
        if answers and not any(answer is None or answer for answer in answers):
            yield from ((one, f"{name}={text}") for one in having)


def _has_effect(one: Examined, name: str) -> bool:
    is_read = one.prototype.parameter(name).annotation is not kinds.Workspace
    return is_read and one.prototype.has_effect(name, one.made.arguments)


# All rules


Progress = Callable[[str, object], None]


def find_weak_cases(
    functions: Sequence[str], level: str, folder: Path, spread: Spread, progress: Progress, seed: int | None = None
) -> list[Finding]:
    """The weak cases of `functions` that give no reason, found in their baseline files by a spread.

    Calls `progress(function, findings)` after each. `seed` draws an order to go through functions and cases, which
    makes no difference. Raises BaselineError when a file is damaged.
    """
    found: dict[str, list[Finding]] = {}
    work = partial(weak_cases, level=level, folder=folder, seed=seed)
    for function, weak in spread(work, shuffled(functions, seed)):
        found[function] = weak
        progress(function, weak)
    return [finding for function in functions for finding in found[function]]


def weak_cases(function: str, level: str, folder: Path, seed: int | None = None) -> list[Finding]:
    """The weak cases in the baseline file of `function` that give no reason, in order.

    Rules about all cases together do not apply to the smoke level.
    """
    baseline = level_of(file_of(folder, function)).open(function)
    selected = enumerate(select_cases(function, level))
    cases = [Examined(case, baseline.case(case.label), place) for place, case in selected]
    weak = [(one, finding) for one, finding in findings(shuffled(cases, seed, _label)) if not one.case.weak]
    in_order = sorted(weak, key=lambda found: (found[0].place, list(RULES).index(found[1].rule), found[1].seen))
    return [finding for _, finding in in_order if level == "full" or finding.rule not in OF_ALL_CASES]


def _label(one: Examined) -> str:
    return one.case.label


def findings(cases: Sequence[Examined]) -> Iterator[tuple[Examined, Finding]]:
    """What every rule finds in the cases of one function, reasons or not."""
    examined = [one for one in cases if one.is_examined]
    for name, find in RULES.items():
        for one, seen in find(examined):
            yield one, Finding(one.made.id, name, seen)
