"""Multi-head attention, of sequences of one length and packed: flash attention without ALiBi and window."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax.numpy as jnp
from jax import Array

from diopi_impl.functional import ResultSpec
from diopi_impl.generators import pass_generator_state
from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.attention import flash
from diopi_impl.jax_cpu.jit import compiled

Out = tuple[ResultSpec | None, ...]

NO_WINDOW = -1, -1

_implements_random = partial(
    vendor.implements, adapt=pass_generator_state(partial(compiled, traced=["gen"]), "gen", "dropout_p")
)


def _check_heads_equal(q: Array, k: Array) -> None:
    if q.shape[-2:] != k.shape[-2:]:
        raise ValueError(f"q has shape {q.shape} and k {k.shape}, expected as many heads of one size")


def _debug_mask(spec: ResultSpec | None, is_written: bool, *shape: int) -> Array | None:
    """That nothing fell, which nobody can tell from what did; as it is if it is not asked for."""
    if spec is None:
        return None
    return jnp.ones(shape if is_written else spec.shape, bool)


@_implements_random("diopiMultiHeadAttention")
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
    results = flash.flash_attention(gen, q, k, v, None, dropout_p, scale, is_causal, *NO_WINDOW)
    return *results, _debug_mask(out[2], return_debug_mask, q.shape[0], q.shape[2], q.shape[1], k.shape[1])


@_implements_random("diopiMultiHeadAttentionBackward")
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
    return flash.flash_attention_backward(
        grad_out, gen, q, k, v, None, out, softmax_lse, dropout_p, scale, is_causal, *NO_WINDOW
    )


@_implements_random("diopiMultiHeadAttentionVarLen")
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
    begins = cum_seq_q, cum_seq_k
    results = flash.flash_attention_var_len(
        gen, q, k, v, *begins, None, max_q, max_k, dropout_p, scale, is_causal, *NO_WINDOW
    )
    return *results, _debug_mask(out[2], return_debug_mask, len(cum_seq_q) - 1, q.shape[1], max_q, max_k)


@_implements_random("diopiMultiHeadAttentionVarLenBackward")
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
    begins, records = (cum_seq_q, cum_seq_k), (out, softmax_lse)
    return flash.flash_attention_var_len_backward(
        grad_out, gen, q, k, v, *begins, None, *records, max_q, max_k, dropout_p, scale, is_causal, *NO_WINDOW
    )
