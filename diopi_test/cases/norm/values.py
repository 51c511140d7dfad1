"""Domains of the inputs of norms, and default attributes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.cases.domains import Domain, integer_values, normal, uniform

SHIFTED = normal(1, mean=0.75)
"""Numbers around a center other than 0, so that the mean counts."""

POSITIVE_INTEGERS = integer_values(1, 100)
"""Whole numbers whose sums float32 represents exactly and half precision does not."""


FAR = normal(1, mean=100)
"""Numbers so far from 0 that the variance is lost if it is computed as E[x²] − mean²."""

BEYOND_ITS_SQUARE = uniform(300, 3000)
"""Numbers whose squares are too large for float16, while their deviations are not."""

EPS, MOMENTUM = 2.0**-6, 2.0**-3
"""Large enough to count in half precision, and numbers of every format."""


def with_first(value: float) -> Domain:
    """Return a domain of `SHIFTED` values with `value` as the first."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        values = SHIFTED(rng, count, dtype)
        values[0] = value
        return values

    return draw


def draw_half_zero(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Draw `SHIFTED` values with zeros in the first half of the elements."""
    values = SHIFTED(rng, count, dtype)
    values[: count // 2] = 0
    return values


def rows(length: int, draw_row: Callable[[Generator, int], Any]) -> Domain:
    """Return a domain of rows of `length` elements, each of which `draw_row` makes from the row's number."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        return np.asarray(np.concatenate([draw_row(rng, number) for number in range(count // length)]))

    return draw


def two_values(length: int) -> Domain:
    """Return a domain of rows with even length, whose means are 3, 5, 2 and whose deviations are 2, 4, 1 in turn."""
    pairs = [5, 1], [9, 1], [3, 1]
    return rows(length, lambda rng, number: rng.permutation(np.resize(pairs[number % 3], length)))


def equal_rows(length: int) -> Domain:
    """Return a domain of rows of equal elements."""
    return rows(length, lambda rng, number: np.full(length, [2.0, -1.5, 0.25][number % 3]))
