"""Flash attention and its gradients, for batches of sequences of equal length and for packed sequences.

The functions implement the prototypes of the same names, which document the arguments, their shapes and the formula.
`gen` is the random generator of dropout. The core (`attend`) computes in the layout [batch, rows, heads, head size],
and returns lse, the log-sum-exp of the scores, as [batch, rows, heads]. The prototypes have softmax_lse as
[batch, heads, rows], so the functions swap its last two axes. Packed sequences are one batch entry of the core.
"""

from __future__ import annotations

from diopi_impl.jax_cpu.attention.core import attend, attend_backward
from diopi_impl.jax_cpu.attention.sequences import (
    attention_parameters,
    batched_visibility,
    pack_rows,
    packed_visibility,
    unpack_rows,
)
from diopi_impl.jax_cpu.registration import implements_flash
from diopi_impl.jax_cpu.sizes import check_shapes


@implements_flash("diopiFlashAttention")
def flash_attention(
    gen, q, k, v, alibi_slopes, p_dropout, softmax_scale, is_causal, window_size_left, window_size_right
):
    """Return attention and the log-sum-exp of the scores, for sequences of equal length."""
    parameters = attention_parameters(softmax_scale, is_causal, (window_size_left, window_size_right), p_dropout)
    out, lse = attend(q, k, v, batched_visibility(q, k, alibi_slopes, gen), parameters)
    return out, lse.swapaxes(1, 2)


@implements_flash("diopiFlashAttentionBackward")
def flash_attention_backward(
    grad_output,
    gen,
    q,
    k,
    v,
    alibi_slopes,
    attention_out,
    softmax_lse,
    p_dropout,
    softmax_scale,
    is_causal,
    window_size_left,
    window_size_right,
):
    """Return the gradients of q, k and v for sequences of equal length."""
    parameters = attention_parameters(softmax_scale, is_causal, (window_size_left, window_size_right), p_dropout)
    visibility = batched_visibility(q, k, alibi_slopes, gen)
    batch, rows, heads = q.shape[:3]
    check_shapes((batch, heads, rows), softmax_lse=softmax_lse)
    return attend_backward(grad_output, q, k, v, attention_out, softmax_lse.swapaxes(1, 2), visibility, parameters)


@implements_flash("diopiFlashAttentionVarLen")
def flash_attention_var_len(
    gen,
    q,
    k,
    v,
    cum_seq_q,
    cum_seq_kv,
    alibi_slopes,
    max_seqlen_q,
    p_dropout,
    softmax_scale,
    is_causal,
    window_size_left,
    window_size_right,
):
    """Return attention and the log-sum-exp of the scores, for packed sequences."""
    parameters = attention_parameters(softmax_scale, is_causal, (window_size_left, window_size_right), p_dropout)
    visibility = packed_visibility(q, k, (cum_seq_q, cum_seq_kv), alibi_slopes, gen)
    out, lse = attend(q[None], k[None], v[None], visibility, parameters)
    return out[0], unpack_rows(lse, cum_seq_q, max_seqlen_q)


@implements_flash("diopiFlashAttentionVarLenBackward")
def flash_attention_var_len_backward(
    grad_output,
    gen,
    q,
    k,
    v,
    cum_seq_q,
    cum_seq_kv,
    alibi_slopes,
    attention_out,
    softmax_lse,
    max_seqlen_q,
    p_dropout,
    softmax_scale,
    is_causal,
    window_size_left,
    window_size_right,
):
    """Return the gradients of q, k and v for packed sequences."""
    parameters = attention_parameters(softmax_scale, is_causal, (window_size_left, window_size_right), p_dropout)
    visibility = packed_visibility(q, k, (cum_seq_q, cum_seq_kv), alibi_slopes, gen)
    check_shapes((len(cum_seq_q) - 1, q.shape[1], max_seqlen_q), softmax_lse=softmax_lse)
    lse = pack_rows(softmax_lse, cum_seq_q, len(q))
    g, queries, keys, values, out = (x[None] for x in (grad_output, q, k, v, attention_out))
    return [x[0] for x in attend_backward(g, queries, keys, values, out, lse, visibility, parameters)]
