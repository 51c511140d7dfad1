"""Layer norm, group norm and instance norm, whose statistics are computed per sample.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.

Sources: J. Ba et al., "Layer Normalization", 2016; Y. Wu, K. He, "Group Normalization", 2018; D. Ulyanov et al.,
"Instance Normalization", 2016.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.cases.case import ResultOverride
from diopi_test.oracle.reference import WithTerms, reference
from diopi_test.oracle.reference.norm.moments import (
    broadcast_channels,
    compute_moments,
    input_gradient,
    mean_along,
    non_channel_axes,
    normalize,
    sum_along,
)
from diopi_test.oracle.reference.sums import SHARED_ERROR_SIGMAS

Array = NDArray[Any]


# Layer norm: each index of the leading axes has its own mean and variance.


def _or_default(values: Array | None, default: float) -> Array:
    """Return the values, or `default` if they are None."""
    return np.asanyarray(default) if values is None else values


def _layer_norm(
    input: Array,
    weight: Array | None,
    bias: Array | None,
    begin: int,
    eps: float,
    out: Sequence[ResultOverride | None],
) -> Any:
    """Return the input normalized over the axes from `begin`, the mean, and 1 / std.

    Args:
        input: The input.
        weight: The scale of the normalized values; None for 1.
        bias: The offset of the normalized values; None for 0.
        begin: The first normalized axis.
        eps: The number that is added to the variance.
        out: The properties of the tensors that the caller provides for the three results.
    """
    moments = compute_moments(input, tuple(range(begin, input.ndim)))
    mean_shape, invstd_shape = (_saved_shape(input, begin, override) for override in out[1:])
    result = normalize(input, moments, eps, _or_default(weight, 1), _or_default(bias, 0))
    return result, moments.streamed_mean(mean_shape), moments.saved_invstd(eps, invstd_shape)


def _saved_shape(input: Array, begin: int, override: ResultOverride | None) -> tuple[int, ...]:
    """Return the shape of a saved statistic: as the caller allocated it, by default the shape of the leading axes."""
    return override.shape if override and override.shape is not None else input.shape[:begin]


def _layer_norm_backward(
    grad_output: Array, input: Array, weight: Array | None, mean: Array, rstd: Array, begin: int
) -> Any:
    """Return the gradients of input, weight and bias of `_layer_norm`."""
    leading, norm_axes = tuple(range(begin)), tuple(range(begin, input.ndim))
    broadcast_shape = (*input.shape[:begin], *[1] * len(norm_axes))
    rstd = rstd.reshape(broadcast_shape)
    x_hat = (input - mean.reshape(broadcast_shape)) * rstd
    grad_input = input_gradient(grad_output * _or_default(weight, 1), x_hat, rstd, norm_axes)
    return grad_input, sum_along(grad_output * x_hat, leading), sum_along(grad_output, leading)


@reference("diopiLayerNorm")
def layer_norm(input, weight, bias, normalized_shape, eps, *, out):
    """Return the input normalized over the last axes, the mean, and 1 / std."""
    return _layer_norm(input, weight, bias, input.ndim - len(normalized_shape), eps, out)


@reference("diopiLayerNormBackward")
def layer_norm_backward(grad_output, input, weight, mean, rstd, normalized_shape):
    """Return the gradients of input, weight and bias."""
    return _layer_norm_backward(grad_output, input, weight, mean, rstd, input.ndim - len(normalized_shape))


@reference("diopiLayerNormGB")
def layer_norm_gb(input, weight, bias, eps, begin_norm_axis, *, out):
    """Return the input normalized over the axes from begin_norm_axis, the mean, and 1 / std."""
    begin = begin_norm_axis % input.ndim
    for name, parameter in (("weight", weight), ("bias", bias)):
        if parameter is not None and parameter.shape != input.shape[begin:]:
            raise ValueError(f"{name} has shape {parameter.shape}, expected {input.shape[begin:]}")
    return _layer_norm(input, weight, bias, begin, eps, out)


@reference("diopiLayerNormGBBackward")
def layer_norm_gb_backward(grad_output, input, weight, running_mean, running_std, begin_norm_axis):
    """Return the gradients of input, weight and bias."""
    return _layer_norm_backward(grad_output, input, weight, running_mean, running_std, begin_norm_axis % input.ndim)


# Group norm: each group of channels of each sample has its own mean and variance.


def _group_channels(x: Array, num_groups: int) -> Array:
    """Return x (N, C, …) as (N, groups, elements of a group)."""
    samples, channels = x.shape[:2]
    return x.reshape(samples, num_groups, channels // num_groups * int(np.prod(x.shape[2:])))


def _broadcast_groups(statistic: Array, input: Array) -> Array:
    """Repeat a statistic per group, (N, groups) or (N, groups, 1), per channel so that it broadcasts with input."""
    samples, groups = statistic.shape[:2]
    channel_values = statistic.reshape(samples, groups).repeat(input.shape[1] // groups, axis=1)
    return channel_values.reshape(*channel_values.shape, *[1] * (input.ndim - 2))


@reference("diopiGroupNorm")
def group_norm(input, weight, bias, num_groups, eps):
    """Return the input normalized over each group of channels, the mean, and 1 / std."""
    moments = compute_moments(_group_channels(input, num_groups), (2,))
    w, b = broadcast_channels(weight, input, 1), broadcast_channels(bias, input)
    result = normalize(input, moments, eps, w, b, lambda statistic: _broadcast_groups(statistic, input))
    shape = moments.mean.shape[:2]
    return result, moments.streamed_mean(shape), moments.saved_invstd(eps, shape)


@reference("diopiGroupNormBackward")
def group_norm_backward(grad_output, input, weight, mean, rstd, num_groups):
    """Return the gradients of input, weight and bias."""
    x_hat = (input - _broadcast_groups(mean, input)) * _broadcast_groups(rstd, input)
    g = grad_output * broadcast_channels(weight, input, 1)
    grad_input = input_gradient(
        _group_channels(g, num_groups), _group_channels(x_hat, num_groups), rstd[..., None], (2,)
    )
    axes = non_channel_axes(input)
    grad_input = WithTerms(grad_input.value.reshape(input.shape), grad_input.terms.reshape(input.shape))
    return grad_input, sum_along(grad_output * x_hat, axes), sum_along(grad_output, axes)


# Instance norm: each index of the axes before `axis` has its own mean and variance.


def _broadcast_instances(values: Array | None, input: Array, axis: int, default: float) -> Array:
    """Return a scale or bias for the axes 1 … axis − 1 in a shape that broadcasts with input."""
    if values is None:
        return np.asanyarray(default)
    return values.reshape(1, *input.shape[1:axis], *[1] * (input.ndim - axis))


@reference("diopiInstanceNorm")
def instance_norm(input, axis, scale, bias, eps):
    """Return the input normalized over the axes from `axis`, times scale, plus bias."""
    moments = compute_moments(input, tuple(range(axis, input.ndim)))
    w, b = _broadcast_instances(scale, input, axis, 1), _broadcast_instances(bias, input, axis, 0)
    return normalize(input, moments, eps, w, b)


@reference("diopiInstanceNormBackward")
def instance_norm_backward(grad_output, input, scale, axis, eps):
    """Return the gradients of input, scale and bias; the statistics are computed again."""
    norm_axes = tuple(range(axis, input.ndim))
    moments = compute_moments(input, norm_axes)
    invstd, invstd_terms = moments.invstd(eps)
    x_hat = (input - moments.mean) * invstd
    g = grad_output * _broadcast_instances(scale, input, axis, 1)
    # the errors of the moments shift x̂ by `shift` and scale it by 1 + `stretch` throughout an instance
    shift, stretch = invstd * moments.mean_terms, invstd_terms / invstd
    grad_input = input_gradient(g, x_hat, invstd, norm_axes)
    level, slope = np.abs(mean_along(g, norm_axes)), np.abs(mean_along(g * x_hat, norm_axes))
    shift_error = invstd * shift * (slope + np.abs(x_hat) * level)
    stretch_error = stretch * (np.abs(grad_input.value) + 2 * invstd * np.abs(x_hat) * slope)
    sum_axes = (0, *norm_axes)
    shape = scale.shape if scale is not None else (int(np.prod(input.shape[1:axis])),)
    grad_scale = sum_along(grad_output * x_hat, sum_axes, shape)
    instance_errors = [
        change * np.sum(values, norm_axes, keepdims=True)
        for change, values in ((shift, grad_output), (stretch, grad_output * x_hat))
    ]
    moment_errors = np.sqrt(np.sum(np.square(instance_errors), (0, 1))).reshape(shape)
    return (
        WithTerms(grad_input.value, grad_input.terms + SHARED_ERROR_SIGMAS * (shift_error + stretch_error)),
        WithTerms(grad_scale.value, grad_scale.terms + moment_errors),
        sum_along(grad_output, sum_axes, shape),
    )
