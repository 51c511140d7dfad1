"""RMS norm and its gradient.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
from jax import Array

from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.axes import first_normalized_axis
from diopi_impl.jax_cpu.sizes import check_shapes


def _normalized_axes(input: Array, normalized_shape: Sequence[int]) -> tuple[int, ...]:
    """Return the last axes of the input, as many as `normalized_shape` has; raise ValueError unless sizes agree."""
    return tuple(range(first_normalized_axis(input, normalized_shape), input.ndim))


@vendor.implements("diopiRMSNorm")
def rms_norm(input, normalized_shape, weight, bias, eps):
    """Return x / √(mean(x²) + eps) · weight + bias, and the inverse root mean square of each normalized part."""
    axes = _normalized_axes(input, normalized_shape)
    check_shapes(normalized_shape, weight=weight, bias=bias)
    inv_rms = 1 / jnp.sqrt(jnp.square(input).mean(axes, keepdims=True) + eps)
    scaled = input * inv_rms if weight is None else input * inv_rms * weight
    return scaled if bias is None else scaled + bias, inv_rms.squeeze(axes)


@vendor.implements("diopiRMSNormBackward")
def rms_norm_backward(grad_output, input, weight, inv_rms, normalized_shape):
    """Return the gradients of input, weight and bias."""
    axes = _normalized_axes(input, normalized_shape)
    leading = tuple(range(axes[0]))
    check_shapes(normalized_shape, weight=weight)
    check_shapes(input.shape, grad_output=grad_output)
    check_shapes(input.shape[: axes[0]], inv_rms=inv_rms)
    r = inv_rms.reshape(*inv_rms.shape, *[1] * len(axes))
    x_hat, g = input * r, grad_output if weight is None else grad_output * weight
    grad_input = r * (g - x_hat * (g * x_hat).mean(axes, keepdims=True))
    return grad_input, (grad_output * x_hat).sum(leading), grad_output.sum(leading)
