"""Sums along axes: the size of the terms that may cancel in them."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.cases.data import random_generator

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

    value, count = total(array), length(array, axes)
    repeated = repetition(count, equal_pairs(array, axes).reshape(value.shape))
    return accumulated(count, total(magnitude), total(magnitude**2), value, repeated)


PAIRS = 256
"""Of elements that are looked at in a slice, to tell how many of its values are equal."""

HARMLESS = 5
"""How often a value may be in a sum, in the mean, before it counts that its roundings are equal."""


def equal_pairs(array: Array, axes: Axes) -> Array:
    """The share of pairs of elements that are equal and not 0, for each slice along `axes`, told by some of them.

    All are where a slice's elements differ by less than what float32 keeps beside its sum: they are rounded alike, too.
    0 for slices that are too short for it to matter.
    """
    along = tuple(range(array.ndim)) if axes is None else tuple(np.atleast_1d(axes) % array.ndim)
    count = length(array, along)
    if count <= HARMLESS:
        return np.zeros([n for axis, n in enumerate(array.shape) if axis not in along])
    order = random_generator("pairs", str(count)).permutation(count)[: PAIRS + 1]
    places = np.unravel_index(order, [array.shape[axis] for axis in along])
    drawn = np.moveaxis(array, along, range(len(along)))[places]
    equal = (drawn[1:] == drawn[:-1]) & (drawn[1:] != 0)
    with np.errstate(all="ignore"):
        mean = np.abs(drawn.mean(0))
        alike = (drawn.std(0) < np.finfo(np.float32).eps * count / 8 * mean) & (mean != 0)
    return np.where(alike, 1.0, equal.mean(0))


def repetition(count: Any, pairs: Array) -> Array:
    """How often a value is there among `count`, in the mean over them, `pairs` being the share of equal pairs."""
    return 1 + (count - 1) * pairs


def repetition_at(places: Array, values: Array, count: Array) -> Array:
    """How often a value is there in the mean over those added at each place, `count` of them; 0 is not counted.

    Args:
        places: the numbers of the places, below the size of `count`.
        values: what is added at each.
    """
    _, kinds = np.unique(values, return_inverse=True)
    pairs = places.astype(np.int64) * max(values.size, 1) + kinds.reshape(places.shape)
    _, one_of_each, times = np.unique(pairs, return_index=True, return_counts=True)
    others = np.where(values.reshape(-1)[one_of_each] != 0, times * (times - 1.0), 0)
    met = np.bincount(places.reshape(-1)[one_of_each], others, count.size).reshape(count.shape)
    return 1 + met / np.maximum(count, 1)


SHARED = 3.0
"""Standard deviations of the error of a sum that many elements of a result share: it is off for all of them alike, so
that their root mean square is no average of independent errors."""


def relative_terms(array: Array, axes: Axes) -> Array:
    """The terms of sums along `axes`, which are kept, divided by the sums: for elements that all share them."""
    return np.asarray(SHARED * sum_terms(array, axes, keepdims=True) / np.sum(array, axis=axes, keepdims=True))


def norm_terms(size: Array, order: float, axes: Axes) -> Array:
    """The terms of a norm (Σ sizeᵖ)^(1/p) along `axes`, which are kept, relative to it; 0 for orders without a sum.

    Those of the sum over p; half an ulp of the powers, which equal elements have in common, over p; and what rounds
    the exponent 1/p, where the sum is far from 1.
    """
    if order == 0 or np.isinf(order):
        return np.zeros(np.sum(size, axes, keepdims=True).shape)
    powers = size**order
    total = np.sum(powers, axes, keepdims=True)
    of_powers = 0.0 if order in (1, 2) else 0.5
    of_exponent = 0.0 if np.log2(abs(order)) % 1 == 0 else np.abs(np.log(total)) / 2
    return np.where(total > 0, relative_terms(powers, axes) + of_powers + of_exponent, 0) / abs(order)


def accumulated(count: Any, magnitudes: Array, squares: Array, value: Array, repeated: Any = 1) -> Array:
    """The terms of a sum of n values x, from n, Σ|x|, Σx² and Σx: roundings of the values and of the partial sums.

    The values' own roundings add up as a random walk does, to Σ|x| · √n / n. A partial sum is rounded each time a
    value is added; over all orders of adding, its squares sum up to (n + 1) · (Σx² / 6 + (Σx)² / 3) in the mean, of
    which a rounding takes a twelfth of eps² (a uniform error of one ulp's width).

    Equal values are rounded alike wherever they are added to partial sums of one exponent, so that their errors add up
    straight. A value that comes n times is added n²/4 times the square there rather than n times: over all exponents
    that is n/5 of what is above, and with several values `repeated`/5, how often each is there in the mean.
    """
    n = np.maximum(count, 1)
    partial_sums = np.maximum(1, repeated / HARMLESS) * (n + 1) * (squares / 6 + np.abs(value) ** 2 / 3) / 12
    return np.sqrt(magnitudes**2 / n + partial_sums)
