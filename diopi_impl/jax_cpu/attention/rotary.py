"""Rotary embedding.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax.numpy as jnp
from jax import Array

from diopi_impl.jax_cpu import vendor


def _rotate_pairs(a: Array, b: Array, cos: Sequence[Array], sin: Sequence[Array]) -> tuple[Array, Array]:
    """Return a · cos[0] − b · sin[0] and b · cos[1] + a · sin[1]."""
    return a * cos[0] - b * sin[0], b * cos[1] + a * sin[1]


@vendor.implements("diopiRotaryEmbedding")
def rotary_embedding(x, cos, sin, conj, interleaved):
    """Return x with each pair of elements of the last axis rotated by an angle, or by its negative if `conj`.

    If `interleaved`, a pair has adjacent elements. Otherwise it has an element of each half of the axis.
    """
    if x.shape[-1] % 2:
        raise ValueError(f"x has shape {x.shape}, expected an even number of elements in the last axis")
    for name, tensor in (("cos", cos), ("sin", sin)):
        if tensor.shape[-1] != x.shape[-1] // 2:
            raise ValueError(f"{name} has shape {tensor.shape}, expected {x.shape[-1] // 2} elements in the last axis")
    half = x.shape[-1] // 2
    pairs = x.reshape(*x.shape[:-1], half, 2) if interleaved else x.reshape(*x.shape[:-1], 2, half).swapaxes(-1, -2)
    sin = -sin if conj else sin
    rotated = jnp.stack(_rotate_pairs(pairs[..., 0], pairs[..., 1], (cos, cos), (sin, sin)), -1 if interleaved else -2)
    return rotated.reshape(*rotated.shape[:-2], 2 * half)


@vendor.implements("diopiRotaryEmbeddingV2")
def rotary_embedding_v2(query, key, cos, sin, dim):
    """Return query and key with rotated heads; `cos` and `sin` have a value for each element of a head."""
    if dim < 1 or dim % 2:
        raise ValueError(f"dim is {dim}, expected an even number of at least 2")
    return tuple(_rotate_heads(name, x, cos, sin, dim) for name, x in (("query", query), ("key", key)))


def _rotate_heads(name: str, x: Array, cos: Array, sin: Array, dim: int) -> Array:
    """Return x with each pair of elements of both halves of a head rotated; a head has `dim` elements."""
    if x.shape[-1] % dim or (x.ndim > 2 and x.shape[-1] != dim):
        raise ValueError(f"{name} has shape {x.shape}, expected heads of {dim} elements in the last axis")
    heads = x.reshape(len(x), x.shape[1] // dim, dim) if x.ndim == 2 else x
    cos, sin = (_angles(label, angles, x, heads, dim) for label, angles in (("cos", cos), ("sin", sin)))
    (first, second), cosines, sines = (jnp.split(part, 2, -1) for part in (heads, cos, sin))
    return jnp.concatenate(_rotate_pairs(first, second, cosines, sines), -1).reshape(x.shape)


def _angles(name: str, angles: Array, x: Array, heads: Array, dim: int) -> Array:
    """Return cosines or sines in a shape that broadcasts against `heads`.

    Args:
        name: The name of the argument, for messages.
        angles: The cosines or sines.
        x: The input of the call.
        heads: The input as (…, tokens, heads, head size).
        dim: The required size of the last axis.

    Returns:
        The cosines or sines.

    Raises:
        ValueError: their shape does not fit the tokens of `heads`
    """
    shape, tokens = angles.shape, heads.shape[:-2]
    if x.ndim == 2 and angles.ndim > 2:
        angles = angles.reshape(math.prod(shape[:-2]), *shape[-2:])
    while angles.ndim > heads.ndim and angles.shape[0] == 1:
        angles = angles[0]
    fits = angles.shape[-3:] == (tokens[-1], 1, dim) and angles.ndim <= heads.ndim
    if not fits or any(n not in (1, size) for n, size in zip(angles.shape[-4::-1], tokens[-2::-1], strict=False)):
        raise ValueError(f"{name} has shape {shape}, expected {(*tokens, 1, dim)} or {(tokens[-1], 1, dim)}")
    return angles
