"""The customized form of flash attention, with a mask and a choice of layouts, and its gradient.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.attention.core import Visibility, attend, attend_backward
from diopi_impl.jax_cpu.attention.sequences import attention_parameters, batched_visibility, packed_visibility
from diopi_impl.jax_cpu.registration import implements_flash
from diopi_impl.jax_cpu.sizes import check_rank, check_shapes

Shape = tuple[int, ...]
"""The shape of a tensor."""

STATISTIC_COPIES = 8
"""The number of copies of each saved statistic."""

COMPRESSED_MASK_SIZE = 2048
"""The size of the causal mask that stands for any larger causal mask."""

LAYOUTS = ("BSND", "BNSD", "BSH", "SBH")
"""The orders of axes: batch (B), rows of a sequence (S), heads (N), head size (D), and heads times head size (H)."""


def _to_bsnd(x: Array, layout: str, heads: int) -> Array:
    """Return a tensor in layout BSND, [batch, rows, heads, head size]; raise ValueError if its shape does not fit."""
    if layout not in LAYOUTS:
        raise ValueError(f"input_layout is {layout!r}, expected one of {LAYOUTS}")
    check_rank(len(layout), **{f"a tensor in layout {layout}": x})
    if len(layout) == 3:
        if heads < 1 or x.shape[-1] % heads:
            raise ValueError(f"a tensor has shape {x.shape}, whose last axis does not consist of {heads} heads")
        x = x.reshape(*x.shape[:2], heads, x.shape[2] // heads)
    return x.swapaxes(1, 2) if layout == "BNSD" else x.swapaxes(0, 1) if layout == "SBH" else x


def _from_bsnd(x: Array, layout: str, shape: Sequence[int]) -> Array:
    """Return a tensor in `layout` and `shape`: the inverse of `_to_bsnd`."""
    x = x.swapaxes(1, 2) if layout == "BNSD" else x.swapaxes(0, 1) if layout == "SBH" else x
    return x.reshape(shape)


def _inputs_to_bsnd(q: Array, k: Array, v: Array, layout: str, heads: int) -> tuple[Array, Array, Array]:
    """Return q, k and v in layout BSND; raise ValueError if `heads` differs from the heads of q."""
    queries = _to_bsnd(q, layout, heads)
    if queries.shape[2] != heads:
        raise ValueError(f"head_num is {heads}, but q has shape {q.shape} in layout {layout}")
    key_heads = k.shape[-1] // max(queries.shape[-1], 1)
    return queries, _to_bsnd(k, layout, key_heads), _to_bsnd(v, layout, key_heads)


def _effective_mask(
    mask: Array | None, causal: bool, pairs: Shape, leading_axes: Sequence[Shape] = ((),)
) -> Array | None:
    """Return the mask; None if there is none, or if it is the compressed causal mask.

    Args:
        mask: the mask that the caller passed.
        causal: whether the call is causal, which requires a mask.
        pairs: the numbers of queries and keys.
        leading_axes: the permitted shapes of the axes before queries and keys.

    Returns:
        The mask or None.

    Raises:
        ValueError: if the mask is missing or has the wrong shape.
    """
    if mask is None:
        if causal:
            raise ValueError("attention_mask is NULL, expected the causal triangle where is_causal is set")
        return None
    if causal and mask.shape[-2:] == (COMPRESSED_MASK_SIZE,) * 2 and min(pairs) > COMPRESSED_MASK_SIZE:
        return None
    shapes = [(*leading, *pairs) for leading in leading_axes]
    if mask.shape not in shapes:
        raise ValueError(f"attention_mask has shape {mask.shape}, expected {' or '.join(map(str, shapes))}")
    return mask


def _saved_statistics(
    gen: Array, lse: Array, statistics: Sequence[int], scores: int, dropout_p: float
) -> tuple[Any, ...]:
    """Return the results that are saved for the gradient.

    Args:
        gen: the generator's state.
        lse: the logsumexp of the scores.
        statistics: the shape of the saved statistics, without the copies.
        scores: the number of scores, which determines the size of the mask.
        dropout_p: the probability of dropout.

    Returns:
        The generator's state in place of the dropout mask (None without dropout), the logsumexp in place of the maxima,
        and ones in place of the sums. The last result is an empty array.
    """
    maxima = jnp.broadcast_to(lse.reshape(*statistics, 1), (*statistics, STATISTIC_COPIES)).astype(jnp.float32)
    mask = None
    if dropout_p:
        mask = (
            jnp.zeros(-(-scores // 128) * 16, jnp.uint8).at[:16].set(lax.bitcast_convert_type(gen, jnp.uint8).ravel())
        )
    return mask, maxima, jnp.ones_like(maxima), jnp.zeros(0, jnp.float32)


def _saved_generator(dropout_mask: Array | None, dropout_p: float) -> Array:
    """Return the generator's state that the forward call saved; zeros without dropout.

    Raises:
        ValueError: The call has dropout but no mask.
    """
    if not dropout_p:
        return jnp.zeros(2, jnp.uint64)
    if dropout_mask is None:
        raise ValueError("dropout_mask is NULL, expected the mask of the forward call where p_dropout is not 0")
    return lax.bitcast_convert_type(dropout_mask[:16].reshape(2, 8), jnp.uint64)


def _saved_lse(softmax_max: Array, softmax_sum: Array, statistics: Sequence[int]) -> Array:
    """Return the logsumexp for the saved maxima and sums; ∞ where the sum is 0."""
    check_shapes((*statistics, STATISTIC_COPIES), softmax_max=softmax_max, softmax_sum=softmax_sum)
    return jnp.where(softmax_sum > 0, softmax_max + jnp.log(softmax_sum), jnp.inf)[..., 0]


def _batched_visibility(
    q: Array, k: Array, slopes: Array | None, mask: Array | None, causal: bool, gen: Array
) -> Visibility:
    """Return the visibility of keys for tensors [batch, rows, heads, head size].

    Args:
        q: The queries.
        k: The keys.
        slopes: The slopes of ALiBi, or None.
        mask: The mask of hidden pairs, or None.
        causal: Whether the call is causal, which requires a mask.
        gen: The state of the generator of dropout.
    """
    visibility = batched_visibility(q, k, slopes, gen, top_left=True)
    hidden = _effective_mask(mask, causal, (q.shape[1], k.shape[1]), ((), (1, 1), (q.shape[0], 1)))
    if hidden is None:
        return visibility
    return visibility._replace(hidden=hidden[None] if hidden.ndim == 2 else hidden[:, 0])


@implements_flash("diopiCustomizedFlashAttention")
def customized_flash_attention(
    gen,
    q,
    k,
    v,
    alibi_slopes,
    attention_mask,
    p_dropout,
    softmax_scale,
    is_causal,
    window_size_left,
    window_size_right,
    head_num,
    input_layout,
):
    """Return attention in the layout of the inputs, and the statistics saved for the gradient."""
    parameters = attention_parameters(softmax_scale, is_causal, (window_size_left, window_size_right), p_dropout)
    queries, keys, values = _inputs_to_bsnd(q, k, v, input_layout, head_num)
    visibility = _batched_visibility(queries, keys, alibi_slopes, attention_mask, is_causal, gen)
    result, lse = attend(queries, keys, values, visibility, parameters)
    lse = lse.swapaxes(1, 2)
    statistics = _saved_statistics(gen, lse, lse.shape, lse.size * keys.shape[1], p_dropout)
    return _from_bsnd(result, input_layout, q.shape), *statistics


@vendor.implements("diopiCustomizedFlashAttentionBackward")
def customized_flash_attention_backward(
    grad_output,
    q,
    k,
    v,
    alibi_slopes,
    attention_out,
    attention_mask,
    dropout_mask,
    softmax_max,
    softmax_sum,
    p_dropout,
    softmax_scale,
    is_causal,
    window_size_left,
    window_size_right,
    head_num,
    input_layout,
):
    """Return the gradients of q, k and v in the layout of the inputs."""
    parameters = attention_parameters(softmax_scale, is_causal, (window_size_left, window_size_right), p_dropout)
    check_shapes(q.shape, grad_output=grad_output, attention_out=attention_out)
    queries, keys, values = _inputs_to_bsnd(q, k, v, input_layout, head_num)
    gen = _saved_generator(dropout_mask, p_dropout)
    visibility = _batched_visibility(queries, keys, alibi_slopes, attention_mask, is_causal, gen)
    lse = _saved_lse(softmax_max, softmax_sum, (queries.shape[0], head_num, queries.shape[1])).swapaxes(1, 2)
    g, result = (_to_bsnd(x, input_layout, head_num) for x in (grad_output, attention_out))
    grads = attend_backward(g, queries, keys, values, result, lse, visibility, parameters)
    return [_from_bsnd(grad, input_layout, x.shape) for grad, x in zip(grads, (q, k, v), strict=True)]


def _packed_visibility(
    q: Array,
    k: Array,
    ends: tuple[Sequence[int], Sequence[int]],
    slopes: Array | None,
    mask: Array | None,
    causal: bool,
    longest: tuple[int, int],
    gen: Array,
) -> Visibility:
    """Return the visibility of keys for packed tensors; each sequence uses the top left corner of the mask.

    Args:
        q: The queries.
        k: The keys.
        ends: For queries and keys, the row after the last one of each sequence.
        slopes: The slopes of ALiBi, or None.
        mask: The mask of hidden pairs, or None.
        causal: Whether the call is causal, which requires a mask.
        longest: The numbers of queries and keys of the longest sequence.
        gen: The state of the generator of dropout.
    """
    begins = jnp.array((0, *ends[0])), jnp.array((0, *ends[1]))
    visibility = packed_visibility(q, k, begins, slopes, gen, top_left=True)
    hidden = _effective_mask(mask, causal, longest)
    if hidden is None:
        return visibility
    positions = (jnp.clip(rows.position[0], 0, size - 1) for rows, size in zip(visibility[:2], longest, strict=True))
    return visibility._replace(hidden=hidden[jnp.ix_(*positions)][None])


@implements_flash("diopiCustomizedFlashAttentionVarLen")
def customized_flash_attention_var_len(
    gen,
    q,
    k,
    v,
    cum_seq_q,
    cum_seq_kv,
    alibi_slopes,
    attention_mask,
    max_seqlen_q,
    max_seqlen_kv,
    p_dropout,
    softmax_scale,
    is_causal,
    window_size_left,
    window_size_right,
):
    """Return attention for packed sequences, and the statistics saved for the gradient."""
    parameters = attention_parameters(softmax_scale, is_causal, (window_size_left, window_size_right), p_dropout)
    ends, longest = (cum_seq_q, cum_seq_kv), (max_seqlen_q, max_seqlen_kv)
    visibility = _packed_visibility(q, k, ends, alibi_slopes, attention_mask, is_causal, longest, gen)
    result, lse = attend(q[None], k[None], v[None], visibility, parameters)
    scores = len(cum_seq_q) * q.shape[1] * max_seqlen_q * max_seqlen_kv
    return result[0], *_saved_statistics(gen, lse, q.shape[:2], scores, p_dropout)


@vendor.implements("diopiCustomizedFlashAttentionVarLenBackward")
def customized_flash_attention_var_len_backward(
    grad_output,
    q,
    k,
    v,
    cum_seq_q,
    cum_seq_kv,
    alibi_slopes,
    attention_out,
    attention_mask,
    dropout_mask,
    softmax_max,
    softmax_sum,
    max_seqlen_q,
    max_seqlen_kv,
    p_dropout,
    softmax_scale,
    is_causal,
    window_size_left,
    window_size_right,
):
    """Return the gradients of q, k and v for packed sequences."""
    parameters = attention_parameters(softmax_scale, is_causal, (window_size_left, window_size_right), p_dropout)
    ends, longest = (cum_seq_q, cum_seq_kv), (max_seqlen_q, max_seqlen_kv)
    gen = _saved_generator(dropout_mask, p_dropout)
    visibility = _packed_visibility(q, k, ends, alibi_slopes, attention_mask, is_causal, longest, gen)
    lse = _saved_lse(softmax_max, softmax_sum, q.shape[:2])[None]
    g, queries, keys, values, result = (x[None] for x in (grad_output, q, k, v, attention_out))
    return [x[0] for x in attend_backward(g, queries, keys, values, result, lse, visibility, parameters)]
