"""Flash attention for sequences of equal length and for packed sequences, and its gradient.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.

Source: T. Dao, "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning", 2023.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from diopi_test.oracle.reference import reference
from diopi_test.oracle.reference.attention.core import AttentionRule, Sequences, attend, attention_gradients
from diopi_test.oracle.reference.attention.sequences import batch_sequences, checked_packed_sequences
from diopi_test.oracle.reference.attention.specified import mark_random, mark_random_gradients, specified_lse

Array = NDArray[Any]


@reference("diopiFlashAttention")
def flash_attention(
    gen, q, k, v, alibi_slopes, p_dropout, softmax_scale, is_causal, window_size_left, window_size_right
):
    """Return attention for sequences of equal length, and the logarithms of the softmax divisors."""
    window = window_size_left, window_size_right
    rule = AttentionRule(
        scale=softmax_scale, causal=is_causal, window=window, slopes=alibi_slopes, dropout=p_dropout, seed=gen
    )
    return _attention_and_lse(q, k, v, batch_sequences(q), rule, q.shape[1])


def _attention_and_lse(
    q: Array, k: Array, v: Array, sequences: Sequences, rule: AttentionRule, rows: int
) -> tuple[Any, Any]:
    """Return attention, marked random if weights are dropped, and the logarithms of the softmax divisors."""
    result = attend(q, k, v, sequences, rule, rows)
    return mark_random(rule, result.out), specified_lse(result.lse, q, sequences, rule)


@reference("diopiFlashAttentionBackward")
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
    window = window_size_left, window_size_right
    rule = AttentionRule(
        scale=softmax_scale, causal=is_causal, window=window, slopes=alibi_slopes, dropout=p_dropout, seed=gen
    )
    grads = attention_gradients(grad_output, q, k, v, attention_out, softmax_lse, batch_sequences(q), rule)
    return mark_random_gradients(rule, grads)


@reference("diopiFlashAttentionVarLen")
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
    """Return attention for packed sequences, and the logarithms of the softmax divisors."""
    window = window_size_left, window_size_right
    rule = AttentionRule(
        scale=softmax_scale, causal=is_causal, window=window, slopes=alibi_slopes, dropout=p_dropout, seed=gen
    )
    return _attention_and_lse(q, k, v, checked_packed_sequences(cum_seq_q, cum_seq_kv, q, k), rule, max_seqlen_q)


@reference("diopiFlashAttentionVarLenBackward")
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
    p_dropout,
    softmax_scale,
    is_causal,
    window_size_left,
    window_size_right,
):
    """Return the gradients of q, k and v for packed sequences."""
    window = window_size_left, window_size_right
    rule = AttentionRule(
        scale=softmax_scale, causal=is_causal, window=window, slopes=alibi_slopes, dropout=p_dropout, seed=gen
    )
    sequences = checked_packed_sequences(cum_seq_q, cum_seq_kv, q, k)
    return mark_random_gradients(
        rule, attention_gradients(grad_output, q, k, v, attention_out, softmax_lse, sequences, rule)
    )
