"""RMS norm and its gradient.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.

Source: B. Zhang, R. Sennrich, "Root Mean Square Layer Normalization", 2019.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import WithTerms, reference
from diopi_test.oracle.reference.sums import coarser_sum_terms, relative_terms, sum_terms

Array = NDArray[Any]


def _normalized_axes(input: Array, normalized_shape: Sequence[int]) -> tuple[int, ...]:
    """Return the last axes of the input, as many as `normalized_shape` has."""
    return tuple(range(input.ndim - len(normalized_shape), input.ndim))


def _weight_or_one(weight: Array | None) -> Array:
    """Return the weight, or 1 if there is none."""
    return np.ones(()) if weight is None else weight


@reference("diopiRMSNorm")
def rms_norm(input, normalized_shape, weight, bias, eps):
    """Return x / √(mean(x²) + eps) · weight + bias, and 1 / √(mean(x²) + eps) of each normalized slice."""
    axes = _normalized_axes(input, normalized_shape)
    squares = input**2
    inv_rms = 1 / np.sqrt(squares.mean(axes, keepdims=True) + eps)
    scaled = input * inv_rms * _weight_or_one(weight)
    of_mean = coarser_sum_terms(relative_terms(squares, axes) / 2)  # terms of the mean, relative to the inverse root
    rms_result = WithTerms(inv_rms.squeeze(axes), (inv_rms * of_mean).squeeze(axes), signed=True)
    if bias is None:
        return WithTerms(scaled, np.abs(scaled) * of_mean, signed=True), rms_result
    # the bias may cancel the scaled input
    return WithTerms(scaled + bias, np.abs(scaled) * (1 + of_mean)), rms_result


@reference("diopiRMSNormBackward")
def rms_norm_backward(grad_output, input, weight, inv_rms, normalized_shape):
    """Return the gradients of input, weight and bias."""
    axes = _normalized_axes(input, normalized_shape)
    leading = tuple(range(input.ndim - len(normalized_shape)))
    r = inv_rms.reshape(*input.shape[: len(leading)], *[1] * len(axes))
    x_hat, g = input * r, grad_output * _weight_or_one(weight)
    projection = x_hat * (g * x_hat).mean(axes, keepdims=True)
    # g and the projection may cancel, and the mean in the projection is rounded too
    count = np.maximum(np.prod(normalized_shape), 1)
    terms = np.abs(r) * (np.abs(projection) + np.abs(x_hat) * sum_terms(g * x_hat, axes, keepdims=True) / count)
    return (
        WithTerms(r * (g - projection), terms),
        WithTerms((grad_output * x_hat).sum(leading), sum_terms(grad_output * x_hat, leading)),
        WithTerms(grad_output.sum(leading), sum_terms(grad_output, leading)),
    )
