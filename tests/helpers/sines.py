"""A vendor that is loaded quickly, with the two functions by which a framework tries every way to call a library."""

from __future__ import annotations

import numpy as np
from small_vendor import Array, small_vendor


def sine(input: Array) -> Array:
    return np.sin(input)


def inverted(input: Array) -> Array:
    return np.invert(input)


vendor = small_vendor(diopiSin=sine, diopiBitwiseNot=inverted)
