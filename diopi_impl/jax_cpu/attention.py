"""Attention in blocks of keys, and what a transformer layer puts around it.

All forms of attention are `attend` and its gradient on [batch, rows, heads, head size]: which keys a query sees follows
from the sequence and the place of each row (`Rows`). Neither holds more scores than those of one head and `BLOCK` keys:
maxima and sums are kept up to date from block to block (Dao, "FlashAttention-2", 2023).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from diopi_impl.drawing import drawing
from diopi_impl.functional import ResultSpec
from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.jit import compiled
from diopi_impl.jax_cpu.random import key_of
from diopi_impl.jax_cpu.sizes import check_shapes

BLOCK = 256
"""Keys whose scores are there at a time."""

Out = tuple[ResultSpec | None, ...]


# Rotary embedding


def _rotated(a: Array, b: Array, cos: Sequence[Array], sin: Sequence[Array]) -> tuple[Array, Array]:
    """The pairs (a, b) rotated; cosines and sines for a and for b."""
    return a * cos[0] - b * sin[0], b * cos[1] + a * sin[1]


@vendor.implements("diopiRotaryEmbedding")
def rotary_embedding(x: Array, cos: Array, sin: Array, conj: bool, interleaved: bool) -> Array:
    if x.shape[-1] % 2:
        raise ValueError(f"x has shape {x.shape}, expected an even number of elements in the last axis")
    for name, tensor in (("cos", cos), ("sin", sin)):
        if tensor.shape[-1] != x.shape[-1] // 2:
            raise ValueError(f"{name} has shape {tensor.shape}, expected {x.shape[-1] // 2} elements in the last axis")
    half = x.shape[-1] // 2
    pairs = x.reshape(*x.shape[:-1], half, 2) if interleaved else x.reshape(*x.shape[:-1], 2, half).swapaxes(-1, -2)
    sin = -sin if conj else sin
    both = jnp.stack(_rotated(pairs[..., 0], pairs[..., 1], (cos, cos), (sin, sin)), -1 if interleaved else -2)
    return both.reshape(*both.shape[:-2], 2 * half)


@vendor.implements("diopiRotaryEmbeddingV2")
def rotary_embedding_v2(query: Array, key: Array, cos: Array, sin: Array, dim: int) -> Any:
    if dim < 1 or dim % 2:
        raise ValueError(f"dim is {dim}, expected an even number of at least 2")
    return tuple(_rotated_heads(name, x, cos, sin, dim) for name, x in (("query", query), ("key", key)))


def _rotated_heads(name: str, x: Array, cos: Array, sin: Array, dim: int) -> Array:
    if x.shape[-1] % dim or (x.ndim > 2 and x.shape[-1] != dim):
        raise ValueError(f"{name} has shape {x.shape}, expected heads of {dim} elements in the last axis")
    heads = x.reshape(len(x), x.shape[1] // dim, dim) if x.ndim == 2 else x
    check_shapes((heads.shape[-3], 1, dim), cos=cos, sin=sin)
    (first, second), cosines, sines = (jnp.split(part, 2, -1) for part in (heads, cos, sin))
    return jnp.concatenate(_rotated(first, second, cosines, sines), -1).reshape(x.shape)


# RMS norm


def _normalised(input: Array, normalized_shape: Sequence[int]) -> tuple[int, ...]:
    begin = input.ndim - len(normalized_shape)
    if not normalized_shape or begin < 0 or input.shape[begin:] != tuple(normalized_shape):
        raise ValueError(f"input of shape {input.shape} does not end in normalized_shape {tuple(normalized_shape)}")
    return tuple(range(begin, input.ndim))


@vendor.implements("diopiRMSNorm")
def rms_norm(
    input: Array, normalized_shape: Sequence[int], weight: Array | None, bias: Array | None, eps: float
) -> Any:
    axes = _normalised(input, normalized_shape)
    check_shapes(normalized_shape, weight=weight, bias=bias)
    inv_rms = 1 / jnp.sqrt(jnp.square(input).mean(axes, keepdims=True) + eps)
    scaled = input * inv_rms if weight is None else input * inv_rms * weight
    return scaled if bias is None else scaled + bias, inv_rms.squeeze(axes)


@vendor.implements("diopiRMSNormBackward")
def rms_norm_backward(
    grad_output: Array,
    input: Array,
    weight: Array | None,
    bias: Array | None,
    inv_rms: Array,
    normalized_shape: Sequence[int],
    eps: float,
) -> Any:
    axes = _normalised(input, normalized_shape)
    leading = tuple(range(axes[0]))
    check_shapes(normalized_shape, weight=weight)
    check_shapes(input.shape, grad_output=grad_output)
    check_shapes(input.shape[: axes[0]], inv_rms=inv_rms)
    r = inv_rms.reshape(*inv_rms.shape, *[1] * len(axes))
    x_hat, g = input * r, grad_output if weight is None else grad_output * weight
    grad_input = r * (g - x_hat * (g * x_hat).mean(axes, keepdims=True))
    return grad_input, (grad_output * x_hat).sum(leading), grad_output.sum(leading)


# Scaled masked softmax


def _is_masked(x: Array, mask: Array, fixed_triu_mask: bool) -> Array:
    if jnp.broadcast_shapes(mask.shape, x.shape) != x.shape:
        raise ValueError(f"mask has shape {mask.shape}, which does not broadcast to {x.shape}")
    return ~jnp.tri(x.shape[-2], x.shape[-1], dtype=bool) if fixed_triu_mask else mask != 0


@vendor.implements("diopiScaledMaskedSoftmax")
def scaled_masked_softmax(input: Array, mask: Array, scale: float, fixed_triu_mask: bool) -> Array:
    return jax.nn.softmax(jnp.where(_is_masked(input, mask, fixed_triu_mask), -10000.0, scale * input), -1)


@vendor.implements("diopiScaledMaskedSoftmaxBackward")
def scaled_masked_softmax_backward(
    grad_output: Array, output: Array, mask: Array, scale: float, fixed_triu_mask: bool
) -> Array:
    check_shapes(grad_output.shape, output=output)
    slopes = scale * output * (grad_output - (grad_output * output).sum(-1, keepdims=True))
    return jnp.where(_is_masked(output, mask, fixed_triu_mask), 0, slopes)


# The attention core


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
    check_heads(q, k, v)
    if not (q.size and k.size):
        return jnp.zeros(q.shape, q.dtype), jnp.full(q.shape[:3], jnp.inf, q.dtype)
    out, lse = _by_head(partial(_attend_head, rule), q, k, v, sight)
    return out, lse


def pull_back(
    g: Array, q: Array, k: Array, v: Array, out: Array, lse: Array, sight: Sight, rule: Rule
) -> tuple[Array, Array, Array]:
    """The gradients of q, k and v from that of the result; lse as `attend` gives it."""
    check_heads(q, k, v)
    check_shapes(q.shape, grad_output=g, out=out)
    if not (q.size and k.size):
        return jnp.zeros_like(q), jnp.zeros_like(k), jnp.zeros_like(v)
    grad_q, *of_keys = _by_head(partial(_pull_back_head, rule), q, k, v, sight, g, out, lse)
    grad_k, grad_v = (x.reshape(*k.shape[:3], -1, k.shape[-1]).sum(3) for x in of_keys)
    return grad_q, grad_k, grad_v


def check_heads(q: Array, k: Array, v: Array) -> None:
    """Raise ValueError unless q and k, [batch, rows, heads, head size], fit together, and v is like k."""
    check_shapes(k.shape, v=v)
    fits = q.ndim == k.ndim == 4 and (q.shape[0], q.shape[3]) == (k.shape[0], k.shape[3])
    if not fits or q.shape[2] % max(k.shape[2], 1):
        raise ValueError(f"q has shape {q.shape} and k {k.shape}: batch, head size or number of heads do not fit")


# Which rows make a sequence


def of_one_length(q: Array, k: Array, top_left: bool = False) -> tuple[Rows, Rows]:
    """Every batch entry is a sequence; the last query stands at the last key, or the first at the first."""
    (batch, queries), keys = q.shape[:2], k.shape[1]
    first = 0 if top_left else keys - queries
    places = jnp.arange(queries) + first, jnp.arange(keys)
    of_queries, of_keys = (Rows(jnp.zeros((batch, len(x)), int), jnp.tile(x, (batch, 1))) for x in places)
    return of_queries, of_keys


def packed(q: Array, k: Array, begins: tuple[Array, Array], top_left: bool = False) -> tuple[Rows, Rows]:
    """One sequence behind the other; `begins` of queries and keys are where each begins and the last ends."""
    check_shapes(begins[0].shape, cum_seq_kv=begins[1])
    lengths = [jnp.diff(x) for x in begins]
    first = jnp.zeros_like(lengths[0]) if top_left else lengths[1] - lengths[0]
    queries, keys = (_sequence_of(x.shape[0], begin) for x, begin in zip((q, k), begins, strict=True))
    places = jnp.arange(len(queries)) - begins[0][queries] + first[queries], jnp.arange(len(keys)) - begins[1][keys]
    return Rows(queries[None], places[0][None]), Rows(keys[None], places[1][None])


def _sequence_of(rows: int, begins: Array) -> Array:
    return jnp.searchsorted(begins, jnp.arange(rows), side="right") - 1


def _unpacked(lse: Array, begins: Array, rows: int) -> Array:
    """[1, packed rows, heads] as [sequences, heads, rows]; whatever stands beyond the ends means nothing."""
    places = jnp.clip(begins[:-1, None] + jnp.arange(rows), 0, max(lse.shape[1] - 1, 0))
    return jnp.moveaxis(jnp.take(lse[0], places, axis=0, mode="fill", fill_value=0), -1, 1)


def _packed_again(lse: Array, begins: Array, rows: int) -> Array:
    """The inverse of `_unpacked`."""
    number = _sequence_of(rows, begins)
    return lse[number, :, jnp.arange(rows) - begins[number]][None]


def _rule(scale: float, causal: bool, window: tuple[int, int], dropped: float) -> Rule:
    if not 0 <= dropped <= 1:
        raise ValueError(f"the probability of dropout is {dropped}, expected one from 0 to 1")
    return Rule(scale, window[0], 0 if causal else window[1], dropped)


def _slopes(alibi_slopes: Array | None, batch: int, heads: int) -> Array | None:
    if alibi_slopes is None:
        return None
    if alibi_slopes.shape not in ((heads,), (batch, heads)):
        raise ValueError(f"alibi_slopes has shape {alibi_slopes.shape}, expected {(heads,)} or {(batch, heads)}")
    return jnp.broadcast_to(alibi_slopes, (batch, heads))


def _check_rank(rank: int, **tensors: Array) -> None:
    for name, tensor in tensors.items():
        if tensor.ndim != rank:
            raise ValueError(f"{name} has shape {tensor.shape}, expected {rank} axes")


# Forms

_draws = partial(vendor.implements, adapt=drawing(partial(compiled, traced=["gen"]), "gen", "p_dropout"))
_draws_wide = partial(vendor.implements, adapt=drawing(partial(compiled, traced=["gen"]), "gen", "dropout_p"))


def _sight_of_one_length(q: Array, k: Array, slopes: Array | None, gen: Array) -> Sight:
    _check_rank(4, q=q, k=k)
    rows = of_one_length(q, k)
    slopes = _slopes(slopes, len(q), q.shape[2])
    each = None if slopes is None else jnp.broadcast_to(slopes[:, None], q.shape[:3])
    return Sight(*rows, each, key=key_of(gen))


def _of_one_length(q: Array, k: Array, v: Array, slopes: Array | None, gen: Array, rule: Rule) -> Any:
    out, lse = attend(q, k, v, _sight_of_one_length(q, k, slopes, gen), rule)
    return out, lse.swapaxes(1, 2)


def _of_one_length_backward(
    g: Array, q: Array, k: Array, v: Array, out: Array, lse: Array, slopes: Array | None, gen: Array, rule: Rule
) -> Any:
    sight = _sight_of_one_length(q, k, slopes, gen)
    check_shapes((q.shape[0], q.shape[2], q.shape[1]), softmax_lse=lse)
    return pull_back(g, q, k, v, out, lse.swapaxes(1, 2), sight, rule)


def _sight_of_packed(
    q: Array, k: Array, begins: tuple[Array, Array], slopes: Array | None, gen: Array | None, top_left: bool = False
) -> Sight:
    _check_rank(3, q=q, k=k)
    rows = packed(q, k, begins, top_left)
    slopes = _slopes(slopes, len(begins[0]) - 1, q.shape[1])
    each = None if slopes is None else slopes[rows[0].sequence]
    return Sight(*rows, each, key=None if gen is None else key_of(gen))


def _packed(
    q: Array, k: Array, v: Array, begins: tuple[Array, Array], slopes: Array | None, gen: Array, rule: Rule, rows: int
) -> Any:
    sight = _sight_of_packed(q, k, begins, slopes, gen)
    out, lse = attend(q[None], k[None], v[None], sight, rule)
    return out[0], _unpacked(lse, begins[0], rows)


def _packed_backward(
    g: Array,
    q: Array,
    k: Array,
    v: Array,
    out: Array,
    lse: Array,
    begins: tuple[Array, Array],
    slopes: Array | None,
    gen: Array,
    rule: Rule,
    rows: int,
) -> Any:
    sight = _sight_of_packed(q, k, begins, slopes, gen)
    check_shapes((len(begins[0]) - 1, q.shape[1], rows), softmax_lse=lse)
    lse = _packed_again(lse, begins[0], len(q))
    return [x[0] for x in pull_back(g[None], q[None], k[None], v[None], out[None], lse, sight, rule)]


@_draws("diopiFlashAttention")
def flash_attention(
    gen: Array,
    q: Array,
    k: Array,
    v: Array,
    alibi_slopes: Array | None,
    p_dropout: float,
    softmax_scale: float,
    is_causal: bool,
    window_size_left: int,
    window_size_right: int,
) -> Any:
    rule = _rule(softmax_scale, is_causal, (window_size_left, window_size_right), p_dropout)
    return _of_one_length(q, k, v, alibi_slopes, gen, rule)


@_draws("diopiFlashAttentionBackward")
def flash_attention_backward(
    grad_output: Array,
    gen: Array,
    q: Array,
    k: Array,
    v: Array,
    alibi_slopes: Array | None,
    attention_out: Array,
    softmax_lse: Array,
    p_dropout: float,
    softmax_scale: float,
    is_causal: bool,
    window_size_left: int,
    window_size_right: int,
) -> Any:
    rule = _rule(softmax_scale, is_causal, (window_size_left, window_size_right), p_dropout)
    return _of_one_length_backward(grad_output, q, k, v, attention_out, softmax_lse, alibi_slopes, gen, rule)


@_draws("diopiFlashAttentionVarLen")
def flash_attention_var_len(
    gen: Array,
    q: Array,
    k: Array,
    v: Array,
    cum_seq_q: Array,
    cum_seq_kv: Array,
    alibi_slopes: Array | None,
    max_seqlen_q: int,
    max_seqlen_kv: int,
    p_dropout: float,
    softmax_scale: float,
    is_causal: bool,
    window_size_left: int,
    window_size_right: int,
) -> Any:
    rule = _rule(softmax_scale, is_causal, (window_size_left, window_size_right), p_dropout)
    return _packed(q, k, v, (cum_seq_q, cum_seq_kv), alibi_slopes, gen, rule, max_seqlen_q)


@_draws("diopiFlashAttentionVarLenBackward")
def flash_attention_var_len_backward(
    grad_output: Array,
    gen: Array,
    q: Array,
    k: Array,
    v: Array,
    cum_seq_q: Array,
    cum_seq_kv: Array,
    alibi_slopes: Array | None,
    attention_out: Array,
    softmax_lse: Array,
    max_seqlen_q: int,
    max_seqlen_kv: int,
    p_dropout: float,
    softmax_scale: float,
    is_causal: bool,
    window_size_left: int,
    window_size_right: int,
) -> Any:
    rule = _rule(softmax_scale, is_causal, (window_size_left, window_size_right), p_dropout)
    begins = cum_seq_q, cum_seq_kv
    return _packed_backward(
        grad_output, q, k, v, attention_out, softmax_lse, begins, alibi_slopes, gen, rule, max_seqlen_q
    )


def _check_heads_equal(q: Array, k: Array) -> None:
    if q.shape[-2:] != k.shape[-2:]:
        raise ValueError(f"q has shape {q.shape} and k {k.shape}, expected as many heads of one size")


def _kept_mask(spec: ResultSpec | None, is_written: bool, *shape: int) -> Array | None:
    """That nothing fell, which nobody can tell from what did; as it is if it is not asked for."""
    if spec is None:
        return None
    return jnp.ones(shape if is_written else spec.shape, bool)


@_draws_wide("diopiMultiHeadAttention")
def multi_head_attention(
    q: Array,
    k: Array,
    v: Array,
    dropout_p: float,
    is_causal: bool,
    return_debug_mask: bool,
    scale: float,
    gen: Array,
    *,
    out: Out,
) -> Any:
    _check_heads_equal(q, k)
    results = _of_one_length(q, k, v, None, gen, _rule(scale, is_causal, (-1, -1), dropout_p))
    return *results, _kept_mask(out[2], return_debug_mask, q.shape[0], q.shape[2], q.shape[1], k.shape[1])


@_draws_wide("diopiMultiHeadAttentionBackward")
def multi_head_attention_backward(
    grad_out: Array,
    q: Array,
    k: Array,
    v: Array,
    out: Array,
    softmax_lse: Array,
    dropout_p: float,
    is_causal: bool,
    gen: Array,
    scale: float,
) -> Any:
    _check_heads_equal(q, k)
    rule = _rule(scale, is_causal, (-1, -1), dropout_p)
    return _of_one_length_backward(grad_out, q, k, v, out, softmax_lse, None, gen, rule)


@_draws_wide("diopiMultiHeadAttentionVarLen")
def multi_head_attention_var_len(
    q: Array,
    k: Array,
    v: Array,
    cum_seq_q: Array,
    cum_seq_k: Array,
    max_q: int,
    max_k: int,
    dropout_p: float,
    is_causal: bool,
    return_debug_mask: bool,
    scale: float,
    gen: Array,
    *,
    out: Out,
) -> Any:
    _check_heads_equal(q, k)
    rule = _rule(scale, is_causal, (-1, -1), dropout_p)
    results = _packed(q, k, v, (cum_seq_q, cum_seq_k), None, gen, rule, max_q)
    return *results, _kept_mask(out[2], return_debug_mask, len(cum_seq_q) - 1, q.shape[1], max_q, max_k)


@_draws_wide("diopiMultiHeadAttentionVarLenBackward")
def multi_head_attention_var_len_backward(
    grad_out: Array,
    q: Array,
    k: Array,
    v: Array,
    out: Array,
    softmax_lse: Array,
    cum_seq_q: Array,
    cum_seq_k: Array,
    max_q: int,
    max_k: int,
    dropout_p: float,
    is_causal: bool,
    gen: Array,
    scale: float,
) -> Any:
    _check_heads_equal(q, k)
    rule = _rule(scale, is_causal, (-1, -1), dropout_p)
    return _packed_backward(grad_out, q, k, v, out, softmax_lse, (cum_seq_q, cum_seq_k), None, gen, rule, max_q)


# The form with a mask, in a layout of the caller's

COPIES = 8
"""How many times a saved statistic is there."""

TRIANGLE = 2048
"""Size of the causal triangle that stands for larger ones."""

LAYOUTS = ("BSND", "BNSD", "BSH", "SBH")


def _in_rows(x: Array, layout: str, heads: int) -> Array:
    """As [batch, rows, heads, head size]."""
    if layout not in LAYOUTS:
        raise ValueError(f"input_layout is {layout!r}, expected one of {LAYOUTS}")
    _check_rank(len(layout), **{f"a tensor in layout {layout}": x})
    if len(layout) == 3:
        if heads < 1 or x.shape[-1] % heads:
            raise ValueError(f"a tensor has shape {x.shape}, whose last axis does not consist of {heads} heads")
        x = x.reshape(*x.shape[:2], heads, x.shape[2] // heads)
    return x.swapaxes(1, 2) if layout == "BNSD" else x.swapaxes(0, 1) if layout == "SBH" else x


def _in_layout(x: Array, layout: str, shape: Sequence[int]) -> Array:
    """The inverse of `_in_rows`."""
    x = x.swapaxes(1, 2) if layout == "BNSD" else x.swapaxes(0, 1) if layout == "SBH" else x
    return x.reshape(shape)


def _in_rows_each(q: Array, k: Array, v: Array, layout: str, heads: int) -> tuple[Array, Array, Array]:
    queries = _in_rows(q, layout, heads)
    if queries.shape[2] != heads:
        raise ValueError(f"head_num is {heads}, but q has shape {q.shape} in layout {layout}")
    key_heads = k.shape[-1] // max(queries.shape[-1], 1)
    return queries, _in_rows(k, layout, key_heads), _in_rows(v, layout, key_heads)


def _hidden(mask: Array | None, causal: bool, queries: int, keys: int) -> Array | None:
    """The mask, unless a small triangle stands for a large one, which the rule has already."""
    if mask is None:
        if causal:
            raise ValueError("attention_mask is NULL, expected the causal triangle where is_causal is set")
        return None
    if causal and mask.shape == (TRIANGLE,) * 2 and min(queries, keys) > TRIANGLE:
        return None
    check_shapes((queries, keys), attention_mask=mask)
    return mask


def _own_records(gen: Array, lse: Array, statistics: Sequence[int], scores: int, dropped: float) -> tuple[Any, ...]:
    """What is saved for the gradient: the generator's state where something fell, the logarithms of the sums as maxima
    beside sums of 1, and nothing."""
    maxima = jnp.broadcast_to(lse.reshape(*statistics, 1), (*statistics, COPIES)).astype(jnp.float32)
    mask = None
    if dropped:
        mask = (
            jnp.zeros(-(-scores // 128) * 16, jnp.uint8).at[:16].set(lax.bitcast_convert_type(gen, jnp.uint8).ravel())
        )
    return mask, maxima, jnp.ones_like(maxima), jnp.zeros(0, jnp.float32)


def _saved_generator(dropout_mask: Array | None, dropped: float) -> Array:
    """The generator's state that a forward call saved."""
    if not dropped:
        return jnp.zeros(2, jnp.uint64)
    if dropout_mask is None:
        raise ValueError("dropout_mask is NULL, expected the forward call's where p_dropout is not 0")
    return lax.bitcast_convert_type(dropout_mask[:16].reshape(2, 8), jnp.uint64)


def _saved_lse(softmax_max: Array, softmax_sum: Array, statistics: Sequence[int]) -> Array:
    """The logarithms of the sums: of e relative to the maxima."""
    check_shapes((*statistics, COPIES), softmax_max=softmax_max, softmax_sum=softmax_sum)
    return jnp.where(softmax_sum > 0, softmax_max + jnp.log(softmax_sum), jnp.inf)[..., 0]


def _sight_of_layout(q: Array, k: Array, slopes: Array | None, mask: Array | None, causal: bool, gen: Array) -> Sight:
    """Of tensors as [batch, rows, heads, head size]."""
    sight = _sight_of_one_length(q, k, slopes, gen)
    hidden = _hidden(mask, causal, q.shape[1], k.shape[1])
    queries, keys = of_one_length(q, k, top_left=True)
    return sight._replace(queries=queries, keys=keys, hidden=None if hidden is None else hidden[None])


@_draws("diopiCustomizedFlashAttention")
def customized_flash_attention(
    gen: Array,
    q: Array,
    k: Array,
    v: Array,
    alibi_slopes: Array | None,
    attention_mask: Array | None,
    p_dropout: float,
    softmax_scale: float,
    is_causal: bool,
    window_size_left: int,
    window_size_right: int,
    head_num: int,
    input_layout: str,
) -> Any:
    rule = _rule(softmax_scale, is_causal, (window_size_left, window_size_right), p_dropout)
    queries, keys, values = _in_rows_each(q, k, v, input_layout, head_num)
    sight = _sight_of_layout(queries, keys, alibi_slopes, attention_mask, is_causal, gen)
    result, lse = attend(queries, keys, values, sight, rule)
    lse = lse.swapaxes(1, 2)
    records = _own_records(gen, lse, lse.shape, lse.size * keys.shape[1], p_dropout)
    return _in_layout(result, input_layout, q.shape), *records


@vendor.implements("diopiCustomizedFlashAttentionBackward")
def customized_flash_attention_backward(
    grad_output: Array,
    q: Array,
    k: Array,
    v: Array,
    alibi_slopes: Array | None,
    attention_out: Array,
    attention_mask: Array | None,
    dropout_mask: Array | None,
    softmax_max: Array,
    softmax_sum: Array,
    softmax_out: Array,
    p_dropout: float,
    softmax_scale: float,
    is_causal: bool,
    window_size_left: int,
    window_size_right: int,
    head_num: int,
    input_layout: str,
) -> Any:
    rule = _rule(softmax_scale, is_causal, (window_size_left, window_size_right), p_dropout)
    check_shapes(q.shape, grad_output=grad_output, attention_out=attention_out)
    queries, keys, values = _in_rows_each(q, k, v, input_layout, head_num)
    gen = _saved_generator(dropout_mask, p_dropout)
    sight = _sight_of_layout(queries, keys, alibi_slopes, attention_mask, is_causal, gen)
    lse = _saved_lse(softmax_max, softmax_sum, (queries.shape[0], head_num, queries.shape[1])).swapaxes(1, 2)
    g, result = (_in_rows(x, input_layout, head_num) for x in (grad_output, attention_out))
    grads = pull_back(g, queries, keys, values, result, lse, sight, rule)
    return [_in_layout(grad, input_layout, x.shape) for grad, x in zip(grads, (q, k, v), strict=True)]


def _sight_of_ends(
    q: Array,
    k: Array,
    ends: tuple[Sequence[int], Sequence[int]],
    slopes: Array | None,
    mask: Array | None,
    causal: bool,
    longest: tuple[int, int],
    gen: Array,
) -> Sight:
    """Of packed tensors: the corner of the mask that belongs to a sequence hides its keys."""
    begins = jnp.array((0, *ends[0])), jnp.array((0, *ends[1]))
    sight = _sight_of_packed(q, k, begins, slopes, gen, top_left=True)
    hidden = _hidden(mask, causal, *longest)
    if hidden is None:
        return sight
    places = (jnp.clip(rows.place[0], 0, most - 1) for rows, most in zip(sight[:2], longest, strict=True))
    return sight._replace(hidden=hidden[jnp.ix_(*places)][None])


@_draws("diopiCustomizedFlashAttentionVarLen")
def customized_flash_attention_var_len(
    gen: Array,
    q: Array,
    k: Array,
    v: Array,
    cum_seq_q: Sequence[int],
    cum_seq_kv: Sequence[int],
    alibi_slopes: Array | None,
    attention_mask: Array | None,
    max_seqlen_q: int,
    max_seqlen_kv: int,
    p_dropout: float,
    softmax_scale: float,
    is_causal: bool,
    window_size_left: int,
    window_size_right: int,
) -> Any:
    rule = _rule(softmax_scale, is_causal, (window_size_left, window_size_right), p_dropout)
    ends, longest = (cum_seq_q, cum_seq_kv), (max_seqlen_q, max_seqlen_kv)
    sight = _sight_of_ends(q, k, ends, alibi_slopes, attention_mask, is_causal, longest, gen)
    result, lse = attend(q[None], k[None], v[None], sight, rule)
    scores = len(cum_seq_q) * q.shape[1] * max_seqlen_q * max_seqlen_kv
    return result[0], *_own_records(gen, lse, q.shape[:2], scores, p_dropout)


@vendor.implements("diopiCustomizedFlashAttentionVarLenBackward")
def customized_flash_attention_var_len_backward(
    grad_output: Array,
    q: Array,
    k: Array,
    v: Array,
    cum_seq_q: Sequence[int],
    cum_seq_kv: Sequence[int],
    alibi_slopes: Array | None,
    attention_out: Array,
    attention_mask: Array | None,
    dropout_mask: Array | None,
    softmax_max: Array,
    softmax_sum: Array,
    softmax_out: Array,
    max_seqlen_q: int,
    max_seqlen_kv: int,
    p_dropout: float,
    softmax_scale: float,
    is_causal: bool,
    window_size_left: int,
    window_size_right: int,
) -> Any:
    rule = _rule(softmax_scale, is_causal, (window_size_left, window_size_right), p_dropout)
    ends, longest = (cum_seq_q, cum_seq_kv), (max_seqlen_q, max_seqlen_kv)
    gen = _saved_generator(dropout_mask, p_dropout)
    sight = _sight_of_ends(q, k, ends, alibi_slopes, attention_mask, is_causal, longest, gen)
    lse = _saved_lse(softmax_max, softmax_sum, q.shape[:2])[None]
    g, queries, keys, values, result = (x[None] for x in (grad_output, q, k, v, attention_out))
    return [x[0] for x in pull_back(g, queries, keys, values, result, lse, sight, rule)]
