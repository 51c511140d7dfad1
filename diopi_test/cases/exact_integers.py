"""Integers whose sums and products do not overflow, but exceed the integers that a floating-point type represents.

A vendor that adds or multiplies int64 in float64, or int32 in float32, returns wrong results for these integers.
Integers of the whole range also reveal such a vendor. But their sums overflow, so that a failure may be mistaken for an
effect of overflow.
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
"""By integer type, the floating-point type in which a vendor is most likely to compute by mistake."""


def integers_without_overflow(*, factors: int = 1, terms: int = 1) -> Domain:
    """Return a domain of integers of both signs, whose products and sums of products do not overflow.

    Args:
        factors: The number of factors of a product.
        terms: The number of products that are added up.

    Returns:
        A domain for int32 and int64. Each product is odd, and larger than all consecutive integers that the type in
        `TOO_NARROW` represents. For other types, which fuzzed calls may have, the domain draws integers from −9 to 9.
        The domain raises ValueError if there are no such integers.
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
