"""Activation functions and their gradients.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array, lax

from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.arithmetic import clamp_min, keep_zero_signs
from diopi_impl.jax_cpu.axes import check_axes


@vendor.implements("diopiRelu")
def relu(input):
    """Return max(x, 0); a zero keeps its sign."""
    return clamp_min(input, 0)


@vendor.implements("diopiHardtanh")
def hardtanh(input, min_val, max_val):
    """Return x limited to the range from min_val to max_val."""
    if not jnp.issubdtype(input.dtype, jnp.floating):
        return jnp.clip(input, min_val, max_val)
    raised = keep_zero_signs(jnp.maximum(input, min_val), input, min_val)
    return keep_zero_signs(jnp.minimum(raised, max_val), raised, max_val)


@vendor.implements("diopiHardtanhBackward")
def hardtanh_backward(grad_output, input, min_val, max_val):
    """Return 0 where x ≤ min_val or x ≥ max_val, else grad_output."""
    return jnp.where((input <= min_val) | (input >= max_val), 0, grad_output)


@vendor.implements("diopiHardswish")
def hardswish(input):
    """Return x · min(max(x + 3, 0), 6) / 6."""
    return input * jnp.clip(input + 3, 0, 6) / 6


@vendor.implements("diopiHardswishBackward")
def hardswish_backward(grad_output, input):
    """Return grad_output times 0 for x ≤ −3, 1 for x ≥ 3, and x / 3 + ½ between them."""
    inside = grad_output * (input / 3 + 0.5)
    return jnp.where(input <= -3, 0, jnp.where(input >= 3, grad_output, inside))


@vendor.implements("diopiThreshold")
def threshold(input, threshold, value):
    """Return `value` where x ≤ threshold, else x."""
    return jnp.where(input <= threshold, value, input)


@vendor.implements("diopiThresholdBackward")
def threshold_backward(grad_output, input, threshold):
    """Return 0 where x ≤ threshold, else grad_output."""
    return jnp.where(input <= threshold, 0, grad_output)


def _gelu(approximate: str) -> Callable[[Array], Array]:
    """Return the function GELU, exact ("none") or approximated ("tanh"); raise ValueError for another name."""
    if approximate not in ("none", "tanh"):
        raise ValueError(f"approximate is {approximate!r}, expected 'none' or 'tanh'")
    return _gelu_tanh if approximate == "tanh" else lambda x: x / 2 * (1 + lax.erf(x / jnp.sqrt(2.0)))


def _gelu_tanh(x: Array) -> Array:
    """Return the tanh approximation of GELU, by a sigmoid that does not cancel."""
    u = jnp.sqrt(2 / jnp.pi) * (x + 0.044715 * x * x * x)
    return x * jax.nn.sigmoid(2 * u)  # (1 + tanh(u)) / 2 without cancellation


@vendor.implements("diopiGelu")
def gelu(input, approximate):
    """Return x · Φ(x), with Φ the normal distribution function, or with its tanh approximation."""
    return _gelu(approximate)(input)


@vendor.implements("diopiLeakyRelu")
def leaky_relu(input, negative_slope):
    """Return x where x > 0, else negative_slope · x."""
    return jnp.where(input > 0, input, negative_slope * input)


@vendor.implements("diopiLeakyReluBackward")
def leaky_relu_backward(grad_output, input, negative_slope, input_is_result):
    """Return grad_output where x > 0, else negative_slope · grad_output.

    `input_is_result` says that `input` is the result of leaky ReLU; a negative slope is then an error.
    """
    if input_is_result and negative_slope < 0:
        raise ValueError(f"negative_slope is {negative_slope}, expected at least 0 where input_is_result is set")
    return jnp.where(input > 0, grad_output, negative_slope * grad_output)


@vendor.implements("diopiSigmoid")
def sigmoid(input):
    """Return 1 / (1 + e⁻ˣ)."""
    if jnp.issubdtype(input.dtype, jnp.complexfloating):
        return 1 / (1 + jnp.exp(-input))
    return jax.nn.sigmoid(input if jnp.issubdtype(input.dtype, jnp.floating) else input.astype(jnp.float32))


@vendor.implements("diopiSigmoidBackward")
def sigmoid_backward(grad_output, output):
    """Return grad_output · conj((1 − y) · y), where y is the result of the sigmoid."""
    return grad_output * jnp.conj((1 - output) * output)


@vendor.implements("diopiSilu")
def silu(input):
    """Return x · σ(x), where σ is the sigmoid."""
    return jax.nn.silu(input)


def _apply_along(function: Callable[..., Array], dim: int, *arrays: Array) -> Array:
    """Return `function(*arrays, dim)` in the shape of the first array; 0-d arrays count as vectors of one element."""
    check_axes(arrays[0], dim)
    shape = arrays[0].shape
    return function(*(jnp.atleast_1d(array) for array in arrays), dim).reshape(shape)


def _softmax(x: Array, dim: int) -> Array:
    """Return the softmax of x along axis `dim`."""
    # without the barriers XLA fuses everything, and allocates a second array of the size of a very large result
    highest = lax.optimization_barrier(x.max(dim, keepdims=True, initial=-jnp.inf))
    exponentials = jnp.exp(x - highest)
    return exponentials * lax.optimization_barrier(1 / exponentials.sum(dim, keepdims=True))


@vendor.implements("diopiSoftmax")
def softmax(input, dim):
    """Return e^(x − m) / Σ e^(x − m) along `dim`, where m is the largest element of the slice."""
    return _apply_along(_softmax, dim, input)


@vendor.implements("diopiSoftmaxBackward")
def softmax_backward(grad_output, output, dim):
    """Return y · (g − Σ g · y) along `dim`, where y is the result of softmax and g is grad_output."""

    def gradient(g: Array, y: Array, dim: int) -> Array:
        """Return the gradient for arrays with at least one axis."""
        return y * (g - jnp.sum(g * y, dim, keepdims=True))

    return _apply_along(gradient, dim, grad_output, output)


def stable_log_softmax(x: Array, dim: int) -> Array:
    """Return log(exp(x) / sum(exp(x))) along axis `dim`.

    The largest exponential is 1. XLA would add thousands of smaller exponentials to it, which may be lost to rounding.
    Therefore at most seven terms are added to it in float32, and the partial sums are added in float64.

    Args:
        x: floating numbers.
        dim: the axis of the softmax.

    Returns:
        An array of the shape and type of `x`.
    """
    shifted = x - lax.optimization_barrier(lax.stop_gradient(x.max(dim, keepdims=True, initial=-jnp.inf)))
    axis, size = dim % x.ndim, x.shape[dim]
    slices = math.gcd(size, 8)
    parts = jnp.exp(shifted).reshape(*x.shape[:axis], slices, size // slices, *x.shape[axis + 1 :]).sum(axis)
    total = parts.sum(axis, keepdims=True, dtype=jnp.float64)
    return shifted - lax.optimization_barrier(jnp.log(total).astype(x.dtype))


@vendor.implements("diopiLogSoftmax")
def log_softmax(input, dim):
    """Return x − m − ln Σ e^(x − m) along `dim`, where m is the largest element of the slice."""
    return _apply_along(stable_log_softmax, dim, input)


@vendor.implements("diopiLogSoftmaxBackward")
def log_softmax_backward(grad_output, output, dim):
    """Return g − e^y · Σ g along `dim`, where y is the result of log-softmax and g is grad_output."""

    def gradient(g: Array, y: Array, dim: int) -> Array:
        """Return the gradient for arrays with at least one axis."""
        return g - jnp.exp(y) * jnp.sum(g, dim, keepdims=True)

    return _apply_along(gradient, dim, grad_output, output)
