"""MMCV's synchronized batch normalization, and its activation with bias.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.

Sources: MMCV's operators; T. Karras et al., "Analyzing and Improving the Image Quality of StyleGAN", 2020 (activation
with bias).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import WithTerms, reference
from diopi_test.oracle.reference.sums import sum_terms

Array = NDArray[Any]

STATISTIC_AXES = (0, 2)
"""The axes of [N, C, S] over which statistics are computed."""


def _broadcast_channels(values: Array) -> Array:
    """Return one value per channel as an array that broadcasts with [N, C, S]."""
    return values[:, np.newaxis]


def _channel_size(input: Array) -> int:
    """Return the number of elements per channel."""
    return input.shape[0] * input.shape[2]


def _channel_sum(values: Array, divisor: float = 1.0) -> WithTerms:
    """Return the sum over the elements of each channel, divided by `divisor`."""
    return WithTerms(values.sum(STATISTIC_AXES) / divisor, sum_terms(values, STATISTIC_AXES) / divisor)


@reference("diopiSyncBnMeanMmcv")
def sync_bn_mean(input):
    """Return the mean of each channel."""
    return _channel_sum(input, _channel_size(input))


@reference("diopiSyncBnVarMmcv")
def sync_bn_var(input, mean):
    """Return the biased variance of each channel around `mean`."""
    return _channel_sum((input - _broadcast_channels(mean)) ** 2, _channel_size(input))


@reference("diopiSyncBnOutputMmcv")
def sync_bn_output(running_mean, running_var, input, mean, var, weight, bias, eps, momentum, group_size):
    """Return the results of synchronized batch normalization, from the mean and variance over all devices.

    They are the new running mean and variance, the normalized input, the standard deviation, and the normalized input
    times the weight plus the bias.
    """
    std = np.sqrt(var + eps)
    norm = (input - _broadcast_channels(mean)) / _broadcast_channels(std)
    terms = np.broadcast_to(np.abs(_broadcast_channels(mean / std)), norm.shape)  # (x − mean)/std as x/std − mean/std
    n = _channel_size(input) * group_size
    unbiased = var * n / (n - 1) if n > 1 else var
    affine = norm if weight is None or bias is None else norm * _broadcast_channels(weight) + _broadcast_channels(bias)
    affine_terms = terms if weight is None else terms * np.abs(_broadcast_channels(weight))
    return (
        _update_running(running_mean, mean, momentum),
        _update_running(running_var, unbiased, momentum),
        WithTerms(norm, terms),
        std,
        WithTerms(affine, affine_terms),
    )


def _update_running(running: Array | None, new: Array, momentum: float) -> Array | None:
    """Return the running statistic moved toward `new` by `momentum`; None if there is none."""
    return None if running is None else momentum * new + (1 - momentum) * running


@reference("diopiSyncBnBackwardParamMmcv")
def sync_bn_backward_param(grad_output, norm):
    """Return the gradients of weight and bias."""
    return _channel_sum(grad_output * norm), _channel_sum(grad_output)


@reference("diopiSyncBnBackwardDataMmcv")
def sync_bn_backward_data(grad_output, weight, grad_weight, grad_bias, norm, std):
    """Return the gradient of the input."""
    mean_grad, mean_projection = (
        _broadcast_channels(grad_bias) / _channel_size(norm),
        _broadcast_channels(grad_weight) * norm / _channel_size(norm),
    )
    scale = _broadcast_channels(weight / std)
    # both means are rounded and may cancel the gradient
    return WithTerms(
        scale * (grad_output - (mean_projection + mean_grad)),
        np.abs(scale) * (np.abs(mean_grad) + np.abs(mean_projection)),
    )


@reference("diopiFusedBiasLeakyreluMmcv")
def fused_bias_leakyrelu(input, bias, refer, act, grad, alpha, scale):
    """Return scale · f(input + bias), where f is the identity (act 1) or the leaky ReLU with slope alpha (act 3).

    For grad 1, the sign of `refer`, the result of f, selects the slope of the leaky ReLU. For grad 2, return zeros.
    """
    if bias.size not in (0, input.shape[1]):
        raise ValueError(f"bias has {bias.size} elements, expected none or one for each of {input.shape[1]} channels")
    if grad == 2:
        return np.zeros(input.shape)
    x = input + bias.reshape(-1, *[1] * (input.ndim - 2)) if bias.size else input
    sign_source = x if grad == 0 else refer
    return scale * (x if act == 1 else np.where(sign_source > 0, x, alpha * x))
