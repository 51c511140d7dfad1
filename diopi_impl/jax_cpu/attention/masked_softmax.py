"""Scaled masked softmax and its gradient.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.sizes import check_shapes


def _is_masked(x: Array, mask: Array, fixed_triu_mask: bool) -> Array:
    """Return which scores are masked: those above the diagonal if `fixed_triu_mask`, else those where mask is not 0.

    Raises:
        ValueError: if `mask` does not broadcast to the scores.
    """
    if jnp.broadcast_shapes(mask.shape, x.shape) != x.shape:
        raise ValueError(f"mask has shape {mask.shape}, which does not broadcast to {x.shape}")
    return ~jnp.tri(x.shape[-2], x.shape[-1], dtype=bool) if fixed_triu_mask else mask != 0


@vendor.implements("diopiScaledMaskedSoftmax")
def scaled_masked_softmax(input, mask, scale, fixed_triu_mask):
    """Return the softmax over the last axis of scale · input, where masked scores are −10000."""
    return jax.nn.softmax(jnp.where(_is_masked(input, mask, fixed_triu_mask), -10000.0, scale * input), -1)


@vendor.implements("diopiScaledMaskedSoftmaxBackward")
def scaled_masked_softmax_backward(grad_output, output, mask, scale, fixed_triu_mask):
    """Return scale · y · (g − Σ g · y), and 0 at masked scores; y is the result, g is grad_output."""
    check_shapes(grad_output.shape, output=output)
    slopes = scale * output * (grad_output - (grad_output * output).sum(-1, keepdims=True))
    return jnp.where(_is_masked(output, mask, fixed_triu_mask), 0, slopes)
