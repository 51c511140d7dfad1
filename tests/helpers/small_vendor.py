"""Vendors with a few NumPy operators, for tests that need a known arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from diopi_impl import Vendor
from diopi_impl.host_runtime import HostRuntime

Array = np.ndarray[Any, Any]


def small_vendor(**implementations: Callable[..., Any]) -> Vendor:
    """Return a vendor with these implementations, by the name of the function; each returns new arrays."""
    vendor = Vendor("small", "1", HostRuntime().functions(), host_addressable=True)
    for name, implementation in implementations.items():
        vendor.implements(name)(implementation)
    return vendor


def square_root(input: Array) -> Array:
    """Return the square root of each element."""
    return np.sqrt(input)


def summed(input: Array, dim: tuple[int, ...]) -> Array:
    """Return sums that are accumulated in float64."""
    return np.add.reduce(input, axis=dim, dtype=np.float64).astype(input.dtype)


vendor = small_vendor(diopiSqrt=square_root, diopiSum=summed)
"""The vendor that separate processes find by name."""
