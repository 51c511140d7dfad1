"""Batch norm on one device or several: each channel (axis 1) has a mean and a variance.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results. `out` describes results that the caller allocates: their shapes and element
types.
"""

from __future__ import annotations

import math

import jax.numpy as jnp
from jax import Array

from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.norm.moments import affine, channel_shape, non_channel_axes, standardize, standardize_backward
from diopi_impl.jax_cpu.sizes import check_shapes, check_size
from diopi_impl.specs import ResultSpec

Saved = tuple[ResultSpec | None, ...]
"""The shapes and element types of the results, which include saved statistics; None for results that are omitted."""


def _per_channel(input: Array, *values: Array) -> list[Array]:
    """Return statistics of channels in a shape that broadcasts with the input, promoted with the input's type."""
    return [value.reshape(channel_shape(input)).astype(jnp.result_type(input, value)) for value in values]


@vendor.implements("diopiBatchNorm")
def batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, *, out):
    """Return the normalized input, mean and 1 / std (zeros unless training), and updated running statistics."""
    shape = channel_shape(input)
    if not training:
        if running_mean is None or running_var is None:
            raise ValueError("running_mean and running_var are required outside training")
        center, spread = _per_channel(input, running_mean, running_var)
        result = affine((input - center) / jnp.sqrt(spread + eps), weight, bias, shape)
        unspecified = [jnp.zeros(spec.shape) if spec else None for spec in out[1:3]]
        return result, *unspecified, running_mean, running_var
    n = math.prod(input.shape) // shape[1] if shape[1] else 1
    if n == 0:
        raise ValueError(f"training needs at least one element per channel, input has shape {input.shape}")
    x_hat, mean, var, invstd = standardize(input, non_channel_axes(input), eps)
    unbiased = var * n / (n - 1) if n > 1 else jnp.full_like(var, jnp.nan)
    return (
        affine(x_hat, weight, bias, shape),
        mean.ravel(),
        invstd.ravel(),
        _update_running(running_mean, mean, momentum),
        _update_running(running_var, unbiased, momentum),
    )


def _update_running(running: Array | None, new: Array, momentum: float) -> Array | None:
    """Return the running statistic moved toward `new` by the factor `momentum`; None if there is no statistic."""
    check_size(new.size, running=running)
    return None if running is None else (1 - momentum) * running.ravel() + momentum * new.ravel()


@vendor.implements("diopiBatchNormBackward")
def batch_norm_backward(grad_output, input, weight, running_mean, running_var, save_mean, save_invstd, training, eps):
    """Return the gradients of input, weight and bias."""
    check_shapes(input.shape, grad_output=grad_output)
    mean, spread = (save_mean, save_invstd) if training else (running_mean, running_var)
    if mean is None or spread is None:
        raise ValueError(f"the {'saved' if training else 'running'} statistics are required")
    center, spread = _per_channel(input, mean, spread)
    invstd = spread if training else 1 / jnp.sqrt(spread + eps)
    x_hat = (input - center) * invstd
    g = affine(grad_output, weight, None, channel_shape(input))
    axes = non_channel_axes(input)
    grad_input = standardize_backward(g, x_hat, invstd, axes) if training else invstd * g
    return grad_input, (grad_output * x_hat).sum(axes), grad_output.sum(axes)


@vendor.implements("diopiBatchNormStats")
def batch_norm_stats(input, eps):
    """Return the mean and 1 / std of each channel."""
    _, mean, _, invstd = standardize(input, non_channel_axes(input), eps)
    return mean.ravel(), invstd.ravel()


@vendor.implements("diopiBatchNormGatherStatsWithCounts")
def batch_norm_gather_stats_with_counts(input, mean_all, invstd_all, running_mean, running_var, momentum, eps, counts):
    """Return the mean and 1 / std of the samples of all devices, and the updated running statistics."""
    check_shapes(counts.shape + mean_all.shape[-1:], mean_all=mean_all, invstd_all=invstd_all)
    dtype = jnp.result_type(input, mean_all)
    counts, mean_all, invstd_all = (x.astype(dtype) for x in (counts, mean_all, invstd_all))
    n = counts.sum()
    mean = counts @ mean_all / n
    squares = counts @ (1 / jnp.square(invstd_all) - eps + jnp.square(mean_all - mean))
    return (
        mean,
        1 / jnp.sqrt(squares / n + eps),
        _update_running(running_mean, mean, momentum),
        _update_running(running_var, squares / (n - 1), momentum),
    )


@vendor.implements("diopiBatchNormBackwardReduce")
def batch_norm_backward_reduce(grad_out, input, mean, invstd):
    """Return Σ dy, Σ dy · (x − mean), and the gradients of weight and bias."""
    check_shapes(input.shape, grad_out=grad_out)
    check_shapes(input.shape[1:2], mean=mean, invstd=invstd)
    (center,) = _per_channel(input, mean)
    sum_dy = grad_out.sum(non_channel_axes(input))
    sum_dy_xmu = (grad_out * (input - center)).sum(non_channel_axes(input))
    return sum_dy, sum_dy_xmu, sum_dy_xmu * invstd, sum_dy


@vendor.implements("diopiBatchNormBackwardElemt")
def batch_norm_backward_elemt(grad_out, input, mean, invstd, weight, sum_dy, sum_dy_xmu, count):
    """Return the gradient of the input from statistics of all devices."""
    check_shapes(input.shape, grad_out=grad_out)
    check_shapes(input.shape[1:2], sum_dy=sum_dy, sum_dy_xmu=sum_dy_xmu, mean=mean, invstd=invstd)
    n = count.sum()
    center, scale, sum_dy, sum_dy_xmu = _per_channel(input, mean, invstd, sum_dy, sum_dy_xmu)
    slope = jnp.square(scale) * sum_dy_xmu / n
    return affine((grad_out - sum_dy / n - (input - center) * slope) * scale, weight, None, channel_shape(input))


@vendor.implements("diopiBatchNormElemt")
def batch_norm_elemt(input, weight, bias, mean, invstd):
    """Return (x − mean) · invstd · weight + bias."""
    center, scale = _per_channel(input, mean, invstd)
    return affine((input - center) * scale, weight, bias, channel_shape(input))
