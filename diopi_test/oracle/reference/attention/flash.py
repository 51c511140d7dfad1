"""Flash attention, of sequences of one length and packed, and its gradient."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from diopi_test.oracle.reference import reference
from diopi_test.oracle.reference.attention.core import Rule, Sequences, attended, pulled_back
from diopi_test.oracle.reference.attention.sequences import all_packed, of_one_length
from diopi_test.oracle.reference.attention.specified import drawn, drawn_gradients, specified_lse

Array = NDArray[Any]


@reference("diopiFlashAttention")
def flash_attention(
    gen: int | None,
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
    window = window_size_left, window_size_right
    rule = Rule(softmax_scale, is_causal, window, alibi_slopes, dropped=p_dropout, seed=gen)
    return _forward(q, k, v, of_one_length(q), rule, q.shape[1])


def _forward(q: Array, k: Array, v: Array, sequences: Sequences, rule: Rule, rows: int) -> tuple[Any, Any]:
    result = attended(q, k, v, sequences, rule, rows)
    return drawn(rule, result.out), specified_lse(result.lse, q, sequences, rule)


@reference("diopiFlashAttentionBackward")
def flash_attention_backward(
    grad_output: Array,
    gen: int | None,
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
    window = window_size_left, window_size_right
    rule = Rule(softmax_scale, is_causal, window, alibi_slopes, dropped=p_dropout, seed=gen)
    grads = pulled_back(grad_output, q, k, v, attention_out, softmax_lse, of_one_length(q), rule)
    return drawn_gradients(rule, grads)


@reference("diopiFlashAttentionVarLen")
def flash_attention_var_len(
    gen: int | None,
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
    window = window_size_left, window_size_right
    rule = Rule(softmax_scale, is_causal, window, alibi_slopes, dropped=p_dropout, seed=gen)
    return _forward(q, k, v, all_packed(cum_seq_q, cum_seq_kv, q, k), rule, max_seqlen_q)


@reference("diopiFlashAttentionVarLenBackward")
def flash_attention_var_len_backward(
    grad_output: Array,
    gen: int | None,
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
    window = window_size_left, window_size_right
    rule = Rule(softmax_scale, is_causal, window, alibi_slopes, dropped=p_dropout, seed=gen)
    sequences = all_packed(cum_seq_q, cum_seq_kv, q, k)
    return drawn_gradients(rule, pulled_back(grad_output, q, k, v, attention_out, softmax_lse, sequences, rule))
