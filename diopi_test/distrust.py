"""Distrust: cases whose expected results could not tell right from wrong.

A rule looks at the complete cases of one function and names those that it finds weak. A case that must be as it is
says why (`Case.weak`); what a whole kind of cases can't help is said by the rule itself or by `UNREAD`. Nothing of
this is stored: the baseline is the same whatever is found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_proto import parameters as kinds
from diopi_proto.dtypes import truth
from diopi_proto.interface import lookup
from diopi_proto.parameters import Parameter, Role
from diopi_proto.prototype import Prototype
from diopi_test import store
from diopi_test.baseline import BaselineCase, Evaluation, Expected, entries_of
from diopi_test.budget import K, R
from diopi_test.case import Case
from diopi_test.cases import select_cases
from diopi_test.checks.values import compare
from diopi_test.formats import ulp
from diopi_test.parallel import in_processes
from diopi_test.reference import reference_of
from diopi_test.unread import UNREAD
from lib_rt.dtypes import to_numpy

Array = NDArray[Any]

FEW = 8
"""A result of fewer elements may be one value by chance if it holds truth values, of which there are but two."""

MOSTLY = 0.9
"""The share of the elements that makes a result of at least `FEW` be mostly one value."""

VALUES_TRIED = 8
"""How many of the values an attribute has in other cases a case is tried with."""


@dataclass(frozen=True)
class Finding:
    """A weak case: its id, the rule, and what the rule saw."""

    case: str
    rule: str
    seen: str

    def __str__(self) -> str:
        return f"{self.case}: {self.rule}: {self.seen}"


@dataclass(frozen=True, eq=False)
class Examined:
    """A case as described and as made."""

    case: Case
    made: BaselineCase

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
        """Whether there is something to tell from values.

        Random results have a distribution instead. A result without elements has none, one made of a tensor without
        elements is what the function makes of nothing, and where all tensors are 0-d, the rank is what is tried.
        """
        if self.prototype.promise == "random" or not any(_specified(e).size for e in self.expected):
            return False
        tensors = [_arrays(value) for value in self.plain.values() if isinstance(value, list | np.ndarray)]
        made_of_nothing = any(sum(array.size for array in arrays) == 0 for arrays in tensors)
        ranks = {array.ndim for array in (*chain(*tensors), *(e.values for e in self.expected))}
        return not made_of_nothing and (not tensors or ranks != {0})

    def tells(self, /, **changes: Any) -> bool | None:
        """Whether the results of other arguments would fail this case; None where there are no such results."""
        function = reference_of(self.made.function)
        assert function is not None
        evaluation = Evaluation(self.prototype, function, self.case)
        try:
            arrays = evaluation.arrays({**self.plain, **changes})
        except Exception:  # arguments the standard has no answer to
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
    """The elements the standard determines, in one axis."""
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

    Gradients that go to few places have zeros elsewhere, which is an answer too: `FEW` others show the places.
    A number all alone is an answer, but for 0, which memory may hold by chance. Truth values and positions have too
    few values to say so of few of them.
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
    if expected.blur is None or not np.isfinite(values).any():
        return False
    blur = np.asarray(expected.blur)
    blur = (blur if expected.specified is None else blur[expected.specified]).reshape(-1)[np.isfinite(values)]
    values = values[np.isfinite(values)]
    with np.errstate(over="ignore", invalid="ignore"):
        spread = np.abs(values - (values.mean() if values.size >= FEW else 0)).max()
        return bool(spread > 0 and np.median(K * ulp(values, expected.dtype) * blur) >= spread)


# Rules of arguments


@rule("does not depend on a tensor")
def independent_of_tensor(cases: Sequence[Examined]) -> Iterator[tuple[Examined, str]]:
    """A kernel that never reads the tensor gets it right.

    Calls that leave results out need not read what only those depend on, and a few truth values tell little.
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
    """Whether the parameter is a tensor that is there and that the standard says is read."""
    if not (parameter.is_tensor or parameter.is_tensor_array) or parameter.annotation is kinds.Workspace:
        return False
    return bool(_arrays(one.plain[parameter.name])) and not _is_unread(one, parameter.name)


def _is_independent(one: Examined, name: str) -> bool:
    """Whether the case tells none of the values the tensor might be taken for that have results."""
    untold = False
    for other in _other_tensors(one, name):
        if tells := one.tells(**{name: other}):
            return False
        untold |= tells is False
    return untold


def _other_tensors(one: Examined, name: str) -> Iterator[Any]:
    """Values a tensor argument might be taken for: changed ones, and those of the other tensors like it."""
    value = one.plain[name]
    for change in (_rolled, np.ones_like, np.zeros_like, _negated):
        yield [change(a) if a is not None else None for a in value] if isinstance(value, list) else change(value)
    if not isinstance(value, list):
        others = [one.plain[p.name] for p in one.prototype.arguments if p.is_tensor and p.name != name]
        yield from (a for a in others if a is not None and a.shape == value.shape and a.dtype == value.dtype)


def _rolled(array: Array) -> Array:
    """Every element in its neighbour's place."""
    return np.roll(array.reshape(-1), 1).reshape(array.shape)


def _negated(array: Array) -> Array:
    return ~array if array.dtype == bool else -array


@rule("does not depend on an attribute")
def independent_of_attribute(cases: Sequence[Examined]) -> Iterator[tuple[Examined, str]]:
    """A kernel that takes another value of the attribute for this one gets it right, in every case that has it.

    Of an attribute's values the most frequent one is no trial of the attribute. A value with which there would be no
    results, or results of other shapes, can't be taken for this one.
    """
    if not cases:
        return
    for parameter in cases[0].prototype.arguments:
        if parameter.role is Role.attribute and not issubclass(parameter.annotation, _NO_VALUES):
            yield from _untold_values(cases, parameter.name)


_NO_VALUES = (kinds.Generator, kinds.Generators, kinds.Pointer)
"""Attributes that aren't numbers or text."""


def _untold_values(cases: Sequence[Examined], name: str) -> Iterator[tuple[Examined, str]]:
    frequency = Counter(repr(one.plain[name]) for one in cases)
    values = {repr(one.plain[name]): one.plain[name] for one in cases}
    common = [text for text, _ in frequency.most_common(VALUES_TRIED + 1)]
    for text in [text for text in values if text != common[0]]:
        having = [one for one in cases if repr(one.plain[name]) == text and not _is_unread(one, name)]
        others = [values[other] for other in common if other != text][:VALUES_TRIED]
        answers = [one.tells(**{name: other}) for one in having for other in others]
        if answers and not any(answer is None or answer for answer in answers):
            yield from ((one, f"{name}={text}") for one in having)


def _is_unread(one: Examined, name: str) -> bool:
    return any(entry.covers(one.made, name) for entry in UNREAD)


# All rules


Progress = Callable[[str, object], None]


def find_weak_cases(
    functions: Sequence[str], level: str, folder: Path, workers: int, progress: Progress
) -> list[Finding]:
    """The weak cases of `functions` that give no reason, found in their baseline files with `workers` processes.

    Calls `progress(function, findings)` after each. Raises BaselineError when a file is damaged.
    """
    found: dict[str, list[Finding]] = {}
    for function, weak in in_processes(partial(weak_cases, level=level, folder=folder), functions, workers):
        found[function] = weak
        progress(function, weak)
    return [finding for function in functions for finding in found[function]]


def weak_cases(function: str, level: str, folder: Path) -> list[Finding]:
    """The weak cases in the baseline file of `function` that give no reason.

    What all cases together must show is not asked of the smoke level.
    """
    baseline = store.BaselineFile(store.file_of(folder, function))
    cases = [Examined(case, baseline.case(case.label)) for case in select_cases(function, level)]
    weak = [finding for one, finding in findings(cases) if not one.case.weak]
    return [finding for finding in weak if level == "full" or finding.rule not in OF_ALL_CASES]


def findings(cases: Sequence[Examined]) -> Iterator[tuple[Examined, Finding]]:
    """What every rule finds in the cases of one function, reasons or not."""
    examined = [one for one in cases if one.is_examined]
    for name, find in RULES.items():
        for one, seen in find(examined):
            yield one, Finding(one.made.id, name, seen)
