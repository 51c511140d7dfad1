"""The terms of sums along axes: the sizes of their rounding errors.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.cases.domains import random_generator
from diopi_test.oracle.reference import overridable

Array = NDArray[Any]

Axes = tuple[int, ...] | int | None
"""Axes as NumPy takes them: None stands for all axes."""


@overridable
def scale_sum_terms(terms: Array) -> Array:
    """Return the terms of sums unchanged.

    References pass the terms of all sums to this function, or to `accumulation_terms`, which calls it. If a vendor
    declares that it accumulates sums in a less precise type, the suite overrides this function (`overridable`) and
    multiplies the terms.
    """
    return terms


def coarser_sum_terms(terms: Array) -> Array:
    """Return the increase of the terms of sums in the arithmetic that a vendor declares; 0 in IEEE 754 arithmetic.

    A reference declares these terms for sums whose errors in float32 are covered by an ulp of the result.
    """
    finite = np.nan_to_num(terms)
    return np.asanyarray(scale_sum_terms(finite) - finite)


def slice_size(array: Array, axes: Axes) -> int:
    """Return the number of elements that a sum along `axes` adds for each result element."""
    if axes is None:
        return array.size
    return prod(array.shape[axis] for axis in ((axes,) if isinstance(axes, int) else axes))


def sum_terms(array: Array, axes: Axes, keepdims: bool = False) -> Array:
    """Return the `accumulation_terms` of the sums of the elements of `array` along `axes`.

    They have the shape of `np.sum(array, axes, keepdims=keepdims)`.
    """
    magnitude = np.abs(array).astype(np.float64)

    def total(values: Array) -> Array:
        """Return the sum along `axes`."""
        return np.asanyarray(np.sum(values, axis=axes, keepdims=keepdims))

    value, count = total(array), slice_size(array, axes)
    repeated = mean_repetition(count, equal_pair_share(array, axes).reshape(value.shape))
    return accumulation_terms(count, total(magnitude), total(magnitude**2), value, repeated)


SAMPLED_PAIRS = 256
"""The number of pairs of elements per slice that are compared to estimate how many elements are equal."""

HARMLESS_REPETITION = 5
"""The largest mean number of equal addends in a sum for which their identical rounding errors do not matter."""


def equal_pair_share(array: Array, axes: Axes) -> Array:
    """Estimate the share of pairs of elements that are equal and not 0, for each slice along `axes`.

    A slice contains the elements that one sum along `axes` adds. The share is 1 for slices whose elements differ by
    less than the precision of their sum in float32, because these elements are rounded alike. The share is 0 for slices
    that are too short for repetition to matter.

    Args:
        array: The elements.
        axes: The axes of the slices.

    Returns:
        The shares, with the shape of `array` without `axes`.
    """
    reduced_axes = tuple(range(array.ndim)) if axes is None else tuple(np.atleast_1d(axes) % array.ndim)
    count = slice_size(array, reduced_axes)
    if count <= HARMLESS_REPETITION:
        return np.zeros([n for axis, n in enumerate(array.shape) if axis not in reduced_axes])
    order = random_generator("pairs", str(count)).permutation(count)[: SAMPLED_PAIRS + 1]
    positions = np.unravel_index(order, [array.shape[axis] for axis in reduced_axes])
    sampled = np.moveaxis(array, reduced_axes, range(len(reduced_axes)))[positions]
    equal = (sampled[1:] == sampled[:-1]) & (sampled[1:] != 0)
    with np.errstate(all="ignore"):
        mean = np.abs(sampled.mean(0))
        almost_equal = (sampled.std(0) < np.finfo(np.float32).eps * count / 8 * mean) & (mean != 0)
    return np.where(almost_equal, 1.0, equal.mean(0))


def mean_repetition(count: Any, pair_share: Array) -> Array:
    """Return how often a value occurs on average among `count` values if `pair_share` of all pairs are equal."""
    return 1 + (count - 1) * pair_share


def mean_repetition_at(positions: Array, values: Array, count: Array) -> Array:
    """Return how often a value occurs on average among the values that are added at each position.

    Zeros count as if they were all different, because adding them causes no rounding error.

    Args:
        positions: The position of each value, less than the size of `count`.
        values: The values, in the shape of `positions`.
        count: The number of values at each position.

    Returns:
        The mean number of occurrences, in the shape of `count`; at least 1.
    """
    _, value_ids = np.unique(values, return_inverse=True)
    pairs = positions.astype(np.int64) * max(values.size, 1) + value_ids.reshape(positions.shape)
    _, first_positions, multiplicities = np.unique(pairs, return_index=True, return_counts=True)
    partner_counts = np.where(values.reshape(-1)[first_positions] != 0, multiplicities * (multiplicities - 1.0), 0)
    partner_sums = np.bincount(positions.reshape(-1)[first_positions], partner_counts, count.size).reshape(count.shape)
    return 1 + partner_sums / np.maximum(count, 1)


SHARED_ERROR_SIGMAS = 3.0
"""The number of standard deviations allowed for the error of a sum that many elements of a result share.

These elements have the same error, so the root mean square over them does not average independent errors.
"""


def relative_terms(array: Array, axes: Axes) -> Array:
    """Return the terms of sums along `axes`, divided by the sums; the reduced axes have size 1.

    The terms are `SHARED_ERROR_SIGMAS` times the terms of a sum, because many elements of a result share the error of
    the sum that they are divided by.
    """
    return np.asanyarray(
        SHARED_ERROR_SIGMAS * sum_terms(array, axes, keepdims=True) / np.sum(array, axis=axes, keepdims=True)
    )


def norm_terms(magnitudes: Array, order: float, axes: Axes) -> Array:
    """Return the terms of a norm (Σ xᵖ)^(1/p) along `axes` relative to the norm.

    They are the sum of three terms, each divided by |p|: the relative terms of the sum; 1/2 for the rounding of the
    powers, which equal elements share (0 if p is 1 or 2); and |log Σ xᵖ| / 2 for the rounding of the exponent 1/p (0 if
    p is a power of two).

    Args:
        magnitudes: The moduli x of the elements.
        order: The order p of the norm.
        axes: The axes of the norm.

    Returns:
        The relative terms, with reduced axes of size 1; 0 for orders 0 and ±∞, which have no sum, and where Σ xᵖ is 0.
    """
    if order == 0 or np.isinf(order):
        return np.zeros(np.sum(magnitudes, axes, keepdims=True).shape)
    powers = magnitudes**order
    total = np.sum(powers, axes, keepdims=True)
    power_terms = 0.0 if order in (1, 2) else 0.5
    exponent_terms = 0.0 if np.log2(abs(order)) % 1 == 0 else np.abs(np.log(total)) / 2
    return np.where(total > 0, relative_terms(powers, axes) + power_terms + exponent_terms, 0) / abs(order)


def accumulation_terms(count: Any, magnitudes: Array, squares: Array, value: Array, repetition: Any = 1) -> Array:
    """Return the terms of a sum of n addends x, from n, Σ|x|, Σx² and Σx: the standard deviation of its error in eps.

    The rounding errors of the addends add up like a random walk, to Σ|x| · √n / n. The partial sum is rounded after
    each addition. On average over all orders of addition, the squares of the partial sums add up to
    (n + 1) · (Σx² / 6 + (Σx)² / 3). The variance of a rounding error is eps² / 12 (uniform in an ulp's width).

    Equal addends have equal rounding errors when they are added to partial sums with the same exponent, so these
    errors add up linearly. An addend that occurs n times contributes n²/4 instead of n squares per exponent. Over all
    exponents this increases the squares of the errors of the partial sums by a factor of n/5. If several addends
    repeat, the factor is `repetition`/5. It is never less than 1.

    Args:
        count: The number n of addends.
        magnitudes: Σ|x|.
        squares: Σx².
        value: Σx.
        repetition: The mean number of times that an addend occurs.

    Returns:
        The terms, in the shape of `value`, scaled by `scale_sum_terms`.
    """
    n = np.maximum(count, 1)
    partial_sums = (
        np.maximum(1, repetition / HARMLESS_REPETITION) * (n + 1) * (squares / 6 + np.abs(value) ** 2 / 3) / 12
    )
    return np.asanyarray(scale_sum_terms(np.sqrt(magnitudes**2 / n + partial_sums)))
