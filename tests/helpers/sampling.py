"""Draw samples of tests that are too many or too slow for every run.

`-m exhaustive` runs the parameters that a sample leaves out, and `-m slow` runs the tests that take several seconds.
`--draw` and `--draw-slow` run a part of them.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, combinations
from typing import Any

import pytest
from _pytest.mark.expression import Expression

from diopi_proto.interface import prototypes

OPERATORS = [name for name, prototype in prototypes().items() if prototype.parameters]
"""All functions except those that only return a text. Each has cases."""

SEED = "DIOPI_SAMPLE_SEED"
"""The environment variable with the seed. The processes of pytest-xdist inherit it, so all of them draw the same
sample."""

os.environ.setdefault(SEED, str(random.SystemRandom().randrange(10**9)))

omitted_markers: set[str] = set()
"""The markers of parameters that `sampled` leaves out, because the option `-m` of pytest deselects all of them."""


def find_deselected_markers(expression: str, markers: Collection[str]) -> set[str]:
    """Return the markers for which no test with this marker is selected, whatever further markers the test has.

    Args:
        expression: The expression of the option `-m` of pytest; empty if it selects all tests.
        markers: The markers that the expression may name.

    Returns:
        The markers without selected tests.
    """
    if not expression:
        return set()
    compiled = Expression.compile(expression)

    def is_selected(present: Collection[str]) -> bool:
        return compiled.evaluate(lambda name, **_: name in present)

    subsets = chain.from_iterable(combinations(markers, size) for size in range(len(markers) + 1))
    return set(markers).difference(*filter(is_selected, subsets))


def draw_sample(items: Iterable[Any], size: int) -> list[Any]:
    """Return `size` of the items, drawn with the seed."""
    return random.Random(os.environ[SEED]).sample(list(items), size)


def sampled(items: Iterable[Any], size: int, slow: int = 0, ids: Sequence[str] = ()) -> list[Any]:
    """Return the items as parameters of a test; those that are not in the sample are marked `slow` or `exhaustive`.

    Pytest would take seconds to collect thousands of exhaustive tests, only to deselect them. The parameters therefore
    lack the items with a marker in `omitted_markers`, unless they would be the only ones.

    Args:
        items: The values of the parameter, or tuples of the values of several parameters.
        size: The number of items in the sample.
        slow: The number of further items that are drawn and marked `slow`, so that CI also tests them.
        ids: The names of the items in the IDs of the tests; empty if pytest names them.

    Returns:
        Parameters for `pytest.mark.parametrize`.
    """
    parameters = [item if isinstance(item, tuple) else (item,) for item in items]
    sample = draw_sample(range(len(parameters)), min(size + slow, len(parameters)))
    marks: dict[int, Any] = {**dict.fromkeys(sample, pytest.mark.slow), **dict.fromkeys(sample[:size], ())}
    return [
        pytest.param(*values, marks=marks.get(number, pytest.mark.exhaustive), id=ids[number] if ids else None)
        for number, values in enumerate(parameters)
        if number in marks or "exhaustive" not in omitted_markers or not marks
    ]


def draw_marked(items: Iterable[pytest.Item], percentages: Mapping[str, float]) -> Collection[pytest.Item]:
    """Return a part of the tests that have certain markers, drawn with the seed, and all tests without these markers.

    Args:
        items: The tests.
        percentages: By marker, the part of its tests, rounded up to a whole number of tests. The first marker of a
            test decides.

    Returns:
        The tests, in no particular order.
    """
    groups: dict[str | None, list[pytest.Item]] = {name: [] for name in (None, *percentages)}
    for item in items:
        groups[next((name for name in percentages if item.get_closest_marker(name) is not None), None)].append(item)
    selected = set(groups[None])
    for name, percent in percentages.items():
        selected.update(draw_sample(groups[name], math.ceil(len(groups[name]) * min(percent, 100) / 100)))
    return selected
