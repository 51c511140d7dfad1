"""The attention core and its gradient, in blocks of keys, which all forms of attention share.

Both work on [batch, rows, heads, head size]: which keys a query sees follows from the sequence and the place of each
row (`Rows`). Neither holds more scores than those of one head and `BLOCK` keys: maxima and sums are kept up to date
from block to block (Dao, "FlashAttention-2", 2023).
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
"""Keys whose scores are there at a time."""


class Rows(NamedTuple):
    """Of each row of a batch entry, [batch, rows]: the sequence it is of, and its place there; −1 is no sequence."""

    sequence: Array
    place: Array


class Sight(NamedTuple):
    """What queries see of the keys, and what is added to their scores; None for nothing.

    Attributes:
        queries, keys: the rows of queries and of keys; a query sees keys of its own sequence.
        slopes: of ALiBi, [batch, queries, heads].
        hidden: where keys are not visible, [batch, queries, keys].
        key: of what dropout draws.
    """

    queries: Rows
    keys: Rows
    slopes: Array | None = None
    hidden: Array | None = None
    key: Array | None = None


@dataclass(frozen=True)
class Rule:
    """The numbers of a call: scale of the scores, keys seen before and behind a place, probability of dropout."""

    scale: float
    left: int = -1
    right: int = -1
    dropped: float = 0.0

    @property
    def factor(self) -> float:
        """What shares that are kept are multiplied by."""
        return 1 / (1 - self.dropped) if self.dropped < 1 else 0.0


class _Block(NamedTuple):
    """Some of the keys."""

    number: Array
    k: Array
    v: Array
    rows: Rows
    hidden: Array | None


def _blocks(k: Array, v: Array, sight: Sight) -> _Block:
    """The keys of one head in blocks, the last one filled up with keys that nobody sees."""
    size = min(BLOCK, len(k)) or 1
    count = -(-len(k) // size)

    def cut(x: Array, fill: Any = 0) -> Array:
        return jnp.pad(x, [(0, count * size - len(x)), *[(0, 0)] * (x.ndim - 1)], constant_values=fill).reshape(
            count, size, *x.shape[1:]
        )

    rows = Rows(cut(sight.keys.sequence, -1), cut(sight.keys.place))
    hidden = None if sight.hidden is None else cut(sight.hidden.T)
    return _Block(jnp.arange(count), cut(k), cut(v), rows, hidden)


def _scores(q: Array, block: _Block, sight: Sight, rule: Rule) -> Array:
    """[queries, keys of the block], −inf where a query does not see a key."""
    distance = block.rows.place - sight.queries.place[:, None]
    scores = rule.scale * (q @ block.k.T)
    if sight.slopes is not None:
        scores -= sight.slopes[:, None] * jnp.abs(distance).astype(scores.dtype)
    seen: Array = (block.rows.sequence == sight.queries.sequence[:, None]) & (block.rows.sequence >= 0)
    if rule.left >= 0:
        seen &= distance >= -rule.left
    if rule.right >= 0:
        seen &= distance <= rule.right
    if block.hidden is not None:
        seen &= ~block.hidden.T
    return jnp.where(seen, scores, -jnp.inf)


def _kept(p: Array, block: _Block, sight: Sight, rule: Rule) -> Array:
    """Shares of a block, or slopes of them, after dropout: the same elements fall whenever it is called."""
    if not rule.dropped:
        return p
    assert sight.key is not None
    drawn = jax.random.uniform(jax.random.fold_in(sight.key, block.number), p.shape)
    return jnp.where(drawn >= rule.dropped, p * rule.factor, 0)


def _finite(top: Array) -> Array:
    """Maxima of rows, 0 for rows that have none."""
    return jnp.where(jnp.isneginf(top), 0, top)


def _attend_head(rule: Rule, q: Array, k: Array, v: Array, sight: Sight) -> tuple[Array, Array]:
    """Result and logarithms of the sums of one head."""

    def add(carry: tuple[Array, Array, Array], block: _Block) -> tuple[tuple[Array, Array, Array], None]:
        top, total, weighted = carry
        scores = _scores(q, block, sight, rule)
        highest = jnp.maximum(top, scores.max(1))
        e, shrunk = jnp.exp(scores - _finite(highest)[:, None]), jnp.exp(top - _finite(highest))
        more = _kept(e, block, sight, rule) @ block.v
        return (highest, total * shrunk + e.sum(1), weighted * shrunk[:, None] + more), None

    rows = (len(q),)
    begin = jnp.full(rows, -jnp.inf, q.dtype), jnp.zeros(rows, q.dtype), jnp.zeros((*rows, v.shape[-1]), q.dtype)
    (top, total, weighted), _ = lax.scan(add, begin, _blocks(k, v, sight))
    is_blind = total == 0
    out = jnp.where(is_blind[:, None], 0, weighted / jnp.where(is_blind, 1, total)[:, None])
    return out, jnp.where(is_blind, jnp.inf, _finite(top) + jnp.log(total))


def _pull_back_head(
    rule: Rule, q: Array, k: Array, v: Array, sight: Sight, g: Array, out: Array, lse: Array
) -> tuple[Array, Array, Array]:
    """The gradients of one head's queries, keys and values."""
    level = (g * out).sum(1, keepdims=True)

    def add(grad_q: Array, block: _Block) -> tuple[Array, tuple[Array, Array]]:
        p = jnp.exp(_scores(q, block, sight, rule) - lse[:, None])
        ds = p * (_kept(g @ block.v.T, block, sight, rule) - level) * rule.scale
        return grad_q + ds @ block.k, (ds.T @ q, _kept(p, block, sight, rule).T @ g)

    grad_q, found = lax.scan(add, jnp.zeros_like(q), _blocks(k, v, sight))
    grad_k, grad_v = (jnp.concatenate([*x, jnp.zeros((0, x.shape[-1]), x.dtype)])[: len(k)] for x in found)
    return grad_q, grad_k, grad_v


def _by_head(function: Callable[..., Any], q: Array, k: Array, v: Array, sight: Sight, *others: Array) -> Any:
    """A function of single heads for each head of each batch entry, one after the other.

    `others` are of queries and have [batch, rows, heads, …], as results of queries have; those of keys have one for
    each query head.
    """
    group = q.shape[2] // max(k.shape[2], 1)

    def one(number: Array) -> Any:
        entry, head = number // q.shape[2], number % q.shape[2]
        own = Rows(*(x[entry] for x in sight.queries)), Rows(*(x[entry] for x in sight.keys))
        seen = Sight(
            *own,
            None if sight.slopes is None else sight.slopes[entry, :, head],
            None if sight.hidden is None else sight.hidden[entry % len(sight.hidden)],
            None if sight.key is None else jax.random.fold_in(sight.key, number),
        )
        keys = (x[entry, :, head // group] for x in (k, v))
        return function(q[entry, :, head], *keys, seen, *(x[entry, :, head] for x in others))

    found = lax.map(one, jnp.arange(q.shape[0] * q.shape[2]))
    return [jnp.moveaxis(x.reshape(*q.shape[::2][:2], *x.shape[1:]), 1, 2) for x in found]


def attend(q: Array, k: Array, v: Array, sight: Sight, rule: Rule) -> tuple[Array, Array]:
    """The attention core: result as q, and logarithms of the sums, [batch, rows, heads]."""
    _check_heads(q, k, v)
    if not (q.size and k.size):
        return jnp.zeros(q.shape, q.dtype), jnp.full(q.shape[:3], jnp.inf, q.dtype)
    out, lse = _by_head(partial(_attend_head, rule), q, k, v, sight)
    return out, lse


def pull_back(
    g: Array, q: Array, k: Array, v: Array, out: Array, lse: Array, sight: Sight, rule: Rule
) -> tuple[Array, Array, Array]:
    """The gradients of q, k and v from that of the result; lse as `attend` gives it."""
    _check_heads(q, k, v)
    check_shapes(q.shape, grad_output=g, out=out)
    if not (q.size and k.size):
        return jnp.zeros_like(q), jnp.zeros_like(k), jnp.zeros_like(v)
    grad_q, *of_keys = _by_head(partial(_pull_back_head, rule), q, k, v, sight, g, out, lse)
    grad_k, grad_v = (x.reshape(*k.shape[:3], -1, k.shape[-1]).sum(3) for x in of_keys)
    return grad_q, grad_k, grad_v


def _check_heads(q: Array, k: Array, v: Array) -> None:
    """Raise ValueError unless q and k, [batch, rows, heads, head size], fit together, and v is like k."""
    check_shapes(k.shape, v=v)
    fits = q.ndim == k.ndim == 4 and (q.shape[0], q.shape[3]) == (k.shape[0], k.shape[3])
    if not fits or q.shape[2] % max(k.shape[2], 1):
        raise ValueError(f"q has shape {q.shape} and k {k.shape}: batch, head size or number of heads do not fit")
