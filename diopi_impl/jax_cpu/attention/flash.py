"""Flash attention, of sequences of one length and packed, and its gradient."""

from __future__ import annotations

from functools import partial
from typing import Any

from jax import Array

from diopi_impl.drawing import drawing
from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.attention.core import attend, pull_back
from diopi_impl.jax_cpu.attention.sequences import packed_again, rule_of, sight_of_one_length, sight_of_packed, unpacked
from diopi_impl.jax_cpu.jit import compiled
from diopi_impl.jax_cpu.sizes import check_shapes

draws = partial(vendor.implements, adapt=drawing(partial(compiled, traced=["gen"]), "gen", "p_dropout"))


@draws("diopiFlashAttention")
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
    rule = rule_of(softmax_scale, is_causal, (window_size_left, window_size_right), p_dropout)
    out, lse = attend(q, k, v, sight_of_one_length(q, k, alibi_slopes, gen), rule)
    return out, lse.swapaxes(1, 2)


@draws("diopiFlashAttentionBackward")
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
    rule = rule_of(softmax_scale, is_causal, (window_size_left, window_size_right), p_dropout)
    sight = sight_of_one_length(q, k, alibi_slopes, gen)
    check_shapes((q.shape[0], q.shape[2], q.shape[1]), softmax_lse=softmax_lse)
    return pull_back(grad_output, q, k, v, attention_out, softmax_lse.swapaxes(1, 2), sight, rule)


@draws("diopiFlashAttentionVarLen")
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
    rule = rule_of(softmax_scale, is_causal, (window_size_left, window_size_right), p_dropout)
    sight = sight_of_packed(q, k, (cum_seq_q, cum_seq_kv), alibi_slopes, gen)
    out, lse = attend(q[None], k[None], v[None], sight, rule)
    return out[0], unpacked(lse, cum_seq_q, max_seqlen_q)


@draws("diopiFlashAttentionVarLenBackward")
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
    rule = rule_of(softmax_scale, is_causal, (window_size_left, window_size_right), p_dropout)
    sight = sight_of_packed(q, k, (cum_seq_q, cum_seq_kv), alibi_slopes, gen)
    check_shapes((len(cum_seq_q) - 1, q.shape[1], max_seqlen_q), softmax_lse=softmax_lse)
    lse = packed_again(softmax_lse, cum_seq_q, len(q))
    g, queries, keys, values, out = (x[None] for x in (grad_output, q, k, v, attention_out))
    return [x[0] for x in pull_back(g, queries, keys, values, out, lse, sight, rule)]
