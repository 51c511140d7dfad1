"""The attention core and its gradient in blocks of keys, which all forms of attention share.

Tensors have the layout [batch, rows, heads, head size]. The sequence and position of each row (`Rows`) determine which
keys are visible to a query. Only the scores of one head and `BLOCK` keys are in memory at a time: maxima and sums are
updated from block to block (Dao, "FlashAttention-2", 2023).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from diopi_impl.jax_cpu.sizes import check_shapes

BLOCK = 256
"""The number of keys whose scores are in memory at a time."""


class Rows(NamedTuple):
    """The number of the sequence of each row, and the position in that sequence, [batch, rows] each.

    Sequence −1 marks unused rows.
    """

    sequence: Array
    position: Array


class Visibility(NamedTuple):
    """The visibility of keys to queries, and the other properties of pairs of rows.

    Functions of a single head receive a Visibility whose arrays lack the axes of the batch and of the heads.

    Attributes:
        queries, keys: the rows of queries and of keys; only keys of the query's sequence are visible.
        slopes: the slopes of ALiBi, [batch, queries, heads]; None for no bias.
        hidden: the pairs that are masked out, [batch, queries, keys]; None for no mask.
        key: the random key of dropout; None without dropout.
    """

    queries: Rows
    keys: Rows
    slopes: Array | None = None
    hidden: Array | None = None
    key: Array | None = None


@dataclass(frozen=True, kw_only=True)
class AttentionParameters:
    """The parameters of a call.

    Attributes:
        scale: the factor of the scores.
        window_left, window_right: the numbers of visible keys before and after a query's position; −1 for all.
        dropout_p: the probability of dropout.
    """

    scale: float
    window_left: int = -1
    window_right: int = -1
    dropout_p: float = 0.0

    @property
    def dropout_scale(self) -> float:
        """The factor by which dropout multiplies the remaining probabilities."""
        return 1 / (1 - self.dropout_p) if self.dropout_p < 1 else 0.0


class _KeyBlock(NamedTuple):
    """A block of the keys and values of a head, with its number, the rows of the keys, and the mask [keys, queries]."""

    number: Array
    k: Array
    v: Array
    rows: Rows
    hidden: Array | None


def _blocks(k: Array, v: Array, visibility: Visibility) -> _KeyBlock:
    """Return the keys and values of a head in blocks: each array of the result has an additional first axis of blocks.

    The last block is padded with invisible keys.
    """
    size = min(BLOCK, len(k)) or 1
    count = -(-len(k) // size)

    def split_into_blocks(x: Array, fill: Any = 0) -> Array:
        """Return an array padded with `fill` and split into blocks."""
        return jnp.pad(x, [(0, count * size - len(x)), *[(0, 0)] * (x.ndim - 1)], constant_values=fill).reshape(
            count, size, *x.shape[1:]
        )

    rows = Rows(split_into_blocks(visibility.keys.sequence, -1), split_into_blocks(visibility.keys.position))
    hidden = None if visibility.hidden is None else split_into_blocks(visibility.hidden.T)
    return _KeyBlock(jnp.arange(count), split_into_blocks(k), split_into_blocks(v), rows, hidden)


def _scores(q: Array, block: _KeyBlock, visibility: Visibility, parameters: AttentionParameters) -> Array:
    """Return the scores [queries, keys of the block], −inf for invisible keys."""
    distance = block.rows.position - visibility.queries.position[:, None]
    scores = parameters.scale * (q @ block.k.T)
    if visibility.slopes is not None:
        scores -= visibility.slopes[:, None] * jnp.abs(distance).astype(scores.dtype)
    is_visible: Array = (block.rows.sequence == visibility.queries.sequence[:, None]) & (block.rows.sequence >= 0)
    if parameters.window_left >= 0:
        is_visible &= distance >= -parameters.window_left
    if parameters.window_right >= 0:
        is_visible &= distance <= parameters.window_right
    if block.hidden is not None:
        is_visible &= ~block.hidden.T
    return jnp.where(is_visible, scores, -jnp.inf)


def _apply_dropout(p: Array, block: _KeyBlock, visibility: Visibility, parameters: AttentionParameters) -> Array:
    """Return the probabilities of a block, or their gradients, after dropout; each call drops the same elements."""
    if not parameters.dropout_p:
        return p
    assert visibility.key is not None
    uniform = jax.random.uniform(jax.random.fold_in(visibility.key, block.number), p.shape)
    return jnp.where(uniform >= parameters.dropout_p, p * parameters.dropout_scale, 0)


def _replace_minus_infinity(top: Array) -> Array:
    """Return the maxima of rows, with 0 in place of −inf."""
    return jnp.where(jnp.isneginf(top), 0, top)


def _attend_head(
    parameters: AttentionParameters, q: Array, k: Array, v: Array, visibility: Visibility
) -> tuple[Array, Array]:
    """Return the result and the logsumexp of one head: [queries, head size] and [queries]."""

    def add(carry: tuple[Array, Array, Array], block: _KeyBlock) -> tuple[tuple[Array, Array, Array], None]:
        """Update maxima, sums and weighted values with a block of keys."""
        top, total, weighted = carry
        scores = _scores(q, block, visibility, parameters)
        highest = jnp.maximum(top, scores.max(1))
        e, shrunk = (
            jnp.exp(scores - _replace_minus_infinity(highest)[:, None]),
            jnp.exp(top - _replace_minus_infinity(highest)),
        )
        increment = _apply_dropout(e, block, visibility, parameters) @ block.v
        return (highest, total * shrunk + e.sum(1), weighted * shrunk[:, None] + increment), None

    rows = (len(q),)
    begin = jnp.full(rows, -jnp.inf, q.dtype), jnp.zeros(rows, q.dtype), jnp.zeros((*rows, v.shape[-1]), q.dtype)
    (top, total, weighted), _ = lax.scan(add, begin, _blocks(k, v, visibility))
    sees_no_key = total == 0
    out = jnp.where(sees_no_key[:, None], 0, weighted / jnp.where(sees_no_key, 1, total)[:, None])
    return out, jnp.where(sees_no_key, jnp.inf, _replace_minus_infinity(top) + jnp.log(total))


def _attend_head_backward(
    parameters: AttentionParameters,
    q: Array,
    k: Array,
    v: Array,
    visibility: Visibility,
    g: Array,
    out: Array,
    lse: Array,
) -> tuple[Array, Array, Array]:
    """Return the gradients of one head's queries, keys and values."""
    level = (g * out).sum(1, keepdims=True)

    def add(grad_q: Array, block: _KeyBlock) -> tuple[Array, tuple[Array, Array]]:
        """Add the share of a block of keys to the gradient of q; return the gradients of its keys and values."""
        p = jnp.exp(_scores(q, block, visibility, parameters) - lse[:, None])
        ds = p * (_apply_dropout(g @ block.v.T, block, visibility, parameters) - level) * parameters.scale
        return grad_q + ds @ block.k, (ds.T @ q, _apply_dropout(p, block, visibility, parameters).T @ g)

    grad_q, key_gradients = lax.scan(add, jnp.zeros_like(q), _blocks(k, v, visibility))
    grad_k, grad_v = (jnp.concatenate([*x, jnp.zeros((0, x.shape[-1]), x.dtype)])[: len(k)] for x in key_gradients)
    return grad_q, grad_k, grad_v


def _map_heads(
    function: Callable[..., Any], q: Array, k: Array, v: Array, visibility: Visibility, *query_tensors: Array
) -> Any:
    """Map a function of single heads over the heads of all batch entries.

    Args:
        function: a function of one head's queries, keys, values, visibility and entries of `query_tensors`.
        q: the queries, [batch, rows, heads, head size].
        k: the keys, in the same layout.
        v: the values, in the same layout.
        visibility: the visibility of keys.
        query_tensors: further tensors of queries, [batch, rows, heads, …].

    Returns:
        The results, [batch, rows, query heads, …].
    """
    group = q.shape[2] // max(k.shape[2], 1)

    def run_head(number: Array) -> Any:
        """Return the results of `function` for the head with this number."""
        entry, head = number // q.shape[2], number % q.shape[2]
        rows = Rows(*(x[entry] for x in visibility.queries)), Rows(*(x[entry] for x in visibility.keys))
        head_visibility = Visibility(
            *rows,
            None if visibility.slopes is None else visibility.slopes[entry, :, head],
            None if visibility.hidden is None else visibility.hidden[entry % len(visibility.hidden)],
            None if visibility.key is None else jax.random.fold_in(visibility.key, number),
        )
        keys = (x[entry, :, head // group] for x in (k, v))
        return function(q[entry, :, head], *keys, head_visibility, *(x[entry, :, head] for x in query_tensors))

    results = lax.map(run_head, jnp.arange(q.shape[0] * q.shape[2]))
    return [jnp.moveaxis(x.reshape(*q.shape[::2][:2], *x.shape[1:]), 1, 2) for x in results]


def attend(
    q: Array, k: Array, v: Array, visibility: Visibility, parameters: AttentionParameters
) -> tuple[Array, Array]:
    """Return the result of attention, shaped like q, and the logsumexp of the scores, [batch, rows, heads].

    For a query that sees no key, the result is 0 and the logsumexp is infinite.
    """
    _check_heads(q, k, v)
    if not (q.size and k.size):
        return jnp.zeros(q.shape, q.dtype), jnp.full(q.shape[:3], jnp.inf, q.dtype)
    out, lse = _map_heads(partial(_attend_head, parameters), q, k, v, visibility)
    return out, lse


def attend_backward(
    g: Array,
    q: Array,
    k: Array,
    v: Array,
    out: Array,
    lse: Array,
    visibility: Visibility,
    parameters: AttentionParameters,
) -> tuple[Array, Array, Array]:
    """Return the gradients of q, k and v for the result's gradient g; `out` and `lse` are the results of `attend`."""
    _check_heads(q, k, v)
    check_shapes(q.shape, grad_output=g, out=out)
    if not (q.size and k.size):
        return jnp.zeros_like(q), jnp.zeros_like(k), jnp.zeros_like(v)
    grad_q, *key_grads = _map_heads(partial(_attend_head_backward, parameters), q, k, v, visibility, g, out, lse)
    grad_k, grad_v = (x.reshape(*k.shape[:3], -1, k.shape[-1]).sum(3) for x in key_grads)
    return grad_q, grad_k, grad_v


def _check_heads(q: Array, k: Array, v: Array) -> None:
    """Check the shapes of q, k and v, [batch, rows, heads, head size].

    Raises:
        ValueError: if batch or head size differ, if v has another shape than k, or if the number of heads of q is not a
            multiple of the number of heads of k.
    """
    check_shapes(k.shape, v=v)
    fits = q.ndim == k.ndim == 4 and (q.shape[0], q.shape[3]) == (k.shape[0], k.shape[3])
    if not fits or q.shape[2] % max(k.shape[2], 1):
        raise ValueError(f"q has shape {q.shape} and k {k.shape}: batch, head size or number of heads do not fit")
