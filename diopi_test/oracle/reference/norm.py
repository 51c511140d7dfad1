"""Normalisation layers and vector norms, with their gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_test.cases.model import ResultOverride
from diopi_test.oracle.reference import Exact, PartlySpecified, WithTerms, reference
from diopi_test.oracle.reference.sums import SHARED, length, norm_terms, sum_terms

Array = NDArray[Any]
Axes = tuple[int, ...]


def _mean(x: Array, axes: Axes) -> Array:
    """The mean, the axes kept; added up in extended precision, for its rounding would show in every float64 result."""
    total = x.sum(axes, dtype=np.longdouble, keepdims=True)
    return np.asarray(total / _count(x, axes), np.float64)


@final
@dataclass(frozen=True)
class Moments:
    """Mean and biased variance of the values along some axes, which are kept, and the terms of their sums."""

    mean: Array
    var: Array
    mean_terms: Array
    var_terms: Array

    def saved_mean(self, shape: Sequence[int]) -> WithTerms:
        """The mean as a result of this shape."""
        return WithTerms(self.mean.reshape(shape), self.mean_terms.reshape(shape))

    def saved_invstd(self, eps: float, shape: Sequence[int]) -> WithTerms:
        """1 / √(variance + eps) as a result of this shape: the error of the sum under the root."""
        invstd, terms = self.invstd(eps)
        return WithTerms(invstd.reshape(shape), terms.reshape(shape), signed=True)

    def unbiased(self, count: Any) -> WithTerms:
        """The variance of a sample of `count` values, as a vector."""
        factor = count / (np.float64(count) - 1)
        return WithTerms((factor * self.var).reshape(-1), (factor * self.var_terms).reshape(-1))

    def invstd(self, eps: float) -> tuple[Array, Array]:
        """1 / √(variance + eps), and by how much the terms of the variance's sum move it."""
        invstd = 1 / np.sqrt(self.var + eps)
        return invstd, invstd**3 * self.var_terms / 2


def _moments(x: Array, axes: Axes) -> Moments:
    mean, count = _mean(x, axes), max(_count(x, axes), 1)
    squares = (x - mean) ** 2
    terms = [sum_terms(values, axes, keepdims=True) / count for values in (x, squares)]
    return Moments(mean, _mean(squares, axes), *terms)


def _count(x: Array, axes: Axes) -> int:
    return int(np.prod([x.shape[axis] for axis in axes]))


def _sum(values: Array, axes: Axes, shape: Sequence[int] | None = None) -> WithTerms:
    """The sum with its terms."""
    terms, total = sum_terms(values, axes), values.sum(axes)
    return WithTerms(total.reshape(shape or total.shape), terms.reshape(shape or total.shape))


def _apply(x: Array, mean: Array, invstd: Array, weight: Any, bias: Any) -> WithTerms:
    """(x − mean)·invstd·weight + bias, of statistics that are given.

    It is as sound to fold this into x·a + (bias − mean·a) with a = invstd·weight, which cancels terms of mean·a.
    """
    scale = invstd * weight
    return WithTerms((x - mean) * scale + bias, np.abs(mean * scale))


def _as_it_is(statistic: Array) -> Array:
    return statistic


def _normalised(
    x: Array,
    moments: Moments,
    eps: float,
    weight: Any,
    bias: Any,
    spread: Callable[[Array], Array] = _as_it_is,
) -> WithTerms:
    """x normalised by its own statistics, whose sums have roundings of their own.

    `spread` makes a statistic broadcast with x.
    """
    invstd, invstd_terms = moments.invstd(eps)
    applied = _apply(x, spread(moments.mean), spread(invstd), weight, bias)
    of_mean = np.abs(spread(invstd) * weight) * spread(moments.mean_terms)
    of_invstd = np.abs((x - spread(moments.mean)) * weight) * spread(invstd_terms)
    return WithTerms(applied.value, applied.terms + SHARED * (of_mean + of_invstd))


def _input_gradient(g: Array, x_hat: Array, invstd: Array, axes: Axes) -> WithTerms:
    """From g, the gradient of the normalised input x̂. The two means, of sums with roundings, may cancel g."""
    level, slope = _mean(g, axes), x_hat * _mean(g * x_hat, axes)
    of_level, of_slope = (sum_terms(values, axes, keepdims=True) / _count(g, axes) for values in (g, g * x_hat))
    terms = np.abs(level) + np.abs(slope) + SHARED * (of_level + np.abs(x_hat) * of_slope)
    return WithTerms(invstd * (g - level - slope), invstd * terms)


# Batch norm: one mean and variance a channel, axis 1.


def _all_but_channel(input: Array) -> Axes:
    return (0, *range(2, input.ndim))


def _per_channel(values: Array | None, input: Array, default: float = 0.0) -> Array:
    """(C) as (1, C, 1, …), so that it broadcasts with input; `default` for NULL."""
    return np.asarray(default) if values is None else values.reshape(1, -1, *[1] * (input.ndim - 2))


@reference("diopiBatchNorm")
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
    out: Sequence[ResultOverride | None],
) -> Any:
    w, b = _per_channel(weight, input, 1), _per_channel(bias, input)
    if not training:
        assert running_mean is not None and running_var is not None
        mean, invstd = _per_channel(running_mean, input), 1 / np.sqrt(_per_channel(running_var, input) + eps)
        saved = [_unspecified(override, running_mean.shape) for override in out[1:3]]
        return _apply(input, mean, invstd, w, b), *saved, Exact(running_mean), Exact(running_var)
    axes = _all_but_channel(input)
    moments = _moments(input, axes)
    return (
        _normalised(input, moments, eps, w, b),
        moments.saved_mean((-1,)),
        moments.saved_invstd(eps, (-1,)),
        _updated(running_mean, moments.saved_mean((-1,)), momentum),
        _updated(running_var, moments.unbiased(_count(input, axes)), momentum),
    )


def _unspecified(override: ResultOverride | None, shape: tuple[int, ...]) -> PartlySpecified:
    """A result that may hold anything, of the shape the caller made it with."""
    value = np.zeros(override.shape if override and override.shape is not None else shape)
    return PartlySpecified(value, np.zeros(value.shape, bool))


def _updated(running: Array | None, new: WithTerms, momentum: float) -> WithTerms | None:
    if running is None:
        return None
    return WithTerms((1 - momentum) * running + momentum * new.value, momentum * new.terms)


@reference("diopiBatchNormBackward")
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
    axes = _all_but_channel(input)
    mean = save_mean if training else running_mean
    std_inverse = save_invstd if training or running_var is None else 1 / np.sqrt(running_var + eps)
    invstd = _per_channel(std_inverse, input)
    x_hat = (input - _per_channel(mean, input)) * invstd
    g = grad_output * _per_channel(weight, input, 1)
    grad_input = _input_gradient(g, x_hat, invstd, axes) if training else invstd * g
    return grad_input, _sum(grad_output * x_hat, axes), _sum(grad_output, axes)


@reference("diopiBatchNormStats")
def batch_norm_stats(input: Array, eps: float) -> Any:
    moments = _moments(input, _all_but_channel(input))
    return moments.saved_mean((-1,)), moments.saved_invstd(eps, (-1,))


@reference("diopiBatchNormGatherStatsWithCounts")
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
    share = counts[:, None] / counts.sum()
    means = share * mean_all
    variances = share * (1 / invstd_all**2 - eps + (mean_all - means.sum(0)) ** 2)
    moments = Moments(means.sum(0), variances.sum(0), sum_terms(means, 0), sum_terms(variances, 0))
    return (
        moments.saved_mean((-1,)),
        moments.saved_invstd(eps, (-1,)),
        _updated(running_mean, moments.saved_mean((-1,)), momentum),
        _updated(running_var, moments.unbiased(counts.sum()), momentum),
    )


@reference("diopiBatchNormBackwardReduce")
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
    axes = _all_but_channel(input)
    x_hat = (input - _per_channel(mean, input)) * _per_channel(invstd, input)
    sum_dy = _sum(grad_out, axes)
    sum_dy_xmu = _sum(grad_out * (input - _per_channel(mean, input)), axes)
    return (
        sum_dy if input_g else None,
        sum_dy_xmu if input_g else None,
        _sum(grad_out * x_hat, axes) if weight_g else None,
        sum_dy if bias_g else None,
    )


@reference("diopiBatchNormBackwardElemt")
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
    mean, invstd, sum_dy, sum_dy_xmu = (_per_channel(v, input) for v in (mean, invstd, sum_dy, sum_dy_xmu))
    n = count.sum()
    centred = grad_out - sum_dy / n - (input - mean) * invstd**2 * sum_dy_xmu / n
    return np.asarray(centred * invstd * _per_channel(weight, input, 1))


@reference("diopiBatchNormElemt")
def batch_norm_elemt(
    input: Array, weight: Array | None, bias: Array | None, mean: Array, invstd: Array, eps: float
) -> WithTerms:
    mean, invstd = _per_channel(mean, input), _per_channel(invstd, input)
    return _apply(input, mean, invstd, _per_channel(weight, input, 1), _per_channel(bias, input))


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
    moments = _moments(input, tuple(range(begin, input.ndim)))
    of_mean, of_invstd = (_saved_shape(input, begin, override) for override in out[1:])
    result = _normalised(input, moments, eps, _or(weight, 1), _or(bias, 0))
    return result, moments.saved_mean(of_mean), moments.saved_invstd(eps, of_invstd)


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
    grad_input = _input_gradient(grad_output * _or(weight, 1), x_hat, rstd, normalised)
    return grad_input, _sum(grad_output * x_hat, leading), _sum(grad_output, leading)


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
    moments = _moments(_grouped(input, num_groups), (2,))
    w, b = _per_channel(weight, input, 1), _per_channel(bias, input)
    result = _normalised(input, moments, eps, w, b, lambda statistic: _ungrouped(statistic, input))
    shape = moments.mean.shape[:2]
    return result, moments.saved_mean(shape), moments.saved_invstd(eps, shape)


@reference("diopiGroupNormBackward")
def group_norm_backward(
    grad_output: Array, input: Array, weight: Array | None, mean: Array, rstd: Array, num_groups: int
) -> Any:
    x_hat = (input - _ungrouped(mean, input)) * _ungrouped(rstd, input)
    g = grad_output * _per_channel(weight, input, 1)
    grad_input = _input_gradient(_grouped(g, num_groups), _grouped(x_hat, num_groups), rstd[..., None], (2,))
    axes = _all_but_channel(input)
    grad_input = WithTerms(grad_input.value.reshape(input.shape), grad_input.terms.reshape(input.shape))
    return grad_input, _sum(grad_output * x_hat, axes), _sum(grad_output, axes)


# Instance norm: one mean and variance for each index of the axes before `axis`.


def _per_instance(values: Array | None, input: Array, axis: int, default: float) -> Array:
    """Scale or bias, one value for each index of the axes 1 … axis − 1, as it broadcasts with input."""
    if values is None:
        return np.asarray(default)
    return values.reshape(1, *input.shape[1:axis], *[1] * (input.ndim - axis))


@reference("diopiInstanceNorm")
def instance_norm(input: Array, axis: int, scale: Array | None, bias: Array | None, eps: float) -> Any:
    moments = _moments(input, tuple(range(axis, input.ndim)))
    w, b = _per_instance(scale, input, axis, 1), _per_instance(bias, input, axis, 0)
    return _normalised(input, moments, eps, w, b)


@reference("diopiInstanceNormBackward")
def instance_norm_backward(
    grad_output: Array, input: Array, scale: Array | None, bias: Array | None, axis: int, eps: float
) -> Any:
    normalised = tuple(range(axis, input.ndim))
    moments = _moments(input, normalised)
    invstd, invstd_terms = moments.invstd(eps)
    x_hat = (input - moments.mean) * invstd
    g = grad_output * _per_instance(scale, input, axis, 1)
    # x̂ is off by `shift` and in proportion to `stretch` in all of an instance: the errors of its moments' sums
    shift, stretch = invstd * moments.mean_terms, invstd_terms / invstd
    grad_input = _input_gradient(g, x_hat, invstd, normalised)
    level, slope = np.abs(_mean(g, normalised)), np.abs(_mean(g * x_hat, normalised))
    of_shift = invstd * shift * (slope + np.abs(x_hat) * level)
    of_stretch = stretch * (np.abs(grad_input.value) + 2 * invstd * np.abs(x_hat) * slope)
    summed = (0, *normalised)
    shape = scale.shape if scale is not None else (int(np.prod(input.shape[1:axis])),)
    grad_scale = _sum(grad_output * x_hat, summed, shape)
    of_instances = [
        change * np.sum(values, normalised, keepdims=True)
        for change, values in ((shift, grad_output), (stretch, grad_output * x_hat))
    ]
    of_moments = np.sqrt(np.sum(np.square(of_instances), (0, 1))).reshape(shape)
    return (
        WithTerms(grad_input.value, grad_input.terms + SHARED * (of_shift + of_stretch)),
        WithTerms(grad_scale.value, grad_scale.terms + of_moments),
        _sum(grad_output, summed, shape),
    )


# Vector norms.


def _axes(dim: Sequence[int], ndim: int) -> Axes:
    """The axes a dim list names; all of them if it is empty."""
    return tuple(d % ndim for d in dim) if dim and ndim else tuple(range(ndim))


def _vector_norm(x: Array, p: float, axes: Axes) -> Array:
    """(Σ |x|^p)^(1/p) with its limits for p = 0 and p = ±∞, the axes kept."""
    if p < 0 and length(x, axes) == 0:
        raise ValueError(f"no elements have no norm of order {p}")
    if p == 0:
        return (x != 0).sum(axes, keepdims=True).astype(np.float64)
    if np.isinf(p):
        return np.asarray((np.max if p > 0 else np.min)(np.abs(x), axes, keepdims=True))
    return np.asarray((np.abs(x) ** p).sum(axes, keepdims=True) ** (1 / p))


def _norm_slope(x: Array, norm: Array, p: float, axes: Axes) -> Array:
    """∂norm/∂x of the norm of order p over axes, which norm has kept."""
    if p == 0:
        return np.zeros(x.shape)
    if np.isinf(p):
        winners = (np.abs(x) == norm) | (np.isnan(x) & np.isnan(norm))
        signs = np.where(np.isnan(x), 0, np.sign(x))  # as PyTorch has them
        return np.asarray(signs * winners / winners.sum(axes, keepdims=True))
    return np.where((x == 0) | (norm == 0), 0, np.sign(x) * (np.abs(x) / norm) ** (p - 1))


def _norm_result(x: Array, p: float, axes: Axes, keepdims: bool) -> Any:
    norm = _vector_norm(x, p, axes)
    terms = norm * norm_terms(np.abs(x), p, axes)
    norm, terms = (array if keepdims else array.squeeze(axes) for array in (norm, terms))
    return Exact(norm) if p == 0 or np.isinf(p) else WithTerms(norm, terms, signed=True)


@reference("diopiNorm")
def norm(input: Array, p: float, dim: Sequence[int], *, out: ResultOverride) -> Any:
    keepdims = out.shape is not None and len(out.shape) == input.ndim
    return _norm_result(input, p, _axes(dim, input.ndim), keepdims)


@reference("diopiLinalgVecNorm")
def linalg_vec_norm(input: Array, ord: float, dim: Sequence[int], keepdim: bool) -> Any:
    return _norm_result(input, ord, _axes(dim, input.ndim), keepdim)


@reference("diopiForeachnormScalar")
def foreachnorm_scalar(inputs: Sequence[Array], ord: float) -> Any:
    return [_norm_result(x, ord, _axes((), x.ndim), False) for x in inputs]


@reference("diopiNormBackward")
def norm_backward(grad_output: Array, self: Array, norm: Array, dim: Sequence[int], p: float) -> Array:
    axes = _axes(dim, self.ndim)
    kept = [1 if axis in axes else length for axis, length in enumerate(self.shape)]
    return np.asarray(grad_output.reshape(kept) * _norm_slope(self, norm.reshape(kept), p, axes))


@reference("diopiNormalize")
def normalize(input: Array, p: float, axis: int, eps: float) -> WithTerms:
    axes = _axes((axis,), input.ndim)
    r = _vector_norm(input, p, axes)
    normalised, terms = input / np.maximum(r, eps), np.where(r < eps, 0, norm_terms(np.abs(input), p, axes))
    return WithTerms(normalised, np.abs(normalised) * terms, signed=True)


@reference("diopiNormalizeBackward")
def normalize_backward(grad_output: Array, input: Array, p: float, axis: int, eps: float) -> WithTerms:
    axes = _axes((axis,), input.ndim)
    r = _vector_norm(input, p, axes)
    along = (grad_output * input).sum(axes, keepdims=True)
    slope = _norm_slope(input, r, p, axes)
    through_norm = slope * along / r**2  # nearly cancels dy/r where dy is parallel to x
    through_norm = np.where(r < eps, 0, through_norm)
    direct = grad_output / np.maximum(r, eps)
    power = 0 if np.isinf(p) else p + 1  # the one falls with r as 1/r does, the other as r^-(p + 1)
    of_norm = norm_terms(np.abs(input), p, axes) * np.abs(direct - power * through_norm)
    of_sum = SHARED * np.abs(slope) * sum_terms(grad_output * input, axes, keepdims=True) / r**2
    terms = np.abs(through_norm) + np.where(r < eps, 0, of_norm + of_sum)
    return WithTerms(direct - through_norm, terms)
