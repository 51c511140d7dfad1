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
    """Draw nonzero integers whose sums of products are exact, small in floating types; integers wrap around."""
    if is_complex(dtype):
        return integer_values(-30, 30)(rng, count, dtype)
    if is_floating(dtype):
        return choice([-3, -2, -1, 1, 2, 3])(rng, count, dtype)
    return full_range(rng, count, dtype)


def partly_infinite(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Draw infinity first and NaN last, which spread through products; the sums of the other values do not cancel."""
    values = uniform(0.5, 2)(rng, count, dtype)
    values[[0, -1]] = np.inf, np.nan
    return values


def fixed_values(values: Any) -> Domain:
    """Return a domain that returns exactly these values."""
    return lambda rng, count, dtype: np.resize(np.asarray(values), count)
