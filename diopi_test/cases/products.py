"""Shared parts of the cases of sums of products: numbers with exact products, and non-finite numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.dtypes import is_complex, is_floating
from diopi_proto.types import Dtype
from diopi_test.cases.domains import Domain, choice, full_range, integer_values, uniform


def exact_numbers(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Draw integers whose sums of products are exact.

    Args:
        rng: The random generator.
        count: The number of integers.
        dtype: The element type.

    Returns:
        For floating-point types, integers from 1 to 3 in magnitude. For complex types, real and imaginary parts from
        −30 to 30. For integer types, integers from the whole range, whose products wrap around.
    """
    if is_complex(dtype):
        return integer_values(-30, 30)(rng, count, dtype)
    if is_floating(dtype):
        return choice([-3, -2, -1, 1, 2, 3])(rng, count, dtype)
    return full_range(rng, count, dtype)


def partly_infinite(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Draw positive numbers, and replace the first by infinity and the last by NaN, which spread through products."""
    values = uniform(0.5, 2)(rng, count, dtype)
    values[[0, -1]] = np.inf, np.nan
    return values


def fixed_values(values: Any) -> Domain:
    """Return a domain that returns these values in order, repeated if there are more elements."""
    return lambda rng, count, dtype: np.resize(np.asarray(values), count)
