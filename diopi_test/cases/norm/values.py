"""Domains of inputs of norms and normalization layers, and values of their attributes.

A domain draws the values of a tensor (`diopi_test.cases.domains`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.cases.domains import Domain, integer_values, normal, uniform

SHIFTED = normal(1, mean=0.75)
"""A domain of normally distributed numbers with the mean 0.75, so that a wrong mean changes the results."""

POSITIVE_INTEGERS = integer_values(1, 100)
"""Integers from 1 to 100. Float32 represents their sums exactly, and half precision does not."""


FAR_FROM_ZERO = normal(1, mean=100)
"""Numbers so far from 0 that the formula E[x²] − mean² of the variance loses most digits."""

SQUARES_OVERFLOW_FLOAT16 = uniform(300, 3000)
"""Numbers whose squares are too large for float16, while their deviations from the mean are not."""

EPS, MOMENTUM = 2.0**-6, 2.0**-3
"""Values of eps and momentum. They are large enough to affect half-precision results, and exact in every type."""


def shifted_starting_with(value: float) -> Domain:
    """Return a domain that draws from `SHIFTED` and replaces the first element by `value`."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        """Return the values, with the first one replaced."""
        values = SHIFTED(rng, count, dtype)
        values[0] = value
        return values

    return draw


def draw_half_zero(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Return values from `SHIFTED`, with the first half of the elements replaced by 0."""
    values = SHIFTED(rng, count, dtype)
    values[: count // 2] = 0
    return values


def domain_of_rows(length: int, draw_row: Callable[[Generator, int], Any]) -> Domain:
    """Return a domain of tensors that consist of rows.

    Args:
        length: The number of elements of a row.
        draw_row: Returns the elements of a row for the random generator and the number of the row (0, 1, …).

    Returns:
        The domain.
    """

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        """Return the rows, one after another."""
        return np.asarray(np.concatenate([draw_row(rng, number) for number in range(count // length)]))

    return draw


def two_values(length: int) -> Domain:
    """Return a domain of rows of even length that contain two values equally often, in random order.

    In rotation, the means of the rows are 3, 5 and 2, and the standard deviations are 2, 4 and 1. Statistics are
    therefore exact.

    Args:
        length: The number of elements of a row.

    Returns:
        The domain.
    """
    pairs = [5, 1], [9, 1], [3, 1]
    return domain_of_rows(length, lambda rng, number: rng.permutation(np.resize(pairs[number % 3], length)))


def equal_rows(length: int) -> Domain:
    """Return a domain of rows with equal elements, whose variance is 0.

    Args:
        length: The number of elements of a row.

    Returns:
        The domain. The elements of successive rows are 2.0, −1.5 and 0.25, in rotation.
    """
    return domain_of_rows(length, lambda rng, number: np.full(length, [2.0, -1.5, 0.25][number % 3]))
