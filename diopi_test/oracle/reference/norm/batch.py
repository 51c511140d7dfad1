"""Batch norm on one device or on several devices: one mean and one variance per channel, which is axis 1.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.

Source: S. Ioffe, C. Szegedy, "Batch Normalization", 2015; PyTorch's SyncBatchNorm for several devices.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.cases.case import ResultOverride
from diopi_test.oracle.reference import Exact, PartlySpecified, WithTerms, reference
from diopi_test.oracle.reference.norm.moments import (
    Moments,
    apply_affine,
    broadcast_channels,
    compute_moments,
    count_along,
    input_gradient,
    non_channel_axes,
    normalize,
    sum_along,
)
from diopi_test.oracle.reference.sums import sum_terms

Array = NDArray[Any]


@reference("diopiBatchNorm")
def batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, *, out):
    """Return the normalized input, the mean and 1 / std for the gradient, and the new running mean and variance.

    Without `training`, the mean and 1 / std are unspecified, and the running statistics are unchanged.
    """
    w, b = broadcast_channels(weight, input, 1), broadcast_channels(bias, input)
    if not training:
        assert running_mean is not None and running_var is not None
        mean, invstd = (
            broadcast_channels(running_mean, input),
            1 / np.sqrt(broadcast_channels(running_var, input) + eps),
        )
        saved = [_unspecified_result(override, running_mean.shape) for override in out[1:3]]
        return apply_affine(input, mean, invstd, w, b), *saved, Exact(running_mean), Exact(running_var)
    axes = non_channel_axes(input)
    moments = compute_moments(input, axes)
    return (
        normalize(input, moments, eps, w, b),
        moments.saved_mean((-1,)),
        moments.saved_invstd(eps, (-1,)),
        _update_running(running_mean, moments.saved_mean((-1,)), momentum),
        _update_running(running_var, moments.unbiased_var(count_along(input, axes)), momentum),
    )


def _unspecified_result(override: ResultOverride | None, shape: tuple[int, ...]) -> PartlySpecified:
    """Return a result without specified elements, of the shape that the caller allocated."""
    value = np.zeros(override.shape if override and override.shape is not None else shape)
    return PartlySpecified(value, np.zeros(value.shape, bool))


def _update_running(running: Array | None, new: WithTerms, momentum: float) -> WithTerms | None:
    """Return the running statistic moved toward `new` by `momentum`; None if there is none."""
    if running is None:
        return None
    return WithTerms((1 - momentum) * running + momentum * new.value, momentum * new.terms)


@reference("diopiBatchNormBackward")
def batch_norm_backward(grad_output, input, weight, running_mean, running_var, save_mean, save_invstd, training, eps):
    """Return the gradients of input, weight and bias; without `training`, the statistics are constants."""
    axes = non_channel_axes(input)
    mean = save_mean if training else running_mean
    std_inverse = save_invstd if training or running_var is None else 1 / np.sqrt(running_var + eps)
    invstd = broadcast_channels(std_inverse, input)
    x_hat = (input - broadcast_channels(mean, input)) * invstd
    g = grad_output * broadcast_channels(weight, input, 1)
    grad_input = input_gradient(g, x_hat, invstd, axes) if training else invstd * g
    return grad_input, sum_along(grad_output * x_hat, axes), sum_along(grad_output, axes)


@reference("diopiBatchNormStats")
def batch_norm_stats(input, eps):
    """Return the mean and 1 / std of each channel."""
    moments = compute_moments(input, non_channel_axes(input))
    return moments.saved_mean((-1,)), moments.saved_invstd(eps, (-1,))


@reference("diopiBatchNormGatherStatsWithCounts")
def batch_norm_gather_stats_with_counts(mean_all, invstd_all, running_mean, running_var, momentum, eps, counts):
    """Return the mean and 1 / std over several devices, and the new running mean and variance."""
    share = counts[:, None] / counts.sum()
    means = share * mean_all
    variances = share * (1 / invstd_all**2 - eps + (mean_all - means.sum(0)) ** 2)
    moments = Moments(
        mean=means.sum(0), var=variances.sum(0), mean_terms=sum_terms(means, 0), var_terms=sum_terms(variances, 0)
    )
    return (
        moments.saved_mean((-1,)),
        moments.saved_invstd(eps, (-1,)),
        _update_running(running_mean, moments.saved_mean((-1,)), momentum),
        _update_running(running_var, moments.unbiased_var(counts.sum()), momentum),
    )


@reference("diopiBatchNormBackwardReduce")
def batch_norm_backward_reduce(grad_out, input, mean, invstd, input_g, weight_g, bias_g):
    """Return Σ dy, Σ dy · (x − mean), and the gradients of weight and bias; None for results that are not requested."""
    axes = non_channel_axes(input)
    x_hat = (input - broadcast_channels(mean, input)) * broadcast_channels(invstd, input)
    sum_dy = sum_along(grad_out, axes)
    sum_dy_xmu = sum_along(grad_out * (input - broadcast_channels(mean, input)), axes)
    return (
        sum_dy if input_g else None,
        sum_dy_xmu if input_g else None,
        sum_along(grad_out * x_hat, axes) if weight_g else None,
        sum_dy if bias_g else None,
    )


@reference("diopiBatchNormBackwardElemt")
def batch_norm_backward_elemt(grad_out, input, mean, invstd, weight, sum_dy, sum_dy_xmu, count):
    """Return the gradient of the input, from the sums that `batch_norm_backward_reduce` computes, over all devices."""
    mean, invstd, sum_dy, sum_dy_xmu = (broadcast_channels(v, input) for v in (mean, invstd, sum_dy, sum_dy_xmu))
    n = count.sum()
    centered = grad_out - sum_dy / n - (input - mean) * invstd**2 * sum_dy_xmu / n
    return np.asanyarray(centered * invstd * broadcast_channels(weight, input, 1))


@reference("diopiBatchNormElemt")
def batch_norm_elemt(input, weight, bias, mean, invstd):
    """Return (x − mean) · invstd · weight + bias."""
    mean, invstd = broadcast_channels(mean, input), broadcast_channels(invstd, input)
    return apply_affine(input, mean, invstd, broadcast_channels(weight, input, 1), broadcast_channels(bias, input))
