"""Integers whose sums and products do not overflow, while a floating type can't represent them.

A vendor that adds or multiplies int64 in float64, or int32 in float32, returns wrong results for them. Integers of the
whole range show this, too, but their sums overflow, so that a failure may be mistaken for a matter of overflow.
"""

from __future__ import annotations

from math import ceil, floor
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.cases.domains import Domain, integer_values
from lib_rt.formats import format_of

TOO_NARROW = {Dtype.int32: Dtype.float32, Dtype.int64: Dtype.float64}
"""The floating type in which integers of a type are most likely to be computed by mistake."""


def integers_without_overflow(*, factors: int = 1, terms: int = 1) -> Domain:
    """Return a domain of integers of both signs, whose products and sums of products do not overflow.

    Args:
        factors: The number of factors of a product.
        terms: The number of products that are added up.

    Returns:
        A domain for int32 and int64. Each product is odd and larger than the integers that `TOO_NARROW` represents. In
        other types, which fuzzed calls may have, the numbers are small.
    """

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        if dtype not in TOO_NARROW:
            return integer_values(-9, 9)(rng, count, dtype)
        smallest = 2.0 ** format_of(TOO_NARROW[dtype]).precision
        largest = np.iinfo(dtype.name).max / terms
        low, high = ceil(smallest ** (1 / factors)), floor(largest ** (1 / factors)) - 1
        if low >= high:
            raise ValueError(f"sums of {terms} products of {factors} such factors overflow in {dtype.name}")
        magnitudes = rng.integers(low // 2, high // 2, count, endpoint=True) * 2 + 1
        return rng.choice([-1, 1], count) * magnitudes

    return draw
