"""MMCV's synchronized batch normalization, and its activation with bias.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.sizes import check_shapes

STATISTIC_AXES = (0, 2)
"""The axes over which statistics are computed."""


def _check_statistics(name: str, input: Array, **statistics: Array | None) -> None:
    """Raise ValueError unless input is [N, C, S] and all statistics are [C]."""
    if input.ndim != 3:
        raise ValueError(f"{name} has shape {input.shape}, expected (N, C, S)")
    check_shapes(input.shape[1:2], **statistics)


def _per_channel(values: Array) -> Array:
    """Return values per channel in a shape that broadcasts with [N, C, S]."""
    return values[:, None]


@vendor.implements("diopiSyncBnMeanMmcv")
def sync_bn_mean(input):
    """Return the mean of each channel."""
    _check_statistics("input", input)
    return input.mean(STATISTIC_AXES)


@vendor.implements("diopiSyncBnVarMmcv")
def sync_bn_var(input, mean):
    """Return the biased variance of each channel around `mean`."""
    _check_statistics("input", input, mean=mean)
    return jnp.square(input - _per_channel(mean)).mean(STATISTIC_AXES)


@vendor.implements("diopiSyncBnOutputMmcv")
def sync_bn_output(running_mean, running_var, input, mean, var, weight, bias, eps, momentum, group_size):
    """Return updated running statistics, the normalized input, the standard deviation, and the result.

    The result is the normalized input · weight + bias, or the normalized input if weight or bias is missing.
    """
    statistics = {"mean": mean, "var": var, "weight": weight, "bias": bias}
    _check_statistics("input", input, running_mean=running_mean, running_var=running_var, **statistics)
    std = jnp.sqrt(var + eps)
    norm = (input - _per_channel(mean)) / _per_channel(std)
    output = norm if weight is None or bias is None else norm * _per_channel(weight) + _per_channel(bias)
    n = input.shape[0] * input.shape[2] * group_size
    unbiased = var * (n / (n - 1)) if n > 1 else var
    return (
        _update_running(running_mean, mean, momentum),
        _update_running(running_var, unbiased, momentum),
        norm,
        std,
        output,
    )


def _update_running(running: Array | None, new: Array, momentum: float) -> Array | None:
    """Return the running statistic, moved toward `new` by the factor `momentum`; None if there is no statistic."""
    return None if running is None else momentum * new + (1 - momentum) * running


@vendor.implements("diopiSyncBnBackwardParamMmcv")
def sync_bn_backward_param(grad_output, norm):
    """Return the gradients of weight and bias."""
    _check_statistics("grad_output", grad_output)
    check_shapes(grad_output.shape, norm=norm)
    return (grad_output * norm).sum(STATISTIC_AXES), grad_output.sum(STATISTIC_AXES)


@vendor.implements("diopiSyncBnBackwardDataMmcv")
def sync_bn_backward_data(grad_output, weight, grad_weight, grad_bias, norm, std):
    """Return the gradient of the input."""
    _check_statistics("grad_output", grad_output, weight=weight, grad_weight=grad_weight, grad_bias=grad_bias, std=std)
    check_shapes(grad_output.shape, norm=norm)
    mean = (_per_channel(grad_weight) * norm + _per_channel(grad_bias)) / (norm.shape[0] * norm.shape[2])
    return _per_channel(weight) * (grad_output - mean) / _per_channel(std)


@vendor.implements("diopiFusedBiasLeakyreluMmcv")
def fused_bias_leakyrelu(input, bias, refer, act, grad, alpha, scale):
    """Return scale · f(input + bias), or the gradient of f for the gradient `input` (grad 1), or zeros (grad 2).

    The function f is the identity for `act` 1 and the leaky ReLU for `act` 3; the sign of `refer` selects its slope.

    Args:
        input: The input of f, or the gradient of its result.
        bias: A value per channel, or an empty tensor.
        refer: The result of f, for grad 1.
        act: Which function f is.
        grad: The order of the derivative.
        alpha: The slope of the leaky ReLU below 0.
        scale: The factor of the result.

    Returns:
        A tensor of the shape of `input`.

    Raises:
        ValueError: `act`, `grad` or a shape is invalid.
    """
    if act not in (1, 3) or grad not in (0, 1, 2):
        raise ValueError(f"act is {act} and grad {grad}, expected 1 or 3, and 0, 1 or 2")
    if input.ndim < 2:
        raise ValueError(f"input has shape {input.shape}, expected two axes or more")
    if bias.size:
        check_shapes(input.shape[1:2], bias=bias)
        input = input + bias.reshape(-1, *[1] * (input.ndim - 2))
    if grad == 2:
        return jnp.zeros_like(input)
    if act == 1:
        return input * scale
    if grad == 1:
        check_shapes(input.shape, refer=refer)
    sign_source = input if grad == 0 else refer
    return jnp.where(sign_source > 0, input, alpha * input) * scale
