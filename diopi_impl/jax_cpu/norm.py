"""Normalisation layers and vector norms, with their gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from diopi_impl.functional import ResultSpec
from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.axes import named_axes
from diopi_impl.jax_cpu.sizes import check_shapes, check_size
from diopi_proto.types import Dtype

Axes = tuple[int, ...]
Saved = tuple[ResultSpec | None, ...]


def _standardised(x: Array, axes: Axes, eps: float) -> tuple[Array, Array, Array, Array]:
    """(x − mean)·invstd over axes, with mean, biased variance and invstd, the axes kept."""
    mean = x.mean(axes, keepdims=True)
    var = jnp.square(x - mean).mean(axes, keepdims=True)
    mean, invstd = lax.optimization_barrier((mean, 1 / jnp.sqrt(var + eps)))  # else x - mean is stored and read again
    return (x - mean) * invstd, mean, var, invstd


def _affine(x_hat: Array, weight: Array | None, bias: Array | None, shape: Sequence[int]) -> Array:
    """x̂ · weight + bias, the parameters reshaped to `shape`, whose elements they must have."""
    check_size(math.prod(shape), weight=weight, bias=bias)
    if weight is not None:
        x_hat = x_hat * weight.reshape(shape)
    return x_hat if bias is None else x_hat + bias.reshape(shape)


def _through_statistics(g: Array, x_hat: Array, invstd: Array, axes: Axes) -> Array:
    """The gradient of x from the gradient g of x̂, whose statistics run over axes."""
    return invstd * (g - g.mean(axes, keepdims=True) - x_hat * (g * x_hat).mean(axes, keepdims=True))


# Batch norm


def _channel_shape(input: Array) -> tuple[int, ...]:
    return (1, input.shape[1], *[1] * (input.ndim - 2))


def _others(input: Array) -> Axes:
    """All axes but that of the channels."""
    return (0, *range(2, input.ndim))


def _per_channel(input: Array, *values: Array) -> list[Array]:
    """Statistics in the shape that meets the input's, and in the wider type of both."""
    return [value.reshape(_channel_shape(input)).astype(jnp.result_type(input, value)) for value in values]


@vendor.implements("diopiBatchNorm")
def batch_norm(
    input: Array,
    weight: Array | None,
    bias: Array | None,
    running_mean: Array | None,
    running_var: Array | None,
    training: bool,
    momentum: float,
    eps: float,
    *,
    out: Saved,
) -> Any:
    shape = _channel_shape(input)
    if not training:
        if running_mean is None or running_var is None:
            raise ValueError("running_mean and running_var are required outside training")
        centre, spread = _per_channel(input, running_mean, running_var)
        result = _affine((input - centre) / jnp.sqrt(spread + eps), weight, bias, shape)
        unspecified = [jnp.zeros(spec.shape) if spec else None for spec in out[1:3]]
        return result, *unspecified, running_mean, running_var
    n = math.prod(input.shape) // shape[1] if shape[1] else 1
    if n == 0:
        raise ValueError(f"training needs at least one element a channel, input has shape {input.shape}")
    x_hat, mean, var, invstd = _standardised(input, _others(input), eps)
    unbiased = var * n / (n - 1) if n > 1 else jnp.full_like(var, jnp.nan)
    return (
        _affine(x_hat, weight, bias, shape),
        mean.ravel(),
        invstd.ravel(),
        _updated(running_mean, mean, momentum),
        _updated(running_var, unbiased, momentum),
    )


def _updated(running: Array | None, new: Array, momentum: float) -> Array | None:
    check_size(new.size, running=running)
    return None if running is None else (1 - momentum) * running.ravel() + momentum * new.ravel()


@vendor.implements("diopiBatchNormBackward")
def batch_norm_backward(
    grad_output: Array,
    input: Array,
    weight: Array | None,
    running_mean: Array | None,
    running_var: Array | None,
    save_mean: Array | None,
    save_invstd: Array | None,
    training: bool,
    eps: float,
) -> Any:
    check_shapes(input.shape, grad_output=grad_output)
    mean, spread = (save_mean, save_invstd) if training else (running_mean, running_var)
    if mean is None or spread is None:
        raise ValueError(f"the {'saved' if training else 'running'} statistics are required")
    centre, spread = _per_channel(input, mean, spread)
    invstd = spread if training else 1 / jnp.sqrt(spread + eps)
    x_hat = (input - centre) * invstd
    g = _affine(grad_output, weight, None, _channel_shape(input))
    axes = _others(input)
    grad_input = _through_statistics(g, x_hat, invstd, axes) if training else invstd * g
    return grad_input, (grad_output * x_hat).sum(axes), grad_output.sum(axes)


@vendor.implements("diopiBatchNormStats")
def batch_norm_stats(input: Array, eps: float) -> Any:
    _, mean, _, invstd = _standardised(input, _others(input), eps)
    return mean.ravel(), invstd.ravel()


@vendor.implements("diopiBatchNormGatherStatsWithCounts")
def batch_norm_gather_stats_with_counts(
    input: Array,
    mean_all: Array,
    invstd_all: Array,
    running_mean: Array | None,
    running_var: Array | None,
    momentum: float,
    eps: float,
    counts: Array,
) -> Any:
    check_shapes(counts.shape + mean_all.shape[-1:], mean_all=mean_all, invstd_all=invstd_all)
    wide = jnp.result_type(input, mean_all)
    counts, mean_all, invstd_all = (one.astype(wide) for one in (counts, mean_all, invstd_all))
    n = counts.sum()
    mean = counts @ mean_all / n
    squares = counts @ (1 / jnp.square(invstd_all) - eps + jnp.square(mean_all - mean))
    return (
        mean,
        1 / jnp.sqrt(squares / n + eps),
        _updated(running_mean, mean, momentum),
        _updated(running_var, squares / (n - 1), momentum),
    )


@vendor.implements("diopiBatchNormBackwardReduce")
def batch_norm_backward_reduce(
    grad_out: Array,
    input: Array,
    mean: Array,
    invstd: Array,
    weight: Array | None,
    input_g: bool,
    weight_g: bool,
    bias_g: bool,
) -> Any:
    check_shapes(input.shape, grad_out=grad_out)
    check_shapes(input.shape[1:2], mean=mean, invstd=invstd)
    (centre,) = _per_channel(input, mean)
    sum_dy = grad_out.sum(_others(input))
    sum_dy_xmu = (grad_out * (input - centre)).sum(_others(input))
    return sum_dy, sum_dy_xmu, sum_dy_xmu * invstd, sum_dy


@vendor.implements("diopiBatchNormBackwardElemt")
def batch_norm_backward_elemt(
    grad_out: Array,
    input: Array,
    mean: Array,
    invstd: Array,
    weight: Array | None,
    sum_dy: Array,
    sum_dy_xmu: Array,
    count: Array,
) -> Array:
    check_shapes(input.shape, grad_out=grad_out)
    check_shapes(input.shape[1:2], sum_dy=sum_dy, sum_dy_xmu=sum_dy_xmu, mean=mean, invstd=invstd)
    n = count.sum()
    centre, scale, sum_dy, sum_dy_xmu = _per_channel(input, mean, invstd, sum_dy, sum_dy_xmu)
    slope = jnp.square(scale) * sum_dy_xmu / n
    return _affine((grad_out - sum_dy / n - (input - centre) * slope) * scale, weight, None, _channel_shape(input))


@vendor.implements("diopiBatchNormElemt")
def batch_norm_elemt(
    input: Array, weight: Array | None, bias: Array | None, mean: Array, invstd: Array, eps: float
) -> Array:
    centre, scale = _per_channel(input, mean, invstd)
    return _affine((input - centre) * scale, weight, bias, _channel_shape(input))


# Layer norm


def _layer_norm(input: Array, weight: Array | None, bias: Array | None, begin: int, eps: float, out: Saved) -> Any:
    check_shapes(input.shape[begin:], weight=weight, bias=bias)
    x_hat, mean, _, invstd = _standardised(input, tuple(range(begin, input.ndim)), eps)
    saved = [value.reshape(spec.shape) if spec else None for value, spec in zip((mean, invstd), out[1:], strict=True)]
    return _affine(x_hat, weight, bias, input.shape[begin:]), *saved


def _layer_norm_backward(
    grad_output: Array, input: Array, weight: Array | None, mean: Array, rstd: Array, begin: int
) -> Any:
    check_shapes(input.shape, grad_output=grad_output)
    check_shapes(input.shape[begin:], weight=weight)
    statistic = (*input.shape[:begin], *[1] * (input.ndim - begin))
    rstd = rstd.reshape(statistic)
    x_hat = (input - mean.reshape(statistic)) * rstd
    g = _affine(grad_output, weight, None, input.shape[begin:])
    grad_input = _through_statistics(g, x_hat, rstd, tuple(range(begin, input.ndim)))
    leading = tuple(range(begin))
    return grad_input, (grad_output * x_hat).sum(leading), grad_output.sum(leading)


def _first_normalised(input: Array, normalized_shape: Sequence[int]) -> int:
    begin = input.ndim - len(normalized_shape)
    if not normalized_shape or begin < 0 or input.shape[begin:] != tuple(normalized_shape):
        raise ValueError(f"input of shape {input.shape} does not end in normalized_shape {tuple(normalized_shape)}")
    return begin


def _begin(input: Array, begin_norm_axis: int) -> int:
    if not -input.ndim <= begin_norm_axis < input.ndim:
        raise ValueError(f"begin_norm_axis {begin_norm_axis} is out of range for a {input.ndim}-d input")
    return begin_norm_axis % input.ndim


@vendor.implements("diopiLayerNorm")
def layer_norm(
    input: Array,
    weight: Array | None,
    bias: Array | None,
    normalized_shape: Sequence[int],
    eps: float,
    *,
    out: Saved,
) -> Any:
    return _layer_norm(input, weight, bias, _first_normalised(input, normalized_shape), eps, out)


@vendor.implements("diopiLayerNormBackward")
def layer_norm_backward(
    grad_output: Array,
    input: Array,
    weight: Array | None,
    bias: Array | None,
    mean: Array,
    rstd: Array,
    normalized_shape: Sequence[int],
) -> Any:
    begin = _first_normalised(input, normalized_shape)
    return _layer_norm_backward(grad_output, input, weight, mean, rstd, begin)


@vendor.implements("diopiLayerNormGB")
def layer_norm_gb(
    input: Array, weight: Array | None, bias: Array | None, eps: float, begin_norm_axis: int, *, out: Saved
) -> Any:
    return _layer_norm(input, weight, bias, _begin(input, begin_norm_axis), eps, out)


@vendor.implements("diopiLayerNormGBBackward")
def layer_norm_gb_backward(
    grad_output: Array,
    input: Array,
    weight: Array | None,
    bias: Array | None,
    running_mean: Array,
    running_std: Array,
    begin_norm_axis: int,
) -> Any:
    begin = _begin(input, begin_norm_axis)
    return _layer_norm_backward(grad_output, input, weight, running_mean, running_std, begin)


# Group norm, on (N, groups, channels of a group, all other axes together)


def _grouped(x: Array, num_groups: int) -> Array:
    samples, channels = x.shape[:2]
    if num_groups < 1 or channels % num_groups:
        raise ValueError(f"{channels} channels can't make {num_groups} groups of equal size")
    return x.reshape(samples, num_groups, channels // num_groups, math.prod(x.shape[2:]))


def _group_shape(channels: int, num_groups: int) -> tuple[int, ...]:
    return (1, num_groups, channels // num_groups, 1)


@vendor.implements("diopiGroupNorm")
def group_norm(input: Array, weight: Array | None, bias: Array | None, num_groups: int, eps: float) -> Any:
    x, shape = _grouped(input, num_groups), _group_shape(input.shape[1], num_groups)
    _, mean, _, invstd = _standardised(x.reshape(*x.shape[:2], x.shape[2] * x.shape[3]), (2,), eps)
    factor = lax.optimization_barrier(_affine(invstd[..., None], weight, None, shape))  # one for each channel
    result = _affine((x - mean[..., None]) * factor, None, bias, shape)
    return result.reshape(input.shape), mean[..., 0], invstd[..., 0]


@vendor.implements("diopiGroupNormBackward")
def group_norm_backward(
    grad_output: Array, input: Array, weight: Array | None, mean: Array, rstd: Array, num_groups: int
) -> Any:
    check_shapes(input.shape, grad_output=grad_output)
    check_shapes((input.shape[0], num_groups), mean=mean, rstd=rstd)
    dy, x = _grouped(grad_output, num_groups), _grouped(input, num_groups)
    rstd = rstd[..., None, None]
    x_hat = (x - mean[..., None, None]) * rstd
    g = _affine(dy, weight, None, _group_shape(input.shape[1], num_groups))
    grad_input = _through_statistics(g, x_hat, rstd, (2, 3))
    return grad_input.reshape(input.shape), (dy * x_hat).sum((0, 3)).ravel(), dy.sum((0, 3)).ravel()


# Instance norm


def _instance_shape(input: Array, axis: int) -> tuple[int, ...]:
    if not 1 <= axis < input.ndim:
        raise ValueError(f"axis {axis} is not one of 1 … {input.ndim - 1}")
    return (1, *input.shape[1:axis], *[1] * (input.ndim - axis))


@vendor.implements("diopiInstanceNorm")
def instance_norm(input: Array, axis: int, scale: Array | None, bias: Array | None, eps: float) -> Array:
    shape = _instance_shape(input, axis)
    return _affine(_standardised(input, tuple(range(axis, input.ndim)), eps)[0], scale, bias, shape)


@vendor.implements("diopiInstanceNormBackward")
def instance_norm_backward(
    grad_output: Array, input: Array, scale: Array | None, bias: Array | None, axis: int, eps: float
) -> Any:
    check_shapes(input.shape, grad_output=grad_output)
    shape, normalised = _instance_shape(input, axis), tuple(range(axis, input.ndim))
    x_hat, _, _, rstd = _standardised(input, normalised, eps)
    grad_input = _through_statistics(_affine(grad_output, scale, None, shape), x_hat, rstd, normalised)
    summed = (0, *normalised)
    return grad_input, (grad_output * x_hat).sum(summed).ravel(), grad_output.sum(summed).ravel()


# Vector norms


def _axes(input: Array, dim: Sequence[int]) -> Axes:
    """The axes a dim list names, all of them if it is empty."""
    return named_axes(input, dim) if dim else tuple(range(input.ndim))


def _check_elements(x: Array, p: float, axes: Axes) -> None:
    """Raise ValueError where the norm is that of nothing at all, and nothing has none of its order."""
    if (p < 0 or p == math.inf) and not all(x.shape[axis] for axis in axes):
        raise ValueError(f"input has shape {x.shape}, in which vectors without elements have no norm of order {p}")


def _vector_norm(x: Array, p: float, axes: Axes) -> Array:
    """The norm of order p, the axes kept."""
    _check_elements(x, p, axes)
    modulus = jnp.abs(x)
    if p == 0:
        return (x != 0).sum(axes, keepdims=True).astype(x.dtype)
    if math.isinf(p):
        return (jnp.max if p > 0 else jnp.min)(modulus, axes, keepdims=True)
    if p == 1:
        return modulus.sum(axes, keepdims=True)
    if p == 2:
        return jnp.sqrt(jnp.square(x).sum(axes, keepdims=True))
    return jnp.power(jnp.power(modulus, p).sum(axes, keepdims=True), 1 / p)


def _norm_slope(x: Array, norm: Array, p: float, axes: Axes) -> Array:
    """∂norm/∂x, the axes kept in `norm`."""
    if p == 0:
        return jnp.zeros_like(x)
    if math.isinf(p):
        largest = (jnp.abs(x) == norm) | (jnp.isnan(x) & jnp.isnan(norm))
        signs = jnp.where(jnp.isnan(x), 0, jnp.sign(x))
        return signs * largest / largest.sum(axes, keepdims=True)
    slope = jnp.sign(x) if p == 1 else x / norm if p == 2 else jnp.sign(x) * jnp.power(jnp.abs(x) / norm, p - 1)
    return jnp.where((x == 0) | (norm == 0), 0, slope)


def _widened(input: Array, out: ResultSpec) -> Array:
    """Input in the type of the result, where that is wider."""
    return input.astype(jnp.float64) if out.dtype is Dtype.float64 else input


@vendor.implements("diopiNorm")
def norm(input: Array, p: float, dim: Sequence[int], *, out: ResultSpec) -> Array:
    return _vector_norm(_widened(input, out), p, _axes(input, dim)).reshape(out.shape)


@vendor.implements("diopiLinalgVecNorm")
def linalg_vec_norm(input: Array, ord: float, dim: Sequence[int], keepdim: bool, *, out: ResultSpec) -> Array:
    return norm(input, ord, dim, out=out)


@vendor.implements("diopiForeachnormScalar")
def foreachnorm_scalar(inputs: Sequence[Array], ord: float, *, out: Sequence[ResultSpec]) -> Any:
    return [norm(x, ord, (), out=spec) for x, spec in zip(inputs, out, strict=True)]


@vendor.implements("diopiNormBackward")
def norm_backward(grad_output: Array, self: Array, norm: Array, dim: Sequence[int], p: float) -> Array:
    axes = _axes(self, dim)
    _check_elements(self, p, axes)
    kept = [1 if axis in axes else length for axis, length in enumerate(self.shape)]
    return grad_output.reshape(kept) * _norm_slope(self, norm.reshape(kept), p, axes)


@vendor.implements("diopiNormalize")
def normalize(input: Array, p: float, axis: int, eps: float) -> Array:
    return input / jnp.maximum(_vector_norm(input, p, named_axes(input, (axis,))), eps)


@vendor.implements("diopiNormalizeBackward")
def normalize_backward(grad_output: Array, input: Array, p: float, axis: int, eps: float) -> Array:
    check_shapes(input.shape, grad_output=grad_output)
    axes = named_axes(input, (axis,))
    r = _vector_norm(input, p, axes)
    along = (grad_output * input).sum(axes, keepdims=True) / lax.square(r)
    return jnp.where(r < eps, grad_output / eps, grad_output / r - _norm_slope(input, r, p, axes) * along)
