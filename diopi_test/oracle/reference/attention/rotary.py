"""Rotary embedding.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.

Source: J. Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", 2021.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import WithTerms, reference

Array = NDArray[Any]


def _rotate(a: Array, b: Array, cos: Array, sin: Array, other_cos: Array, other_sin: Array) -> tuple[Any, Any]:
    """Return both elements of rotated pairs: a · cos − b · sin and b · other_cos + a · other_sin.

    Their terms are the magnitudes of the addends, which may cancel.
    """
    return (
        WithTerms(a * cos - b * sin, np.abs(a * cos) + np.abs(b * sin)),
        WithTerms(b * other_cos + a * other_sin, np.abs(b * other_cos) + np.abs(a * other_sin)),
    )


def _join_halves(first: WithTerms, second: WithTerms, axis: int) -> WithTerms:
    """Return two results as halves of the last axis if `axis` is −1, or interleaved if it is −2."""
    shape = (*first.value.shape[:-1], 2 * first.value.shape[-1])
    parts = [(a, b) for a, b in ((first.value, second.value), (first.terms, second.terms))]
    joined = [np.stack(pair, -2 if axis == -1 else -1).reshape(shape) for pair in parts]
    return WithTerms(*joined)


@reference("diopiRotaryEmbedding")
def rotary_embedding(x, cos, sin, conj, interleaved):
    """Return x with each pair of elements of the last axis rotated by an angle, or by its negative if `conj`.

    A pair consists of neighboring elements if `interleaved`, and otherwise of the elements i and i + n / 2.
    """
    half = x.shape[-1] // 2
    if cos.shape[-1] != half:
        raise ValueError(f"cos has shape {cos.shape}, expected {half} in the last axis, half of {x.shape[-1]}")
    a, b = (x[..., ::2], x[..., 1::2]) if interleaved else (x[..., :half], x[..., half:])
    sin = -sin if conj else sin
    return _join_halves(*_rotate(a, b, cos, sin, cos, sin), axis=-2 if interleaved else -1)


@reference("diopiRotaryEmbeddingV2")
def rotary_embedding_v2(query, key, cos, sin, dim):
    """Return query and key with the pairs of elements of each head rotated; cos and sin have a number per element."""
    return _rotate_heads(query, cos, sin, dim), _rotate_heads(key, cos, sin, dim)


def _rotate_heads(x: Array, cos: Array, sin: Array, dim: int) -> WithTerms:
    """Return x with the pairs (i, i + dim / 2) of each head of `dim` elements rotated."""
    heads = x
    if x.ndim == 2:
        heads = x.reshape(len(x), x.shape[1] // dim, dim)
        cos, sin = (angles.reshape(len(x), 1, dim) for angles in (cos, sin))
    half = dim // 2
    first = cos[..., :half], sin[..., :half]
    result = _join_halves(
        *_rotate(heads[..., :half], heads[..., half:], *first, cos[..., half:], sin[..., half:]), axis=-1
    )
    return WithTerms(result.value.reshape(x.shape), result.terms.reshape(x.shape))
