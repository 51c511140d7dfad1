"""Layer norm, group norm and instance norm: every sample has its own mean and variance.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results. `out` describes results that the caller allocates: their shapes and element
types.
"""

from __future__ import annotations

import math
from typing import Any

from jax import Array, lax

from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.axes import first_normalized_axis
from diopi_impl.jax_cpu.norm.moments import affine, standardize, standardize_backward
from diopi_impl.jax_cpu.sizes import check_shapes
from diopi_impl.specs import ResultSpec

Saved = tuple[ResultSpec | None, ...]
"""The shapes and element types of the results, which include saved statistics; None for results that are omitted."""


# Layer norm


def _layer_norm(input: Array, weight: Array | None, bias: Array | None, begin: int, eps: float, out: Saved) -> Any:
    """Return the input normalized over the axes from `begin`, the mean, and 1 / std."""
    check_shapes(input.shape[begin:], weight=weight, bias=bias)
    x_hat, mean, _, invstd = standardize(input, tuple(range(begin, input.ndim)), eps)
    saved = [value.reshape(spec.shape) if spec else None for value, spec in zip((mean, invstd), out[1:], strict=True)]
    return affine(x_hat, weight, bias, input.shape[begin:]), *saved


def _layer_norm_backward(
    grad_output: Array, input: Array, weight: Array | None, mean: Array, rstd: Array, begin: int
) -> Any:
    """Return the gradients of input, weight and bias of `_layer_norm`."""
    check_shapes(input.shape, grad_output=grad_output)
    check_shapes(input.shape[begin:], weight=weight)
    statistic = (*input.shape[:begin], *[1] * (input.ndim - begin))
    rstd = rstd.reshape(statistic)
    x_hat = (input - mean.reshape(statistic)) * rstd
    g = affine(grad_output, weight, None, input.shape[begin:])
    grad_input = standardize_backward(g, x_hat, rstd, tuple(range(begin, input.ndim)))
    leading = tuple(range(begin))
    return grad_input, (grad_output * x_hat).sum(leading), grad_output.sum(leading)


def _first_axis(input: Array, begin_norm_axis: int) -> int:
    """Return begin_norm_axis counted from the first axis; raise ValueError if there is no such axis."""
    if not -input.ndim <= begin_norm_axis < input.ndim:
        raise ValueError(f"begin_norm_axis {begin_norm_axis} is out of range for a {input.ndim}-d input")
    return begin_norm_axis % input.ndim


@vendor.implements("diopiLayerNorm")
def layer_norm(input, weight, bias, normalized_shape, eps, *, out):
    """Return the input normalized over the last axes, the mean, and 1 / std."""
    return _layer_norm(input, weight, bias, first_normalized_axis(input, normalized_shape), eps, out)


@vendor.implements("diopiLayerNormBackward")
def layer_norm_backward(grad_output, input, weight, mean, rstd, normalized_shape):
    """Return the gradients of input, weight and bias."""
    begin = first_normalized_axis(input, normalized_shape)
    return _layer_norm_backward(grad_output, input, weight, mean, rstd, begin)


@vendor.implements("diopiLayerNormGB")
def layer_norm_gb(input, weight, bias, eps, begin_norm_axis, *, out):
    """Return the input normalized over the axes from begin_norm_axis, the mean, and 1 / std."""
    return _layer_norm(input, weight, bias, _first_axis(input, begin_norm_axis), eps, out)


@vendor.implements("diopiLayerNormGBBackward")
def layer_norm_gb_backward(grad_output, input, weight, running_mean, running_std, begin_norm_axis):
    """Return the gradients of input, weight and bias."""
    begin = _first_axis(input, begin_norm_axis)
    return _layer_norm_backward(grad_output, input, weight, running_mean, running_std, begin)


# Group norm, on tensors (N, groups, channels per group, elements per channel)


def _split_groups(x: Array, num_groups: int) -> Array:
    """Return x as (N, groups, channels per group, elements per channel)."""
    samples, channels = x.shape[:2]
    if num_groups < 1 or channels % num_groups:
        raise ValueError(f"{channels} channels can't make {num_groups} groups of equal size")
    return x.reshape(samples, num_groups, channels // num_groups, math.prod(x.shape[2:]))


def _grouped_channel_shape(channels: int, num_groups: int) -> tuple[int, ...]:
    """Return the shape of a value per channel that broadcasts with the result of `_split_groups`."""
    return (1, num_groups, channels // num_groups, 1)


@vendor.implements("diopiGroupNorm")
def group_norm(input, weight, bias, num_groups, eps):
    """Return the input normalized over each group of channels, the mean, and 1 / std."""
    x, shape = _split_groups(input, num_groups), _grouped_channel_shape(input.shape[1], num_groups)
    _, mean, _, invstd = standardize(x.reshape(*x.shape[:2], x.shape[2] * x.shape[3]), (2,), eps)
    factor = lax.optimization_barrier(affine(invstd[..., None], weight, None, shape))  # a factor per channel
    result = affine((x - mean[..., None]) * factor, None, bias, shape)
    return result.reshape(input.shape), mean[..., 0], invstd[..., 0]


@vendor.implements("diopiGroupNormBackward")
def group_norm_backward(grad_output, input, weight, mean, rstd, num_groups):
    """Return the gradients of input, weight and bias."""
    check_shapes(input.shape, grad_output=grad_output)
    check_shapes((input.shape[0], num_groups), mean=mean, rstd=rstd)
    dy, x = _split_groups(grad_output, num_groups), _split_groups(input, num_groups)
    rstd = rstd[..., None, None]
    x_hat = (x - mean[..., None, None]) * rstd
    g = affine(dy, weight, None, _grouped_channel_shape(input.shape[1], num_groups))
    grad_input = standardize_backward(g, x_hat, rstd, (2, 3))
    return grad_input.reshape(input.shape), (dy * x_hat).sum((0, 3)).ravel(), dy.sum((0, 3)).ravel()


# Instance norm


def _instance_shape(input: Array, axis: int) -> tuple[int, ...]:
    """Return the shape of a value per index of the axes 1 … axis − 1 that broadcasts with input."""
    if not 1 <= axis < input.ndim:
        raise ValueError(f"axis {axis} is not one of 1 … {input.ndim - 1}")
    return (1, *input.shape[1:axis], *[1] * (input.ndim - axis))


@vendor.implements("diopiInstanceNorm")
def instance_norm(input, axis, scale, bias, eps):
    """Return the input normalized over the axes from `axis`, times scale, plus bias."""
    shape = _instance_shape(input, axis)
    return affine(standardize(input, tuple(range(axis, input.ndim)), eps)[0], scale, bias, shape)


@vendor.implements("diopiInstanceNormBackward")
def instance_norm_backward(grad_output, input, scale, axis, eps):
    """Return the gradients of input, scale and bias; the statistics are computed again."""
    check_shapes(input.shape, grad_output=grad_output)
    shape, normalized = _instance_shape(input, axis), tuple(range(axis, input.ndim))
    x_hat, _, _, rstd = standardize(input, normalized, eps)
    grad_input = standardize_backward(affine(grad_output, scale, None, shape), x_hat, rstd, normalized)
    summed = (0, *normalized)
    return grad_input, (grad_output * x_hat).sum(summed).ravel(), grad_output.sum(summed).ravel()
