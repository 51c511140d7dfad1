"""MMCV's synchronised batch normalisation, and its activation with bias."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import WithTerms, reference
from diopi_test.oracle.reference.sums import sum_terms

Array = NDArray[Any]

SAMPLES = (0, 2)
"""The axes that statistics run over."""


def _channels(values: Array) -> Array:
    """One value a channel, as it meets [N, C, S]."""
    return values[:, np.newaxis]


def _count(input: Array) -> int:
    """The number of elements of a channel."""
    return input.shape[0] * input.shape[2]


def _sum(values: Array, divisor: float = 1.0) -> WithTerms:
    """The sum over a channel's elements, divided."""
    return WithTerms(values.sum(SAMPLES) / divisor, sum_terms(values, SAMPLES) / divisor)


@reference("diopiSyncBnMeanMmcv")
def sync_bn_mean(input: Array) -> WithTerms:
    return _sum(input, _count(input))


@reference("diopiSyncBnVarMmcv")
def sync_bn_var(input: Array, mean: Array) -> WithTerms:
    return _sum((input - _channels(mean)) ** 2, _count(input))


@reference("diopiSyncBnOutputMmcv")
def sync_bn_output(
    running_mean: Array | None,
    running_var: Array | None,
    input: Array,
    mean: Array,
    var: Array,
    weight: Array | None,
    bias: Array | None,
    eps: float,
    momentum: float,
    group_size: int,
) -> Any:
    std = np.sqrt(var + eps)
    norm = (input - _channels(mean)) / _channels(std)
    terms = np.broadcast_to(np.abs(_channels(mean / std)), norm.shape)  # (x − mean)/std as x/std − mean/std
    n = _count(input) * group_size
    unbiased = var * n / (n - 1) if n > 1 else var
    affine = norm if weight is None or bias is None else norm * _channels(weight) + _channels(bias)
    affine_terms = terms if weight is None else terms * np.abs(_channels(weight))
    return (
        _updated(running_mean, mean, momentum),
        _updated(running_var, unbiased, momentum),
        WithTerms(norm, terms),
        std,
        WithTerms(affine, affine_terms),
    )


def _updated(running: Array | None, new: Array, momentum: float) -> Array | None:
    return None if running is None else momentum * new + (1 - momentum) * running


@reference("diopiSyncBnBackwardParamMmcv")
def sync_bn_backward_param(grad_output: Array, norm: Array) -> tuple[WithTerms, WithTerms]:
    return _sum(grad_output * norm), _sum(grad_output)


@reference("diopiSyncBnBackwardDataMmcv")
def sync_bn_backward_data(
    grad_output: Array, weight: Array, grad_weight: Array, grad_bias: Array, norm: Array, std: Array
) -> WithTerms:
    level, slope = _channels(grad_bias) / _count(norm), _channels(grad_weight) * norm / _count(norm)
    scale = _channels(weight / std)
    # the two means, each rounded, may cancel the gradient
    return WithTerms(scale * (grad_output - (slope + level)), np.abs(scale) * (np.abs(level) + np.abs(slope)))


@reference("diopiFusedBiasLeakyreluMmcv")
def fused_bias_leakyrelu(
    input: Array, bias: Array, refer: Array, act: int, grad: int, alpha: float, scale: float
) -> Array:
    if bias.size not in (0, input.shape[1]):
        raise ValueError(f"bias has {bias.size} elements, expected none or one for each of {input.shape[1]} channels")
    if grad == 2:
        return np.zeros(input.shape)
    x = input + bias.reshape(-1, *[1] * (input.ndim - 2)) if bias.size else input
    decisive = x if grad == 0 else refer
    return scale * (x if act == 1 else np.where(decisive > 0, x, alpha * x))
