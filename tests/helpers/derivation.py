"""The smoke cases of a function, and the valid case from which a negative or another derived case is made.

Derived cases are not stored: each is a stored valid case with a change, for instance a NULL in place of an argument.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache

from diopi_proto.interface import lookup
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.selection import select_cases
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.records import BaselineCase

ListLabels = Callable[[Prototype, Sequence[BaselineCase]], Iterable[tuple[str, str]]]
"""Yields the labels of derived cases, each with the label of the valid case that it is derived from."""


@cache
def smoke_cases(function: str) -> Sequence[BaselineCase]:
    """Return the smoke cases with their data, those of float32 first."""
    prototype = lookup(function)
    cases = [compute_baseline_case(prototype, case) for case in select_cases(function, "smoke")]
    return sorted(cases, key=lambda case: case.dtype is not Dtype.float32)


@cache
def derived_labels(list_labels: ListLabels, function: str) -> dict[str, str]:
    """Return the label of the valid case from which each derived case of a function is derived, by label."""
    return dict(list_labels(lookup(function), smoke_cases(function)))


def find_base(list_labels: ListLabels, function: str, label: str) -> BaselineCase:
    """Return the valid case from which a case is derived."""
    base = derived_labels(list_labels, function)[label]
    return next(case for case in smoke_cases(function) if case.label == base)
