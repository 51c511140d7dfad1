"""What normalisation layers share: mean and variance, values normalised by them, and the gradient through them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import WithTerms, open_where
from diopi_test.oracle.reference.sums import SHARED, sum_terms

Array = NDArray[Any]
Axes = tuple[int, ...]


def mean_along(x: Array, axes: Axes) -> Array:
    """The mean, the axes kept; added up in extended precision, for its rounding would show in every float64 result."""
    total = x.sum(axes, dtype=np.longdouble, keepdims=True)
    return np.asarray(total / count_along(x, axes), np.float64)


@final
@dataclass(frozen=True)
class Moments:
    """Mean and biased variance of the values along some axes, which are kept, and the terms of their sums."""

    mean: Array
    var: Array
    mean_terms: Array
    var_terms: Array

    def saved_mean(self, shape: Sequence[int]) -> WithTerms:
        """The mean as a result of this shape."""
        return WithTerms(self.mean.reshape(shape), self.mean_terms.reshape(shape))

    def streamed_mean(self, shape: Sequence[int]) -> Any:
        """Return the saved mean, left open where it is infinite: an algorithm that updates a mean makes NaN of it."""
        return open_where(np.isinf(self.mean).reshape(shape), self.saved_mean(shape))

    def saved_invstd(self, eps: float, shape: Sequence[int]) -> WithTerms:
        """1 / √(variance + eps) as a result of this shape: the error of the sum under the root."""
        invstd, terms = self.invstd(eps)
        return WithTerms(invstd.reshape(shape), terms.reshape(shape), signed=True)

    def unbiased(self, count: Any) -> WithTerms:
        """The variance of a sample of `count` values, as a vector."""
        factor = count / (np.float64(count) - 1)
        return WithTerms((factor * self.var).reshape(-1), (factor * self.var_terms).reshape(-1))

    def invstd(self, eps: float) -> tuple[Array, Array]:
        """1 / √(variance + eps), and by how much the terms of the variance's sum move it."""
        invstd = 1 / np.sqrt(self.var + eps)
        return invstd, invstd**3 * self.var_terms / 2


def moments_of(x: Array, axes: Axes) -> Moments:
    """Mean and variance along these axes; of no values, the mean is 0 and the variance NaN."""
    count = max(count_along(x, axes), 1)
    mean = np.asarray(x.sum(axes, dtype=np.longdouble, keepdims=True) / count, np.float64)
    squares = (x - mean) ** 2
    terms = [sum_terms(values, axes, keepdims=True) / count for values in (x, squares)]
    return Moments(mean, mean_along(squares, axes), *terms)


def count_along(x: Array, axes: Axes) -> int:
    """How many elements there are along these axes."""
    return int(np.prod([x.shape[axis] for axis in axes]))


def sum_along(values: Array, axes: Axes, shape: Sequence[int] | None = None) -> WithTerms:
    """The sum with its terms."""
    terms, total = sum_terms(values, axes), values.sum(axes)
    return WithTerms(total.reshape(shape or total.shape), terms.reshape(shape or total.shape))


def affine(x: Array, mean: Array, invstd: Array, weight: Any, bias: Any) -> WithTerms:
    """(x − mean)·invstd·weight + bias, of statistics that are given.

    It is as sound to fold this into x·a + (bias − mean·a) with a = invstd·weight, which cancels terms of mean·a.
    """
    scale = invstd * weight
    return WithTerms((x - mean) * scale + bias, np.abs(mean * scale))


def _as_it_is(statistic: Array) -> Array:
    return statistic


def normalised_by(
    x: Array,
    moments: Moments,
    eps: float,
    weight: Any,
    bias: Any,
    spread: Callable[[Array], Array] = _as_it_is,
) -> WithTerms:
    """x normalised by its own statistics, whose sums have roundings of their own.

    `spread` makes a statistic broadcast with x.
    """
    invstd, invstd_terms = moments.invstd(eps)
    given = affine(x, spread(moments.mean), spread(invstd), weight, bias)
    of_mean = np.abs(spread(invstd) * weight) * spread(moments.mean_terms)
    of_invstd = np.abs((x - spread(moments.mean)) * weight) * spread(invstd_terms)
    return WithTerms(given.value, given.terms + SHARED * (of_mean + of_invstd))


def input_gradient(g: Array, x_hat: Array, invstd: Array, axes: Axes) -> WithTerms:
    """From g, the gradient of the normalised input x̂. The two means, of sums with roundings, may cancel g."""
    level, slope = mean_along(g, axes), x_hat * mean_along(g * x_hat, axes)
    of_level, of_slope = (sum_terms(values, axes, keepdims=True) / count_along(g, axes) for values in (g, g * x_hat))
    terms = np.abs(level) + np.abs(slope) + SHARED * (of_level + np.abs(x_hat) * of_slope)
    return WithTerms(invstd * (g - level - slope), invstd * terms)


def all_but_channel(input: Array) -> Axes:
    """The axes of a batch but axis 1."""
    return (0, *range(2, input.ndim))


def per_channel(values: Array | None, input: Array, default: float = 0.0) -> Array:
    """(C) as (1, C, 1, …), so that it broadcasts with input; `default` for NULL."""
    return np.asarray(default) if values is None else values.reshape(1, -1, *[1] * (input.ndim - 2))
