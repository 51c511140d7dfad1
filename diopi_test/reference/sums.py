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
    """Σ|x| · √n / n along `axes`: the rounding errors of n summands of like size add up as a random walk does."""
    total = np.sum(np.abs(array).astype(np.float64), axis=axes, keepdims=keepdims)
    return np.asarray(total / np.sqrt(max(length(array, axes), 1)))
