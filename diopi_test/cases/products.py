"""What the cases of sums of products share: numbers whose products are exact, and numbers that are not finite."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.dtypes import is_complex, is_floating
from diopi_proto.types import Dtype
from diopi_test.cases.domains import Domain, choice, full_range, integer_values, uniform


def exact_numbers(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Numbers whose sums of products are exact: whole ones, small for the sake of half precision, and never 0.

    Integers are of the whole range, so that their sums wrap around.
    """
    if is_complex(dtype):
        return integer_values(-30, 30)(rng, count, dtype)
    if is_floating(dtype):
        return choice([-3, -2, -1, 1, 2, 3])(rng, count, dtype)
    return full_range(rng, count, dtype)


def partly_infinite(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """An infinity first and a NaN last, which spread as far as products go; sums of what is between don't cancel."""
    values = uniform(0.5, 2)(rng, count, dtype)
    values[[0, -1]] = np.inf, np.nan
    return values


def fixed_values(values: Any) -> Domain:
    """Exactly these values."""
    return lambda rng, count, dtype: np.resize(np.asarray(values), count)
