"""A vendor that loads quickly, with the two functions with which a framework tests every way to call a library."""

from __future__ import annotations

import numpy as np
from small_vendor import Array, small_vendor


def sine(input: Array) -> Array:
    return np.sin(input)


def inverted(input: Array) -> Array:
    return np.invert(input)


vendor = small_vendor(diopiSin=sine, diopiBitwiseNot=inverted)
