"""Mean and variance for normalization layers, the normalized values, and their gradients.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import WithTerms, mark_unspecified
from diopi_test.oracle.reference.sums import SHARED_ERROR_SIGMAS, sum_terms

Array = NDArray[Any]
Axes = tuple[int, ...]
"""The axes over which a layer normalizes."""


def mean_along(x: Array, axes: Axes) -> Array:
    """Return the mean with reduced axes of size 1.

    The sum uses extended precision because its rounding error affects every result element.
    """
    total = x.sum(axes, dtype=np.longdouble, keepdims=True)
    return np.asanyarray(total / count_along(x, axes), np.float64)


@final
@dataclass(frozen=True, kw_only=True)
class Moments:
    """The mean and the biased variance of values along some axes, which have size 1, and their terms.

    Attributes:
        mean: The mean.
        var: The biased variance.
        mean_terms: The terms of the mean.
        var_terms: The terms of the variance.
    """

    mean: Array
    var: Array
    mean_terms: Array
    var_terms: Array

    def saved_mean(self, shape: Sequence[int]) -> WithTerms:
        """Return the mean with its terms, in the shape `shape`."""
        return WithTerms(self.mean.reshape(shape), self.mean_terms.reshape(shape))

    def streamed_mean(self, shape: Sequence[int]) -> Any:
        """Return the mean as `saved_mean`, unspecified where it is infinite.

        A streaming algorithm, which updates the mean with each element, computes NaN instead of an infinity.
        """
        return mark_unspecified(np.isinf(self.mean).reshape(shape), self.saved_mean(shape))

    def saved_invstd(self, eps: float, shape: Sequence[int]) -> WithTerms:
        """Return 1 / √(variance + eps) with its terms, in the shape `shape`."""
        invstd, terms = self.invstd(eps)
        return WithTerms(invstd.reshape(shape), terms.reshape(shape), signed=True)

    def unbiased_var(self, count: Any) -> WithTerms:
        """Return the unbiased variance of `count` values per statistic, as a vector."""
        factor = count / (np.float64(count) - 1)
        return WithTerms((factor * self.var).reshape(-1), (factor * self.var_terms).reshape(-1))

    def invstd(self, eps: float) -> tuple[Array, Array]:
        """Return 1 / √(variance + eps) and its terms, which follow from the terms of the variance."""
        invstd = 1 / np.sqrt(self.var + eps)
        return invstd, invstd**3 * self.var_terms / 2


def compute_moments(x: Array, axes: Axes) -> Moments:
    """Return mean and variance along these axes; for empty slices the mean is 0 and the variance NaN."""
    count = max(count_along(x, axes), 1)
    mean = np.asanyarray(x.sum(axes, dtype=np.longdouble, keepdims=True) / count, np.float64)
    squares = (x - mean) ** 2
    mean_terms, var_terms = (sum_terms(values, axes, keepdims=True) / count for values in (x, squares))
    return Moments(mean=mean, var=mean_along(squares, axes), mean_terms=mean_terms, var_terms=var_terms)


def count_along(x: Array, axes: Axes) -> int:
    """Return the number of elements along these axes."""
    return int(np.prod([x.shape[axis] for axis in axes]))


def sum_along(values: Array, axes: Axes, shape: Sequence[int] | None = None) -> WithTerms:
    """Return the sum along these axes with its terms, optionally reshaped."""
    terms, total = sum_terms(values, axes), values.sum(axes)
    return WithTerms(total.reshape(shape or total.shape), terms.reshape(shape or total.shape))


def apply_affine(x: Array, mean: Array, invstd: Array, weight: Any, bias: Any) -> WithTerms:
    """Return (x − mean)·invstd·weight + bias for exact statistics.

    An implementation may compute x·a + (bias − mean·a) with a = invstd·weight instead, where x·a and mean·a cancel.

    Args:
        x: The values.
        mean: The mean; broadcasts with `x`.
        invstd: 1 / standard deviation; broadcasts with `x`.
        weight: The scale; broadcasts with `x`.
        bias: The offset; broadcasts with `x`.

    Returns:
        The result with the terms |mean·a|.
    """
    scale = invstd * weight
    return WithTerms((x - mean) * scale + bias, np.abs(mean * scale))


def _identity(statistic: Array) -> Array:
    """Return the statistic unchanged."""
    return statistic


def normalize(
    x: Array,
    moments: Moments,
    eps: float,
    weight: Any,
    bias: Any,
    broadcast: Callable[[Array], Array] = _identity,
) -> WithTerms:
    """Return (x − mean) / √(variance + eps) · weight + bias for the statistics of x itself, which are rounded too.

    Args:
        x: The values.
        moments: Mean and variance of `x`.
        eps: The number that is added to the variance.
        weight: The scale; broadcasts with `x`.
        bias: The offset; broadcasts with `x`.
        broadcast: Reshapes a statistic so that it broadcasts with `x`.

    Returns:
        The result; its terms include the errors of the statistics.
    """
    invstd, invstd_terms = moments.invstd(eps)
    normalized = apply_affine(x, broadcast(moments.mean), broadcast(invstd), weight, bias)
    mean_error = np.abs(broadcast(invstd) * weight) * broadcast(moments.mean_terms)
    invstd_error = np.abs((x - broadcast(moments.mean)) * weight) * broadcast(invstd_terms)
    return WithTerms(normalized.value, normalized.terms + SHARED_ERROR_SIGMAS * (mean_error + invstd_error))


def input_gradient(g: Array, x_hat: Array, invstd: Array, axes: Axes) -> WithTerms:
    """Return the gradient of the input of a normalization.

    Args:
        g: The gradient of the normalized input x̂.
        x_hat: The normalized input.
        invstd: 1 / standard deviation; broadcasts with `g`.
        axes: The axes along which the input is normalized.

    Returns:
        The gradient invstd · (g − mean(g) − x̂ · mean(g · x̂)). Its terms are the magnitudes of the two subtrahends,
        which may cancel g, and the terms of the two means.
    """
    level, slope = mean_along(g, axes), x_hat * mean_along(g * x_hat, axes)
    level_error, slope_error = (
        sum_terms(values, axes, keepdims=True) / count_along(g, axes) for values in (g, g * x_hat)
    )
    terms = np.abs(level) + np.abs(slope) + SHARED_ERROR_SIGMAS * (level_error + np.abs(x_hat) * slope_error)
    return WithTerms(invstd * (g - level - slope), invstd * terms)


def non_channel_axes(input: Array) -> Axes:
    """Return all axes of a batch except axis 1, the channels."""
    return (0, *range(2, input.ndim))


def broadcast_channels(values: Array | None, input: Array, default: float = 0.0) -> Array:
    """Return values (C) as (1, C, 1, …), which broadcasts with input; `default` if they are None."""
    return np.asanyarray(default) if values is None else values.reshape(1, -1, *[1] * (input.ndim - 2))
