"""The attention kernels of the LMDeploy engine, which compute the scores of a few queries at a time.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax

from diopi_impl.jax_cpu.lmdeploy.argument_checks import check_number
from diopi_impl.jax_cpu.registration import implements_workspace_free, implements_workspace_free_step
from diopi_impl.jax_cpu.sizes import check_shapes

QUERIES_PER_STEP = 64
"""The number of queries of a sequence whose scores are in memory at a time."""


def _project_inputs(
    x: Array, weight: Array, bias: Array | None, cache: Array, queries: int, max_seq_len: int
) -> tuple[Array, Array, Array]:
    """Return the queries, keys and values of the rows of x, each of shape [rows, heads, size].

    Args:
        x: the rows, [rows, query heads · size].
        weight: the weights, [query heads · size, (query heads + 2 · key heads) · size].
        bias: the bias, [1, (query heads + 2 · key heads) · size], or None.
        cache: the key cache, [layers, batch, key heads, slots, size], which determines the number of key heads and the
            size.
        queries: the number of query heads, a multiple of the number of key heads.
        max_seq_len: the number of slots, which is checked.

    Raises:
        ValueError: a number or a shape does not fit.
    """
    keys, slots, size = cache.shape[2:]
    check_number("max_seq_len", max_seq_len, slots)
    if queries % keys:
        raise ValueError(f"local_head_num is {queries}, expected a multiple of local_kv_head_num, {keys}")
    check_shapes((x.shape[0], queries * size), inoutput=x)
    check_shapes((queries * size, (queries + 2 * keys) * size), qkv_weight=weight)
    check_shapes((1, (queries + 2 * keys) * size), qkv_bias=bias)
    product = x @ weight + (0 if bias is None else bias)
    q, k, v = jnp.split(product.reshape(x.shape[0], -1, size), [queries, queries + keys], 1)
    return q, k, v


def _check_cache(keys: Array, values: Array, layer: int, batch: int, heads: int, size: int) -> None:
    """Raise ValueError unless both caches are [layers, batch, heads, slots, size] and the layer exists."""
    check_shapes(keys.shape, value_cache=values)
    check_shapes((keys.shape[0], batch, heads, keys.shape[3], size), key_cache=keys)
    if not 0 <= layer < keys.shape[0]:
        raise ValueError(f"layer_id is {layer}, expected 0 to {keys.shape[0] - 1}")


def _rotate(x: Array, positions: Array, width: int, theta: float) -> Array:
    """Return x [rows, heads, size] with the columns below `width` rotated in pairs.

    The angle of pair i, of columns 2i and 2i + 1, is position / theta^(2i / width).

    Raises:
        ValueError: if `width` is odd or larger than the size.
    """
    if width % 2 or not 0 <= width <= x.shape[-1]:
        raise ValueError(f"rotary_embedding is {width}, expected an even number up to {x.shape[-1]}")
    turns = theta ** (jnp.arange(0, width, 2, dtype=jnp.float64) / max(width, 1))
    angles = (positions[:, None] / turns)[:, None]
    cos, sin = jnp.cos(angles).astype(x.dtype), jnp.sin(angles).astype(x.dtype)
    a, b = x[..., 0:width:2], x[..., 1:width:2]
    pairs = jnp.stack([a * cos - b * sin, a * sin + b * cos], -1).reshape(*x.shape[:-1], width)
    return jnp.concatenate([pairs, x[..., width:]], -1)


def _attend(q: Array, k: Array, v: Array, visible: Array) -> Array:
    """Return the attention of queries to the visible keys, [queries, heads · size].

    Args:
        q: the queries, [queries, heads, size].
        k: the keys, [keys, key heads, size]; each key head serves heads / key heads query heads.
        v: the values, with the shape of the keys.
        visible: a mask that broadcasts to [queries, keys].
    """
    grouped = q.reshape(q.shape[0], k.shape[1], -1, q.shape[-1])
    scores = jnp.einsum("ikgd,jkd->kgij", grouped, k) / jnp.sqrt(jnp.float32(q.shape[-1]))
    scores = jnp.where(visible, scores, -jnp.inf)
    e = jnp.exp(scores - jnp.max(scores, -1, keepdims=True))
    p = e / (jnp.sum(e, -1, keepdims=True) + jnp.float32(1e-6))
    return jnp.einsum("kgij,jkd->ikgd", p, v).reshape(q.shape[0], -1)


@implements_workspace_free("diopiFusedContextAttentionInp")
def fused_context_attention(
    inoutput,
    qkv_weight,
    qkv_bias,
    key_cache,
    value_cache,
    layer_id,
    local_head_num,
    local_kv_head_num,
    size_per_head,
    max_seq_len,
    max_q_len,
    max_kv_len,
    rotary_embedding,
    rope_theta,
):
    """Return the attention of all tokens of the prompts, and the key and value caches with these tokens.

    `inoutput` has max_q_len rows per sequence. Projection and rotary embedding come first. Each token attends to the
    tokens up to its own position, including the max_kv_len - max_q_len tokens that the caches have already.
    """
    history = max_kv_len - max_q_len
    if not 0 <= history <= max_kv_len <= max_seq_len or max_q_len < 1 or inoutput.shape[0] % max_q_len:
        sizes = f"max_q_len {max_q_len}, max_kv_len {max_kv_len}, max_seq_len {max_seq_len}, {inoutput.shape[0]} rows"
        raise ValueError(f"{sizes}: expected whole sequences that fit in the cache")
    batch = inoutput.shape[0] // max_q_len
    _check_cache(key_cache, value_cache, layer_id, batch, local_kv_head_num, size_per_head)
    q, k, v = _project_inputs(inoutput, qkv_weight, qkv_bias, key_cache, local_head_num, max_seq_len)
    positions = jnp.tile(history + jnp.arange(max_q_len), batch)
    q, k = (_rotate(x, positions, rotary_embedding, rope_theta) for x in (q, k))
    q, k, v = (x.reshape(batch, max_q_len, *x.shape[1:]) for x in (q, k, v))
    new = slice(history, max_kv_len)
    keys = key_cache.at[layer_id, :, :, new].set(jnp.swapaxes(k, 1, 2))
    values = value_cache.at[layer_id, :, :, new].set(jnp.swapaxes(v, 1, 2))
    seen_keys, seen_values = (jnp.swapaxes(cache[layer_id, :, :, :max_kv_len], 1, 2) for cache in (keys, values))
    attended = _attend_causally(q, seen_keys, seen_values, positions[:max_q_len])
    return attended.reshape(inoutput.shape), keys, values


def _attend_causally(q: Array, keys: Array, values: Array, positions: Array) -> Array:
    """Return the attention of each query, [batch, queries, …], to the keys and values up to its position."""
    slots = jnp.arange(keys.shape[1])

    def attend_sequence(q: Array, keys: Array, values: Array) -> Array:
        """Return the attention of the queries of a sequence."""

        def attend_query(q: Array, time: Array) -> Array:
            """Return the attention of a query to the slots up to its time."""
            return _attend(q[None], keys, values, slots <= time)[0]

        return lax.map(lambda query: attend_query(*query), (q, positions), batch_size=QUERIES_PER_STEP)

    return lax.map(lambda sequence: attend_sequence(*sequence), (q, keys, values))


@implements_workspace_free_step("diopiFusedDecoderAttentionInp")
def fused_decoder_attention(
    inoutput,
    qkv_weight,
    qkv_bias,
    key_cache,
    value_cache,
    finished,
    total_padding_tokens,
    sequence_lengths,
    step,
    layer_id,
    local_head_num,
    local_kv_head_num,
    size_per_head,
    max_seq_len,
    rotary_embedding,
    rope_theta,
):
    """Return the attention of one new token per sequence, and the key and value caches with these tokens.

    The caches of finished sequences do not change.
    """
    batch = inoutput.shape[0]
    _check_cache(key_cache, value_cache, layer_id, batch, local_kv_head_num, size_per_head)
    check_shapes(
        (batch,), finished=finished, total_padding_tokens=total_padding_tokens, sequence_lengths=sequence_lengths
    )
    q, k, v = _project_inputs(inoutput, qkv_weight, qkv_bias, key_cache, local_head_num, max_seq_len)
    positions = step - 1 - (jnp.zeros(batch, jnp.int64) if total_padding_tokens is None else total_padding_tokens)
    q, k = (_rotate(x, positions, rotary_embedding, rope_theta) for x in (q, k))
    slots, sequences = sequence_lengths % max_seq_len, jnp.arange(batch)
    if finished is not None:
        slots = jnp.where(finished, max_seq_len, slots)  # writes to an index out of range are dropped
    keys = key_cache.at[layer_id, sequences, :, slots].set(k, mode="drop")
    values = value_cache.at[layer_id, sequences, :, slots].set(v, mode="drop")
    visible_keys, visible_values = (jnp.swapaxes(cache[layer_id], 1, 2) for cache in (keys, values))
    attended = jax.vmap(_attend_filled_slots)(q, visible_keys, visible_values, sequence_lengths)
    return attended.reshape(inoutput.shape), keys, values


def _attend_filled_slots(q: Array, keys: Array, values: Array, length: Array) -> Array:
    """Return the attention of the new token of a sequence to its filled slots."""
    slots = keys.shape[0]
    is_filled = (jnp.arange(slots) <= length) | (length + 1 >= slots)
    keys, values = (jnp.where(is_filled[:, None, None], x, 0) for x in (keys, values))
    return _attend(q[None], keys, values, is_filled)[0]
