"""Sums along axes: the size of the terms that may cancel in them."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

Axes = tuple[int, ...] | int | None
"""As NumPy takes them: None for all."""


def length(array: Array, axes: Axes) -> int:
    """Number of elements in a slice along `axes`."""
    if axes is None:
        return array.size
    return prod(array.shape[axis] for axis in ((axes,) if isinstance(axes, int) else axes))


def sum_terms(array: Array, axes: Axes, keepdims: bool = False) -> Array:
    """The terms of sums along `axes`, as `accumulated` has them."""
    magnitude = np.abs(array).astype(np.float64)

    def total(values: Array) -> Array:
        return np.asarray(np.sum(values, axis=axes, keepdims=keepdims))

    return accumulated(length(array, axes), total(magnitude), total(magnitude**2), total(array))


def relative_terms(array: Array, axes: Axes) -> Array:
    """The terms of sums along `axes`, which are kept, divided by the sums: for what is divided by them in turn."""
    return np.asarray(sum_terms(array, axes, keepdims=True) / np.sum(array, axis=axes, keepdims=True))


def accumulated(count: Any, magnitudes: Array, squares: Array, value: Array) -> Array:
    """The terms of a sum of n values x, from n, Σ|x|, Σx² and Σx: roundings of the values and of the partial sums.

    The values' own roundings add up as a random walk does, to Σ|x| · √n / n. A partial sum is rounded each time a
    value is added; over all orders of adding, its squares sum up to (n + 1) · (Σx² / 6 + (Σx)² / 3) in the mean, of
    which a rounding takes a twelfth of eps² (a uniform error of one ulp's width).
    """
    n = np.maximum(count, 1)
    partial_sums = (n + 1) * (squares / 6 + np.abs(value) ** 2 / 3) / 12
    return np.sqrt(magnitudes**2 / n + partial_sums)
