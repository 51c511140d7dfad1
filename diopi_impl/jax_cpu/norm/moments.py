"""Functions that normalization layers share: standardization, affine transform and gradient."""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax.numpy as jnp
from jax import Array, lax

from diopi_impl.jax_cpu.sizes import check_size

Axes = tuple[int, ...]
"""The axes over which statistics are computed."""


def standardize(x: Array, axes: Axes, eps: float) -> tuple[Array, Array, Array, Array]:
    """Standardize `x` over some axes.

    Args:
        x: the input.
        axes: the axes over which the statistics are computed.
        eps: the number that is added to the variance.

    Returns:
        - The standardized input (x − mean) · invstd.
        - The mean; 0 if a reduced axis has size 0.
        - The biased variance.
        - invstd = 1 / √(variance + eps).

        In the statistics, the reduced axes have size 1.
    """
    is_empty = any(x.shape[axis] == 0 for axis in axes)
    mean = x.sum(axes, keepdims=True) if is_empty else x.mean(axes, keepdims=True)
    var = jnp.square(x - mean).mean(axes, keepdims=True)
    mean, invstd = lax.optimization_barrier(
        (mean, 1 / jnp.sqrt(var + eps))
    )  # without the barrier XLA stores x - mean and reads it again
    return (x - mean) * invstd, mean, var, invstd


def affine(x_hat: Array, weight: Array | None, bias: Array | None, shape: Sequence[int]) -> Array:
    """Return x̂ · weight + bias with the parameters reshaped; raise ValueError unless their sizes fit `shape`."""
    check_size(math.prod(shape), weight=weight, bias=bias)
    if weight is not None:
        x_hat = x_hat * weight.reshape(shape)
    return x_hat if bias is None else x_hat + bias.reshape(shape)


def standardize_backward(g: Array, x_hat: Array, invstd: Array, axes: Axes) -> Array:
    """Return the gradient of x, given the gradient g of the standardized x̂; the statistics were computed over axes."""
    return invstd * (g - g.mean(axes, keepdims=True) - x_hat * (g * x_hat).mean(axes, keepdims=True))


def channel_shape(input: Array) -> tuple[int, ...]:
    """Return (1, channels, 1, …, 1), with as many axes as the input."""
    return (1, input.shape[1], *[1] * (input.ndim - 2))


def non_channel_axes(input: Array) -> Axes:
    """Return all axes except axis 1, the channels."""
    return (0, *range(2, input.ndim))
