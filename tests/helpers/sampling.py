"""Samples of parameters that are too many for every run: `-m exhaustive` runs the rest, with `--draw` a part of it."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Collection, Iterable
from typing import Any

import pytest

from diopi_proto.interface import prototypes

OPERATORS = [name for name, prototype in prototypes().items() if prototype.parameters]
"""All functions except those that only return a text. Each has cases."""

SEED = "DIOPI_SAMPLE_SEED"
"""The environment variable with the seed. The processes of pytest-xdist inherit it, so all of them draw the same
sample."""

os.environ.setdefault(SEED, str(random.SystemRandom().randrange(10**9)))


def draw_sample(items: Iterable[Any], size: int) -> list[Any]:
    """Return `size` of the items, drawn with the seed."""
    return random.Random(os.environ[SEED]).sample(list(items), size)


def sampled(items: Iterable[Any], size: int) -> list[Any]:
    """Return the items as parameters of a test; those that are not in the sample are marked `exhaustive`.

    Args:
        items: The values of the parameter, or tuples of the values of several parameters.
        size: The number of items in the sample.

    Returns:
        Parameters for `pytest.mark.parametrize`.
    """
    parameters = [item if isinstance(item, tuple) else (item,) for item in items]
    sample = set(draw_sample(range(len(parameters)), min(size, len(parameters))))
    return [
        pytest.param(*values, marks=() if number in sample else pytest.mark.exhaustive)
        for number, values in enumerate(parameters)
    ]


def draw_exhaustive(items: Iterable[pytest.Item], percent: float) -> Collection[pytest.Item]:
    """Return a part of the tests that are marked `exhaustive`, drawn with the seed, and all other tests.

    Args:
        items: The tests.
        percent: The part of the marked tests, rounded up to a whole number of tests.

    Returns:
        The tests, in no particular order.
    """
    groups: dict[bool, list[pytest.Item]] = {True: [], False: []}
    for item in items:
        groups[item.get_closest_marker("exhaustive") is not None].append(item)
    size = math.ceil(len(groups[True]) * min(percent, 100) / 100)
    return {*groups[False], *draw_sample(groups[True], size)}
