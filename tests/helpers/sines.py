"""A vendor that loads quickly, with two functions: sines and inverted bits.

A framework written in C++ calls just these two to test every way to load and call a library, see tests/vendors.
"""

from __future__ import annotations

import numpy as np
from small_vendor import Array, small_vendor


def sine(input: Array) -> Array:
    """Return the sine of each element."""
    return np.sin(input)


def bitwise_not(input: Array) -> Array:
    """Return each element with all bits inverted."""
    return np.invert(input)


vendor = small_vendor(diopiSin=sine, diopiBitwiseNot=bitwise_not)
