"""RMS norm and its gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import WithTerms, reference
from diopi_test.oracle.reference.sums import sum_terms

Array = NDArray[Any]


def _normalised_axes(input: Array, normalized_shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(range(input.ndim - len(normalized_shape), input.ndim))


def _weight_or_one(weight: Array | None) -> Array:
    return np.ones(()) if weight is None else weight


@reference("diopiRMSNorm")
def rms_norm(
    input: Array, normalized_shape: Sequence[int], weight: Array | None, bias: Array | None, eps: float
) -> Any:
    axes = _normalised_axes(input, normalized_shape)
    inv_rms = 1 / np.sqrt((input**2).mean(axes, keepdims=True) + eps)
    scaled = input * inv_rms * _weight_or_one(weight)
    return scaled if bias is None else WithTerms(scaled + bias, np.abs(scaled)), inv_rms.squeeze(axes)


@reference("diopiRMSNormBackward")
def rms_norm_backward(
    grad_output: Array,
    input: Array,
    weight: Array | None,
    bias: Array | None,
    inv_rms: Array,
    normalized_shape: Sequence[int],
    eps: float,
) -> Any:
    axes = _normalised_axes(input, normalized_shape)
    leading = tuple(range(input.ndim - len(normalized_shape)))
    r = inv_rms.reshape(*input.shape[: len(leading)], *[1] * len(axes))
    x_hat, g = input * r, grad_output * _weight_or_one(weight)
    slope = x_hat * (g * x_hat).mean(axes, keepdims=True)
    # the mean, which is rounded itself, may cancel g
    count = np.maximum(np.prod(normalized_shape), 1)
    terms = np.abs(r) * (np.abs(slope) + np.abs(x_hat) * sum_terms(g * x_hat, axes, keepdims=True) / count)
    return (
        WithTerms(r * (g - slope), terms),
        WithTerms((grad_output * x_hat).sum(leading), sum_terms(grad_output * x_hat, leading)),
        WithTerms(grad_output.sum(leading), sum_terms(grad_output, leading)),
    )
