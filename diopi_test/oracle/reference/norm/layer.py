"""Layer norm, group norm and instance norm: each sample has statistics of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.cases.model import ResultOverride
from diopi_test.oracle.reference import WithTerms, reference
from diopi_test.oracle.reference.norm.moments import (
    all_but_channel,
    input_gradient,
    mean_along,
    moments_of,
    normalised_by,
    per_channel,
    sum_along,
)
from diopi_test.oracle.reference.sums import SHARED

Array = NDArray[Any]


# Layer norm: one mean and variance for each index of the leading axes.


def _or(values: Array | None, default: float) -> Array:
    return np.asarray(default) if values is None else values


def _layer_norm(
    input: Array,
    weight: Array | None,
    bias: Array | None,
    begin: int,
    eps: float,
    out: Sequence[ResultOverride | None],
) -> Any:
    moments = moments_of(input, tuple(range(begin, input.ndim)))
    of_mean, of_invstd = (_saved_shape(input, begin, override) for override in out[1:])
    result = normalised_by(input, moments, eps, _or(weight, 1), _or(bias, 0))
    return result, moments.streamed_mean(of_mean), moments.saved_invstd(eps, of_invstd)


def _saved_shape(input: Array, begin: int, override: ResultOverride | None) -> tuple[int, ...]:
    """Shape of a saved statistic: with or without ones in place of the normalised axes, as the caller made it."""
    return override.shape if override and override.shape is not None else input.shape[:begin]


def _layer_norm_backward(
    grad_output: Array, input: Array, weight: Array | None, mean: Array, rstd: Array, begin: int
) -> Any:
    leading, normalised = tuple(range(begin)), tuple(range(begin, input.ndim))
    kept = (*input.shape[:begin], *[1] * len(normalised))
    rstd = rstd.reshape(kept)
    x_hat = (input - mean.reshape(kept)) * rstd
    grad_input = input_gradient(grad_output * _or(weight, 1), x_hat, rstd, normalised)
    return grad_input, sum_along(grad_output * x_hat, leading), sum_along(grad_output, leading)


@reference("diopiLayerNorm")
def layer_norm(
    input: Array,
    weight: Array | None,
    bias: Array | None,
    normalized_shape: Sequence[int],
    eps: float,
    *,
    out: Sequence[ResultOverride | None],
) -> Any:
    return _layer_norm(input, weight, bias, input.ndim - len(normalized_shape), eps, out)


@reference("diopiLayerNormBackward")
def layer_norm_backward(
    grad_output: Array,
    input: Array,
    weight: Array | None,
    bias: Array | None,
    mean: Array,
    rstd: Array,
    normalized_shape: Sequence[int],
) -> Any:
    return _layer_norm_backward(grad_output, input, weight, mean, rstd, input.ndim - len(normalized_shape))


@reference("diopiLayerNormGB")
def layer_norm_gb(
    input: Array,
    weight: Array | None,
    bias: Array | None,
    eps: float,
    begin_norm_axis: int,
    *,
    out: Sequence[ResultOverride | None],
) -> Any:
    begin = begin_norm_axis % input.ndim
    for name, parameter in (("weight", weight), ("bias", bias)):
        if parameter is not None and parameter.shape != input.shape[begin:]:
            raise ValueError(f"{name} has shape {parameter.shape}, expected {input.shape[begin:]}")
    return _layer_norm(input, weight, bias, begin, eps, out)


@reference("diopiLayerNormGBBackward")
def layer_norm_gb_backward(
    grad_output: Array,
    input: Array,
    weight: Array | None,
    bias: Array | None,
    running_mean: Array,
    running_std: Array,
    begin_norm_axis: int,
) -> Any:
    return _layer_norm_backward(grad_output, input, weight, running_mean, running_std, begin_norm_axis % input.ndim)


# Group norm: one mean and variance for each group of channels of a sample.


def _grouped(x: Array, num_groups: int) -> Array:
    """(N, C, …) as (N, groups, elements of a group)."""
    samples, channels = x.shape[:2]
    return x.reshape(samples, num_groups, channels // num_groups * int(np.prod(x.shape[2:])))


def _ungrouped(statistic: Array, input: Array) -> Array:
    """A value a group, (N, groups) or (N, groups, 1), as one a channel that broadcasts with input."""
    samples, groups = statistic.shape[:2]
    per_channel = statistic.reshape(samples, groups).repeat(input.shape[1] // groups, axis=1)
    return per_channel.reshape(*per_channel.shape, *[1] * (input.ndim - 2))


@reference("diopiGroupNorm")
def group_norm(input: Array, weight: Array | None, bias: Array | None, num_groups: int, eps: float) -> Any:
    moments = moments_of(_grouped(input, num_groups), (2,))
    w, b = per_channel(weight, input, 1), per_channel(bias, input)
    result = normalised_by(input, moments, eps, w, b, lambda statistic: _ungrouped(statistic, input))
    shape = moments.mean.shape[:2]
    return result, moments.streamed_mean(shape), moments.saved_invstd(eps, shape)


@reference("diopiGroupNormBackward")
def group_norm_backward(
    grad_output: Array, input: Array, weight: Array | None, mean: Array, rstd: Array, num_groups: int
) -> Any:
    x_hat = (input - _ungrouped(mean, input)) * _ungrouped(rstd, input)
    g = grad_output * per_channel(weight, input, 1)
    grad_input = input_gradient(_grouped(g, num_groups), _grouped(x_hat, num_groups), rstd[..., None], (2,))
    axes = all_but_channel(input)
    grad_input = WithTerms(grad_input.value.reshape(input.shape), grad_input.terms.reshape(input.shape))
    return grad_input, sum_along(grad_output * x_hat, axes), sum_along(grad_output, axes)


# Instance norm: one mean and variance for each index of the axes before `axis`.


def _per_instance(values: Array | None, input: Array, axis: int, default: float) -> Array:
    """Scale or bias, one value for each index of the axes 1 … axis − 1, as it broadcasts with input."""
    if values is None:
        return np.asarray(default)
    return values.reshape(1, *input.shape[1:axis], *[1] * (input.ndim - axis))


@reference("diopiInstanceNorm")
def instance_norm(input: Array, axis: int, scale: Array | None, bias: Array | None, eps: float) -> Any:
    moments = moments_of(input, tuple(range(axis, input.ndim)))
    w, b = _per_instance(scale, input, axis, 1), _per_instance(bias, input, axis, 0)
    return normalised_by(input, moments, eps, w, b)


@reference("diopiInstanceNormBackward")
def instance_norm_backward(
    grad_output: Array, input: Array, scale: Array | None, bias: Array | None, axis: int, eps: float
) -> Any:
    normalised = tuple(range(axis, input.ndim))
    moments = moments_of(input, normalised)
    invstd, invstd_terms = moments.invstd(eps)
    x_hat = (input - moments.mean) * invstd
    g = grad_output * _per_instance(scale, input, axis, 1)
    # x̂ is off by `shift` and in proportion to `stretch` in all of an instance: the errors of its moments' sums
    shift, stretch = invstd * moments.mean_terms, invstd_terms / invstd
    grad_input = input_gradient(g, x_hat, invstd, normalised)
    level, slope = np.abs(mean_along(g, normalised)), np.abs(mean_along(g * x_hat, normalised))
    of_shift = invstd * shift * (slope + np.abs(x_hat) * level)
    of_stretch = stretch * (np.abs(grad_input.value) + 2 * invstd * np.abs(x_hat) * slope)
    summed = (0, *normalised)
    shape = scale.shape if scale is not None else (int(np.prod(input.shape[1:axis])),)
    grad_scale = sum_along(grad_output * x_hat, summed, shape)
    of_instances = [
        change * np.sum(values, normalised, keepdims=True)
        for change, values in ((shift, grad_output), (stretch, grad_output * x_hat))
    ]
    of_moments = np.sqrt(np.sum(np.square(of_instances), (0, 1))).reshape(shape)
    return (
        WithTerms(grad_input.value, grad_input.terms + SHARED * (of_shift + of_stretch)),
        WithTerms(grad_scale.value, grad_scale.terms + of_moments),
        sum_along(grad_output, summed, shape),
    )
