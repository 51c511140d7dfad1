"""The rows of batched and of packed sequences, and the visibility of their keys."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from diopi_impl.jax_cpu.attention.core import AttentionParameters, Rows, Visibility
from diopi_impl.jax_cpu.random import derive_key
from diopi_impl.jax_cpu.sizes import check_rank, check_shapes


def batched_rows(q: Array, k: Array, top_left: bool = False) -> tuple[Rows, Rows]:
    """Return the rows of queries and keys if each batch entry is a sequence.

    The queries align with the last keys, or with the first keys if `top_left`.
    """
    (batch, queries), keys = q.shape[:2], k.shape[1]
    first = 0 if top_left else keys - queries
    positions = jnp.arange(queries) + first, jnp.arange(keys)
    query_rows, key_rows = (Rows(jnp.zeros((batch, len(x)), int), jnp.tile(x, (batch, 1))) for x in positions)
    return query_rows, key_rows


def packed_rows(q: Array, k: Array, begins: tuple[Array, Array], top_left: bool = False) -> tuple[Rows, Rows]:
    """Return the rows of queries and keys of packed sequences.

    Args:
        q: the queries.
        k: the keys.
        begins: the first rows of the sequences of queries and of keys, each followed by the total number of rows.
        top_left: whether queries align with the first keys instead of the last keys.
    """
    check_shapes(begins[0].shape, cum_seq_kv=begins[1])
    lengths = [jnp.diff(x) for x in begins]
    first = jnp.zeros_like(lengths[0]) if top_left else lengths[1] - lengths[0]
    queries, keys = (_sequence_of(x.shape[0], begin) for x, begin in zip((q, k), begins, strict=True))
    positions = jnp.arange(len(queries)) - begins[0][queries] + first[queries], jnp.arange(len(keys)) - begins[1][keys]
    return Rows(queries[None], positions[0][None]), Rows(keys[None], positions[1][None])


def _sequence_of(rows: int, begins: Array) -> Array:
    """Return the number of the sequence that each packed row belongs to."""
    return jnp.searchsorted(begins, jnp.arange(rows), side="right") - 1


def unpack_rows(lse: Array, begins: Array, rows: int) -> Array:
    """Return [1, packed rows, heads] as [sequences, heads, rows]; rows beyond a sequence's end are unspecified."""
    positions = jnp.clip(begins[:-1, None] + jnp.arange(rows), 0, max(lse.shape[1] - 1, 0))
    return jnp.moveaxis(jnp.take(lse[0], positions, axis=0, mode="fill", fill_value=0), -1, 1)


def pack_rows(lse: Array, begins: Array, rows: int) -> Array:
    """Return [sequences, heads, rows] as [1, packed rows, heads]: the inverse of `unpack_rows`."""
    number = _sequence_of(rows, begins)
    return lse[number, :, jnp.arange(rows) - begins[number]][None]


def attention_parameters(scale: float, causal: bool, window: tuple[int, int], dropout_p: float) -> AttentionParameters:
    """Return the parameters of a call.

    Args:
        scale: The factor of the scores.
        causal: Whether a query sees no later keys.
        window: The numbers of keys that a query sees before and, unless `causal`, after its position; −1 for all.
        dropout_p: The probability of dropout.

    Raises:
        ValueError: the probability of dropout is outside [0, 1]
    """
    if not 0 <= dropout_p <= 1:
        raise ValueError(f"the probability of dropout is {dropout_p}, expected a number from 0 to 1")
    return AttentionParameters(
        scale=scale, window_left=window[0], window_right=0 if causal else window[1], dropout_p=dropout_p
    )


def _slopes(alibi_slopes: Array | None, batch: int, heads: int) -> Array | None:
    """Return the slopes of ALiBi as [batch, heads], or None; raise ValueError if the shape differs."""
    if alibi_slopes is None:
        return None
    if alibi_slopes.shape not in ((heads,), (batch, heads)):
        raise ValueError(f"alibi_slopes has shape {alibi_slopes.shape}, expected {(heads,)} or {(batch, heads)}")
    return jnp.broadcast_to(alibi_slopes, (batch, heads))


def batched_visibility(q: Array, k: Array, slopes: Array | None, gen: Array, top_left: bool = False) -> Visibility:
    """Return the visibility of keys for `batched_rows`; ALiBi's slopes are [heads] or [batch, heads]."""
    check_rank(4, q=q, k=k)
    rows = batched_rows(q, k, top_left)
    slopes = _slopes(slopes, len(q), q.shape[2])
    row_slopes = None if slopes is None else jnp.broadcast_to(slopes[:, None], q.shape[:3])
    return Visibility(*rows, row_slopes, key=derive_key(gen))


def packed_visibility(
    q: Array, k: Array, begins: tuple[Array, Array], slopes: Array | None, gen: Array, top_left: bool = False
) -> Visibility:
    """Return the visibility of keys for `packed_rows`; ALiBi's slopes are [heads] or [sequences, heads]."""
    check_rank(3, q=q, k=k)
    rows = packed_rows(q, k, begins, top_left)
    slopes = _slopes(slopes, len(begins[0]) - 1, q.shape[1])
    row_slopes = None if slopes is None else slopes[rows[0].sequence]
    return Visibility(*rows, row_slopes, key=derive_key(gen))
