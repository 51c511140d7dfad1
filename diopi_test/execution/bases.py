"""Find the stored cases from which other cases are derived when they run.

A derived case repeats a stored case with a change, for example with an invalid shape. The stored case is its base.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from diopi_test.oracle.records import BaselineCase

Target = TypeVar("Target")
"""The type of the description of a change to a stored case."""


def find_bases(
    targets: Mapping[str, Target], cases: Iterable[BaselineCase], applies: Callable[[BaselineCase, Target], bool]
) -> list[tuple[str, str]]:
    """Find the first stored case from which each case can be derived.

    Args:
        targets: What to change in a stored case, by the label of the derived case.
        cases: The stored cases of a function.
        applies: Returns whether a change applies to a stored case. Types, shapes and attributes decide, not values.

    Returns:
        Pairs of the label of a derived case and the label of its base, in the order of `targets`.
    """
    remaining, bases = dict(targets), {}
    for case in cases if remaining else ():
        for label in [label for label, target in remaining.items() if applies(case, target)]:
            bases[label] = case.label
            del remaining[label]
        if not remaining:
            break
    return [(label, bases[label]) for label in targets if label in bases]
