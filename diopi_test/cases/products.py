"""What the cases of sums of products share: numbers whose products are exact, numbers that are not finite, labels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.dtypes import is_complex, is_floating
from diopi_proto.types import Dtype
from diopi_test.case import Case
from diopi_test.domains import Domain, between, choice, whole, whole_range


def exact_numbers(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Numbers whose sums of products are exact: whole ones, small for the sake of half precision, and never 0.

    Integers are of the whole range, so that their sums wrap around.
    """
    if is_complex(dtype):
        return whole(-30, 30)(rng, count, dtype)
    if is_floating(dtype):
        return choice([-3, -2, -1, 1, 2, 3])(rng, count, dtype)
    return whole_range(rng, count, dtype)


def given(values: Any) -> Domain:
    """Exactly these values."""
    return lambda rng, count, dtype: np.resize(np.asarray(values), count)


def label(dtype: Dtype, *words: str) -> str:
    """A case's label: the element type, then what tells the case from the others."""
    return "-".join([dtype.name, *filter(None, words)])


def with_special(case: Case, name: str) -> Case:
    """The same case with an infinity and a NaN in tensor argument `name`, which spread as far as products go."""
    special = replace(case.arguments[name], domain=_not_all_finite)
    return replace(case, arguments={**case.arguments, name: special})


def _not_all_finite(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    values = between(0.5, 2)(rng, count, dtype)  # sums of what is finite don't cancel
    values[[0, -1]] = np.inf, np.nan
    return values
