"""Non-discriminating cases: cases that a wrong implementation could pass.

A rule examines the cases of one function, with data and expected results, and reports the non-discriminating ones. If a
case can't be improved, it states the reason (`Case.non_discriminating`). If a reason holds for a whole kind of cases,
the rule makes an exception, or the prototype declares that the argument is ignored. The baseline does not store these
reasons.
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
from diopi_test.baseline.level import open_level_of_file
from diopi_test.baseline.parallel import ParallelMap
from diopi_test.baseline.shuffle import shuffle_by_seed
from diopi_test.baseline.store import baseline_file
from diopi_test.cases.case import Case
from diopi_test.cases.selection import select_cases
from diopi_test.checks.values import compare
from diopi_test.oracle.evaluation import Evaluation
from diopi_test.oracle.records import BaselineCase, Expected, expected_arrays
from diopi_test.oracle.reference import find_reference
from lib_rt.dtypes import to_numpy

Array = NDArray[Any]

FEW_ELEMENTS = 8
"""The number of truth values below which a result may be constant by chance, since there are only two values."""

DOMINANT_SHARE = 0.9
"""The share of the elements from which a result of at least `FEW_ELEMENTS` counts as dominated by one value."""

VALUES_TRIED = 8
"""The maximum number of values of an attribute, taken from other cases, that are tried in a case."""


@final
@dataclass(frozen=True, kw_only=True)
class NonDiscriminatingCase:
    """A case that a wrong result could pass, and the rule that found it.

    Attributes:
        case: the ID of the case.
        rule: the name of the rule.
        observation: what the rule observed, for instance the name of the result.
    """

    case: str
    rule: str
    observation: str

    def __str__(self) -> str:
        return f"{self.case}: {self.rule}: {self.observation}"


@final
@dataclass(frozen=True, eq=False)
class ExaminedCase:
    """A case that the rules examine.

    Attributes:
        case: the description of the case.
        baseline_case: the case with its data and expected results.
        place: its place among the cases of its function.
    """

    case: Case
    baseline_case: BaselineCase
    place: int = 0

    @property
    def prototype(self) -> Prototype:
        """The prototype of the function that the case calls."""
        return lookup(self.baseline_case.function)

    @cached_property
    def results(self) -> Mapping[str, list[Expected]]:
        """The expected results by name, each as a list of tensors."""
        return {name: expected_arrays(value) for name, value in self.baseline_case.expected.items()}

    @cached_property
    def expected(self) -> list[Expected]:
        """All expected results in a list, in the reference's order."""
        return [entry for entries in self.results.values() for entry in entries]

    @cached_property
    def plain_arguments(self) -> dict[str, Any]:
        """The arguments as the reference receives them, by name."""
        return self.baseline_case.plain_arguments()

    @property
    def has_truth_results(self) -> bool:
        """Whether the results are truth values; an in-place form stores them in another element type."""
        return lookup(self.prototype.base).result is truth

    @property
    def is_examined(self) -> bool:
        """Return whether the values of the results could show a wrong implementation.

        These cases are not examined:

        - cases with random results, which are tested for their distribution;
        - cases without specified result elements;
        - cases in which a tensor that a result depends on has no elements: they test empty input;
        - cases in which all tensors are 0-d: they test the rank.
        """
        if self.baseline_case.draws or not any(_specified_elements(entry).size for entry in self.expected):
            return False
        tensors = {name: _arrays_in(v) for name, v in self.plain_arguments.items() if isinstance(v, list | np.ndarray)}
        effective = [arrays for name, arrays in tensors.items() if _has_effect(self, name)]
        has_empty_input = any(sum(array.size for array in arrays) == 0 for arrays in effective)
        ranks = {array.ndim for array in (*chain(*tensors.values()), *(e.values for e in self.expected))}
        return not has_empty_input and (not tensors or ranks != {0})

    def distinguishes(self, /, **changes: Any) -> bool | None:
        """Return whether this case would fail if the vendor computed the results of changed arguments.

        Args:
            **changes: the changed arguments by name, as the reference takes them.

        Returns:
            True if a shape differs or the check `values` fails, and False otherwise. None if the reference raises an
            exception, because the standard defines no result for the changed arguments.
        """
        function = find_reference(self.baseline_case.function)
        assert function is not None
        evaluation = Evaluation(self.prototype, function, self.case)
        try:
            arrays = evaluation.arrays({**self.plain_arguments, **changes})
        except Exception:  # the standard defines no result for these arguments
            return None
        if [array.shape for array in arrays] != [e.values.shape for e in self.expected]:
            return True
        return any(_fails_value_check(array, e) for array, e in zip(arrays, self.expected, strict=True))


def _arrays_in(value: Any) -> list[Array]:
    """Return the tensors in one argument."""
    entries = value if isinstance(value, list) else [value]
    return [entry for entry in entries if isinstance(entry, np.ndarray)]


def _fails_value_check(array: Array, expected: Expected) -> bool:
    """Return whether the check `values` fails for the results `array` if `expected` is expected."""
    with np.errstate(all="ignore"):
        comparison = compare(array.astype(to_numpy(expected.dtype)), expected)
    return bool(comparison.is_wrong.any()) or comparison.exceeds_rms_limit


def _specified_elements(expected: Expected) -> Array:
    """Return the elements that the standard specifies, flattened."""
    values = expected.values if expected.specified is None else expected.values[expected.specified]
    return values.reshape(-1)


RULES_OVER_ALL_CASES = frozenset({"does not depend on an attribute"})
"""The rules that compare all cases of a function: one case that distinguishes an attribute's values is enough."""

Rule = Callable[[Sequence[ExaminedCase]], Iterator[tuple[ExaminedCase, str]]]
"""Yields the non-discriminating cases of a function, each with what the rule observed."""

RULES: dict[str, Rule] = {}
"""All rules, by name."""


def rule(name: str) -> Callable[[Rule], Rule]:
    """Return a decorator that registers a rule under this name."""

    def register(function: Rule) -> Rule:
        """Register a rule and return it."""
        RULES[name] = function
        return function

    return register


# Rules of results


def _iterate_results(cases: Sequence[ExaminedCase]) -> Iterator[tuple[ExaminedCase, str, Array]]:
    """Yield case, name and specified values of each result; an array of tensors counts as one result."""
    for case in cases:
        for name, entries in case.results.items():
            values = [_specified_elements(e) for e in entries]
            if sum(v.size for v in values):
                yield case, name, np.concatenate(values)


@rule("all NaN")
def find_all_nan(cases: Sequence[ExaminedCase]) -> Iterator[tuple[ExaminedCase, str]]:
    """Yield cases with a result that is NaN everywhere: any kernel that divides 0 by 0 passes them."""
    for case, name, values in _iterate_results(cases):
        if values.dtype.kind in "fc" and np.isnan(values).all():
            yield case, name


@rule("one value")
def find_constant_results(cases: Sequence[ExaminedCase]) -> Iterator[tuple[ExaminedCase, str]]:
    """Yield cases with a result that has (almost) only one value: a kernel that writes a constant passes them.

    These results discriminate nevertheless:

    - zeros with at least `FEW_ELEMENTS` other elements, as in a gradient that is scattered to a few positions;
    - a single number other than 0 (memory may contain 0 by chance), or any single number if the case has other results;
    - fewer than `FEW_ELEMENTS` truth values or positions.
    """
    for case, name, values in _iterate_results(cases):
        is_float = values.dtype.kind in "fc" and not case.has_truth_results
        is_single_number = values.size == 1 and (values[0] != 0 or len(case.expected) > 1)
        if values.size < FEW_ELEMENTS and (is_single_number or not is_float):
            continue
        value, count = _most_frequent(values)
        if _is_dominant(value, count, values.size):
            yield case, f"{count} of {values.size} elements of {name} are {value}"


def _is_dominant(value: Any, count: int, size: int) -> bool:
    """Return whether a value that occurs `count` times dominates a result of `size` elements."""
    if np.isnan(value) or (value == 0 and size - count >= FEW_ELEMENTS):
        return False
    return count >= (DOMINANT_SHARE * size if size >= FEW_ELEMENTS else size)


def _most_frequent(values: Array) -> tuple[Any, int]:
    """Return the most frequent value and how often it occurs."""
    distinct, counts = np.unique(values, return_counts=True)
    index = int(counts.argmax())
    return distinct[index], int(counts[index])


@rule("budget wider than the values")
def find_wide_budgets(cases: Sequence[ExaminedCase]) -> Iterator[tuple[ExaminedCase, str]]:
    """Yield cases with a result whose median error budget covers the largest difference of an element from the mean.

    In a result of fewer than `FEW_ELEMENTS` elements, the differences from 0 count.
    """
    for case in cases:
        for name, entries in case.results.items():
            for entry in entries:
                if _has_wide_budget(entry):
                    yield case, name


def _has_wide_budget(expected: Expected) -> bool:
    """Return whether the median error budget of the finite values is at least their spread, which is not 0."""
    values = _specified_elements(expected)
    if expected.budget is None or not np.isfinite(values).any():
        return False
    budget = expected.budget if expected.specified is None else expected.budget.select(expected.specified)
    limit, values = budget.limit.reshape(-1)[np.isfinite(values)], values[np.isfinite(values)]
    with np.errstate(over="ignore", invalid="ignore"):
        spread = np.abs(values - (values.mean() if values.size >= FEW_ELEMENTS else 0)).max()
        return bool(spread > 0 and np.median(limit) >= spread)


# Rules of arguments


@rule("does not depend on a tensor")
def find_independent_of_tensor(cases: Sequence[ExaminedCase]) -> Iterator[tuple[ExaminedCase, str]]:
    """Yield cases whose results do not depend on a tensor: a kernel that never reads the tensor passes them.

    Two kinds of cases are left out: calls that omit results (they need not read what only these results depend on), and
    cases with few truth values.
    """
    for case in cases:
        if _omits_results(case) or _has_few_truth_results(case):
            continue
        for parameter in case.prototype.arguments:
            if _is_effective_tensor(case, parameter) and _is_independent(case, parameter.name):
                yield case, parameter.name


def _omits_results(case: ExaminedCase) -> bool:
    """Return whether the caller of a case omits a result."""
    return any(override is None for override in case.case.results.values())


def _has_few_truth_results(case: ExaminedCase) -> bool:
    """Return whether the results are truth values, and so few that they may be constant by chance."""
    return case.has_truth_results and sum(e.values.size for e in case.expected) < FEW_ELEMENTS


def _is_effective_tensor(case: ExaminedCase, parameter: Parameter) -> bool:
    """Return whether the case passes a tensor for the parameter and a result may depend on the tensor."""
    if not (parameter.is_tensor or parameter.is_tensor_array):
        return False
    return bool(_arrays_in(case.plain_arguments[parameter.name])) and _has_effect(case, parameter.name)


def _is_independent(case: ExaminedCase, name: str) -> bool:
    """Return whether the case would pass with every substitute for the tensor for which there is a result."""
    has_same_results = False
    for substitute in _substitute_tensors(case, name):
        if differs := case.distinguishes(**{name: substitute}):
            return False
        has_same_results |= differs is False
    return has_same_results


def _substitute_tensors(case: ExaminedCase, name: str) -> Iterator[Any]:
    """Yield substitutes for a tensor: modified copies, and other tensors of the same shape and element type."""
    value = case.plain_arguments[name]
    for change in (_roll_elements, np.ones_like, np.zeros_like, _negate):
        yield [change(a) if a is not None else None for a in value] if isinstance(value, list) else change(value)
    if not isinstance(value, list):
        names = [p.name for p in case.prototype.arguments if p.is_tensor and p.name != name]
        arrays = [a for a in map(case.plain_arguments.__getitem__, names) if isinstance(a, np.ndarray)]
        alike = (a for a in arrays if a.shape == value.shape and a.dtype == value.dtype)
        yield from (a for a in alike if not np.array_equal(a, value))  # equal numbers would have equal results


def _roll_elements(array: Array) -> Array:
    """Return the array with every element moved to the next position in row-major order."""
    return np.roll(array.reshape(-1), 1).reshape(array.shape)


def _negate(array: Array) -> Array:
    """Return the array with negated numbers or inverted truth values."""
    return ~array if array.dtype == bool else -array


@rule("does not depend on an attribute")
def find_independent_of_attribute(cases: Sequence[ExaminedCase]) -> Iterator[tuple[ExaminedCase, str]]:
    """Yield cases with an attribute value that no case distinguishes from other values.

    A kernel that uses another value instead passes every case with this value. The most frequent value of an attribute
    counts as its default and is not examined. A case also distinguishes two values if the standard defines no result
    for the other value, or results of other shapes.
    """
    if not cases:
        return
    for parameter in cases[0].prototype.arguments:
        if parameter.role is Role.attribute and not issubclass(parameter.annotation, _OPAQUE_ATTRIBUTES):
            yield from _find_indistinct_values(cases, parameter.name)


_OPAQUE_ATTRIBUTES = (*kinds.GENERATORS, kinds.Pointer)
"""Attributes that are neither numbers nor text."""


def _find_indistinct_values(cases: Sequence[ExaminedCase], name: str) -> Iterator[tuple[ExaminedCase, str]]:
    """Yield cases with a value of an attribute that no case distinguishes from the tried alternatives."""
    in_order = sorted(cases, key=lambda case: case.place)  # the place decides between equally frequent values
    frequency = Counter(repr(case.plain_arguments[name]) for case in in_order)
    values = {repr(case.plain_arguments[name]): case.plain_arguments[name] for case in in_order}
    common = [text for text, _ in frequency.most_common(VALUES_TRIED + 1)]
    for text in [text for text in values if text != common[0]]:
        matching = [case for case in cases if repr(case.plain_arguments[name]) == text and _has_effect(case, name)]
        alternatives = [values[alternative] for alternative in common if alternative != text][:VALUES_TRIED]
        differs = [case.distinguishes(**{name: value}) for case in matching for value in alternatives]
        if differs and not any(is_different is None or is_different for is_different in differs):
            yield from ((case, f"{name}={text}") for case in matching)


def _has_effect(case: ExaminedCase, name: str) -> bool:
    """Return whether a result may depend on the argument."""
    is_data = case.prototype.parameter(name).annotation is not kinds.Workspace
    return is_data and case.prototype.has_effect(name, case.baseline_case.arguments)


# All rules


Callback = Callable[[str, object], None]
"""A function that is called with the name of each examined function and the cases found in it."""


def find_non_discriminating_cases(
    functions: Sequence[str], level: str, folder: Path, spread: ParallelMap, progress: Callback, seed: int | None = None
) -> list[NonDiscriminatingCase]:
    """Return the non-discriminating cases of several functions, without cases that state a reason.

    Args:
        functions: the names of the functions.
        level: the name of the level.
        folder: the folder with the level's baseline files.
        spread: distributes the functions among processes.
        progress: called with the function and what was found after each function.
        seed: determines the order in which functions and cases are examined, which does not affect the result.

    Returns:
        The cases in the order of the functions.

    Raises:
        BaselineError: a baseline file is damaged.
    """
    by_function: dict[str, list[NonDiscriminatingCase]] = {}
    work = partial(find_in_function, level=level, folder=folder, seed=seed)
    for function, result in spread(work, shuffle_by_seed(functions, seed)):
        by_function[function] = result
        progress(function, result)
    return [case for function in functions for case in by_function[function]]


def find_in_function(function: str, level: str, folder: Path, seed: int | None = None) -> list[NonDiscriminatingCase]:
    """Return the non-discriminating cases of one function in order, without cases that state a reason.

    Rules that compare all cases of a function do not apply to the smoke level.

    Args:
        function: the name of the function.
        level: the name of the level.
        folder: the folder with the level's baseline files.
        seed: determines the order in which the cases are examined, which does not affect the result.

    Returns:
        The cases in their order in the baseline file.
    """
    baseline = open_level_of_file(baseline_file(folder, function)).open(function)
    selected = enumerate(select_cases(function, level))
    cases = [ExaminedCase(case, baseline.case(case.label), place) for place, case in selected]
    candidates = [
        pair for pair in apply_rules(shuffle_by_seed(cases, seed, _label_of)) if not pair[0].case.non_discriminating
    ]
    candidates.sort(key=lambda pair: (pair[0].place, list(RULES).index(pair[1].rule), pair[1].observation))
    return [result for _, result in candidates if level == "full" or result.rule not in RULES_OVER_ALL_CASES]


def _label_of(case: ExaminedCase) -> str:
    """Return the label of a case."""
    return case.case.label


def apply_rules(cases: Sequence[ExaminedCase]) -> Iterator[tuple[ExaminedCase, NonDiscriminatingCase]]:
    """Yield what every rule finds in the cases of one function, including cases that give a reason.

    Args:
        cases: the cases of one function; only those that `is_examined` allows are examined.

    Yields:
        The case and what the rule found.
    """
    examined = [case for case in cases if case.is_examined]
    for name, find in RULES.items():
        for case, observation in find(examined):
            yield case, NonDiscriminatingCase(case=case.baseline_case.id, rule=name, observation=observation)
