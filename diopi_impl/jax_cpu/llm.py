"""Kernels for serving language models: token caches, decoding, prefill, penalties, and an all-reduce of one process.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from jax import Array

from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.attention.core import AttentionParameters, Rows, Visibility, attend
from diopi_impl.jax_cpu.attention.sequences import batched_rows
from diopi_impl.jax_cpu.sizes import check_shapes


@vendor.implements("diopiDestIndexCopyKV")
def dest_index_copy_kv(out, k, dest_loc):
    """Return a copy of the cache `out` with row k[t] in row dest_loc[t]."""
    check_shapes((*dest_loc.shape, *out.shape[1:]), k=k)
    return out.at[dest_loc].set(k)


# Token caches with a table of slots


def _token_slots(b_loc: Array, b_start_loc: Array, b_seq_len: Array, max_input_len: int) -> tuple[Array, Array, Array]:
    """Return where the tokens of each sequence are.

    In packed data, the tokens of all sequences are in one axis; sequence b occupies b_seq_len[b] positions, from
    b_start_loc[b] on. In the first `max_input_len` columns of `b_loc`, row b is right-aligned: it ends with the slots
    (rows of the cache) of sequence b.

    Returns:
        Whether token t exists, its slot, and its position in packed data. All three are [sequences, max_input_len]. The
        slots and positions of tokens that do not exist have no meaning.

    Raises:
        ValueError: if the shapes do not match.
    """
    if b_loc.ndim != 2 or not 0 <= max_input_len <= b_loc.shape[1]:
        raise ValueError(f"b_loc has shape {b_loc.shape}, expected 2 axes, the last of {max_input_len} slots or more")
    check_shapes(b_loc.shape[:1], b_start_loc=b_start_loc, b_seq_len=b_seq_len)
    token = jnp.arange(max_input_len)
    columns = jnp.clip(max_input_len - b_seq_len[:, None] + token, 0, max(max_input_len - 1, 0))
    return token < b_seq_len[:, None], jnp.take_along_axis(b_loc, columns, 1), b_start_loc[:, None] + token


@vendor.implements("diopiTokenAttentionInference")
def token_attention_inference(token_attention_out, q, k, b_loc, b_start_loc, b_seq_len, max_input_len):
    """Return a copy of `token_attention_out` [heads, packed tokens] with the scores q · k / √d of each sequence.

    The query of a sequence is that of its new token, and the keys are those of all its cached tokens. Columns outside
    all sequences are unchanged. Softmax is not applied.
    """
    check_shapes((*k.shape[:1], *q.shape[1:]), k=k)
    check_shapes((b_loc.shape[0], *q.shape[1:]), q=q)
    is_token, slots, places = _token_slots(b_loc, b_start_loc, b_seq_len, max_input_len)
    scores = jnp.einsum("bhd,bthd->hbt", q, k[slots]) / math.sqrt(q.shape[-1])
    columns = jnp.where(is_token, places, token_attention_out.shape[1])
    return token_attention_out.at[:, columns].set(scores, mode="drop")


@vendor.implements("diopiTokenSoftmaxReduceVInference")
def token_softmax_reduce_v_inference(logics, v, b_loc, b_start_loc, b_seq_len, max_input_len):
    """Return the sum of a sequence's cached values, weighted by softmax(logics): [sequences, heads, head size]."""
    check_shapes((*v.shape[:1], logics.shape[0], *v.shape[2:]), v=v)
    is_token, slots, places = _token_slots(b_loc, b_start_loc, b_seq_len, max_input_len)
    scores = jnp.where(is_token, jnp.take(logics, places, axis=1, mode="fill", fill_value=0), -jnp.inf)
    values = jnp.where(is_token[..., None, None], v[slots], 0)
    return jnp.einsum("hbt,bthd->bhd", jax.nn.softmax(scores, -1), values)


@vendor.implements("diopiContextAttentionInference")
def context_attention_inference(context_attention_out, q, k, v, b_start_loc, b_seq_len):
    """Return a copy of `context_attention_out` with the causal attention in the rows of each sequence."""
    check_shapes(context_attention_out.shape, q=q, k=k, v=v)
    check_shapes(b_start_loc.shape, b_seq_len=b_seq_len)
    row = jnp.arange(len(q))
    inside = (row >= b_start_loc[:, None]) & (row < (b_start_loc + b_seq_len)[:, None])
    is_covered = inside.any(0)
    sequence = jnp.where(is_covered, jnp.argmax(inside, 0) if len(b_seq_len) else 0, -1)
    places = row - jnp.take(b_start_loc, sequence, mode="clip") if len(b_seq_len) else row
    rows = Rows(sequence[None], places[None])
    parameters = AttentionParameters(scale=1 / math.sqrt(q.shape[-1]), window_right=0)
    out, _ = attend(q[None], k[None], v[None], Visibility(rows, rows), parameters)
    return jnp.where(is_covered[:, None, None], out[0], context_attention_out)


# Blocks and padding


def _check_rows(batch: int, length: int, width: int, **tensors: Array) -> None:
    """Raise ValueError unless all tensors are [batch · length, width] or [batch, length, width]."""
    flat, batched = (batch * length, width), (batch, length, width)
    for name, tensor in tensors.items():
        if tensor.shape not in (flat, batched):
            raise ValueError(f"{name} has shape {tensor.shape}, expected {flat} or {batched}")


def _check_heads(num_heads: int, num_kv_heads: int, dim: int) -> None:
    """Raise ValueError unless all arguments are positive and the query heads are a multiple of the key heads."""
    if min(num_heads, num_kv_heads, dim) < 1 or num_heads % num_kv_heads:
        raise ValueError(f"{num_heads} query heads of size {dim} can't share {num_kv_heads} key heads")


@vendor.implements("diopiPagedAttention")
def paged_attention(q, k, v, attenMask, actual_seq_lengths, num_heads, num_kv_heads, dim, block_table, block_size):
    """Return attention of one query per sequence to the tokens in a cache of blocks.

    Without `block_table`, token t of each sequence is in slot t. `attenMask` is TRUE for tokens that a query does not
    see.
    """
    _check_heads(num_heads, num_kv_heads, dim)
    batch, longest = len(actual_seq_lengths), max(actual_seq_lengths, default=0)
    if min(actual_seq_lengths, default=1) < 1 or block_size < 1:
        raise ValueError(f"actual_seq_lengths are {actual_seq_lengths}, block_size is {block_size}, expected 1 or more")
    _check_rows(batch, 1, num_heads * dim, q=q)
    check_shapes((*k.shape[:-1], num_kv_heads * dim), k=k, v=v)
    cached = k.size // (num_kv_heads * dim)
    if block_table is None and cached < longest:
        raise ValueError(f"k has {cached} slots, expected {longest} or more where block_table is NULL")
    slots = _slots(block_table, longest, block_size, batch)
    keys, values = (x.reshape(cached, num_kv_heads, dim)[slots] for x in (k, v))
    token, lengths = jnp.tile(jnp.arange(longest), (batch, 1)), jnp.array(actual_seq_lengths, int)
    key_rows = Rows(jnp.where(token < lengths[:, None], 0, -1), token)
    query_rows = Rows(jnp.zeros((batch, 1), int), jnp.zeros((batch, 1), int))
    visibility = Visibility(query_rows, key_rows, hidden=_hidden_tokens(attenMask, batch, longest))
    out, _ = attend(
        q.reshape(batch, 1, num_heads, dim), keys, values, visibility, AttentionParameters(scale=1 / math.sqrt(dim))
    )
    return out.reshape(q.shape)


def _slots(block_table: Array | None, longest: int, block_size: int, batch: int) -> Array:
    """Return the slots of the tokens of each sequence, [batch, longest].

    Entries after the end of a sequence have no meaning. Without a table, token t is in slot t.

    Raises:
        ValueError: if the table has another number of sequences or too few blocks.
    """
    token = jnp.arange(longest)
    if block_table is None:
        return jnp.tile(token, (batch, 1))
    if block_table.ndim != 2 or block_table.shape[0] != batch or block_table.shape[1] * block_size < longest:
        raise ValueError(f"block_table has shape {block_table.shape}, expected {batch} rows of {longest} tokens")
    slots: Array = block_table[:, token // block_size] * block_size + token % block_size
    return slots


def _hidden_tokens(mask: Array | None, batch: int, longest: int) -> Array | None:
    """Return the mask as [1 or sequences, 1, tokens], or None without a mask; raise ValueError for other shapes."""
    if mask is None:
        return None
    if mask.shape not in ((1, longest), (batch, longest)):
        raise ValueError(f"attenMask has shape {mask.shape}, expected {(1, longest)} or {(batch, longest)}")
    return mask[:, None]


@vendor.implements("diopiPromptFlashAttention")
def prompt_flash_attention(
    query, key, value, atten_mask, actual_seq_lengths, max_input_len, num_heads, num_kv_heads, dim
):
    """Return causal attention of prompts that are padded to `max_input_len` rows; padding rows are 0.

    Without `actual_seq_lengths`, no prompt has padding. `atten_mask` is TRUE for keys that a query does not see; it
    hides them in addition to the later keys. The tensors have separate axes for prompts and rows, or one for both.
    """
    _check_heads(num_heads, num_kv_heads, dim)
    length = max_input_len
    if length < 1 or not all(0 <= seq_length <= length for seq_length in actual_seq_lengths):
        raise ValueError(f"actual_seq_lengths are {actual_seq_lengths}, expected numbers from 0 to {length}")
    lengths = actual_seq_lengths or [length] * (query.size // (length * num_heads * dim))
    batch = len(lengths)
    _check_rows(batch, length, num_heads * dim, query=query)
    _check_rows(batch, length, num_kv_heads * dim, key=key, value=value)
    q, k, v = (
        x.reshape(batch, length, heads, dim)
        for x, heads in ((query, num_heads), (key, num_kv_heads), (value, num_kv_heads))
    )
    queries, keys = batched_rows(q, k)
    is_token = keys.position < jnp.array(lengths, int)[:, None]
    keys = keys._replace(sequence=jnp.where(is_token, keys.sequence, -1))
    visibility = Visibility(queries, keys, hidden=_hidden_pairs(atten_mask, batch, length))
    out, _ = attend(q, k, v, visibility, AttentionParameters(scale=1 / math.sqrt(dim), window_right=0))
    return jnp.where(is_token[..., None, None], out, 0).reshape(query.shape)


def _hidden_pairs(mask: Array | None, batch: int, length: int) -> Array | None:
    """Return the mask as [1 or sequences, queries, keys], or None without a mask; raise ValueError for other shapes."""
    if mask is None:
        return None
    pairs = length, length
    if mask.shape not in (pairs, (batch, *pairs), (batch, 1, *pairs)):
        raise ValueError(f"atten_mask has shape {mask.shape}, expected {pairs}, with {batch} before it or without")
    return mask.reshape(mask.size // length**2, *pairs)


# Penalties


@vendor.implements("diopiApplyPenalty")
def apply_penalty(logits, presence_penalty, frequency_penalty, p_token_ids, p_token_counts, p_cumsum_seq_len):
    """Return logits [sequences, vocabulary], minus a penalty for each token that a sequence already contains.

    Sequence b contains the tokens p_token_ids[e] with the counts p_token_counts[e], for e from p_cumsum_seq_len[b] up
    to p_cumsum_seq_len[b + 1]. The penalty is count · frequency_penalty[b] + presence_penalty[b].
    """
    check_shapes(logits.shape[:1], presence_penalty=presence_penalty, frequency_penalty=frequency_penalty)
    check_shapes(p_token_ids.shape, p_token_counts=p_token_counts)
    check_shapes((logits.shape[0] + 1,), p_cumsum_seq_len=p_cumsum_seq_len)
    entry = jnp.arange(p_token_ids.shape[0])
    row = jnp.searchsorted(p_cumsum_seq_len, entry, side="right") - 1
    penalty = p_token_counts.astype(logits.dtype) * frequency_penalty[row] + presence_penalty[row]
    return logits.at[row, p_token_ids].add(-penalty)


@vendor.implements("diopiApplyPenaltyV2")
def apply_penalty_v2(logits, presence_penalty, frequency_penalty, repetition_penalty, p_token_ids, p_token_counts):
    """Return logits with the repetition, frequency and presence penalties applied in this order.

    All other arguments have one entry per penalized logit; `p_token_ids` contains positions in the flattened logits.
    """
    check_shapes(
        presence_penalty.shape,
        frequency_penalty=frequency_penalty,
        repetition_penalty=repetition_penalty,
        p_token_ids=p_token_ids,
        p_token_counts=p_token_counts,
    )
    flat = logits.ravel()
    x = flat[p_token_ids]
    repeated = jnp.where(x > 0, x / repetition_penalty, x * repetition_penalty)
    penalized = repeated - p_token_counts.astype(x.dtype) * frequency_penalty - presence_penalty
    return flat.at[p_token_ids].set(penalized).reshape(logits.shape)


@vendor.implements("diopiMatmulAllReduce")
def matmul_all_reduce(x1, x2, bias, reduce_op):
    """Return x1 @ x2 + bias, the result in a group of one rank; nothing is communicated."""
    if reduce_op != "sum":
        raise ValueError(f"reduce_op is {reduce_op!r}, expected 'sum'")
    if x2.ndim != 2 or x1.ndim not in (2, 3) or x1.shape[-1] != x2.shape[0]:
        raise ValueError(f"x1 has shape {x1.shape} and x2 {x2.shape}, expected [M, K] or [B, M, K], and [K, N]")
    check_shapes(x2.shape[1:], bias=bias)
    product = jnp.matmul(x1, x2)
    return product if bias is None else product + bias
