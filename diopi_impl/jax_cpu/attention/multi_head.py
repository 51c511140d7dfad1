"""Multi-head attention of batched and of packed sequences: flash attention without ALiBi and window.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results. `out` describes results that the caller allocates: their shapes and element
types.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from diopi_impl.jax_cpu.attention import flash
from diopi_impl.jax_cpu.registration import implements_multi_head
from diopi_impl.specs import ResultSpec

Out = tuple[ResultSpec | None, ...]
"""The shapes and element types of all results; None for a result that the caller omits."""

NO_WINDOW = -1, -1
"""The sizes of a window, to the left and to the right, with which each query sees all keys."""


def _check_heads_equal(q: Array, k: Array) -> None:
    """Raise ValueError unless q and k have the same number and size of heads."""
    if q.shape[-2:] != k.shape[-2:]:
        raise ValueError(f"q has shape {q.shape} and k {k.shape}, expected equal numbers and sizes of heads")


def _debug_mask(spec: ResultSpec | None, is_written: bool, *shape: int) -> Array | None:
    """Return the debug mask, or None if the caller omits it. The standard does not specify its values: all are true.

    Args:
        spec: the specification of the result.
        is_written: whether the caller asked for the mask; if not, the result may have any shape.
        *shape: the shape of the mask.
    """
    if spec is None:
        return None
    return jnp.ones(shape if is_written else spec.shape, bool)


@implements_multi_head("diopiMultiHeadAttention")
def multi_head_attention(q, k, v, dropout_p, is_causal, return_debug_mask, scale, gen, *, out):
    """Return attention, the log-sum-exp of the scores, and the debug mask (`_debug_mask`)."""
    _check_heads_equal(q, k)
    results = flash.flash_attention(gen, q, k, v, None, dropout_p, scale, is_causal, *NO_WINDOW)
    return *results, _debug_mask(out[2], return_debug_mask, q.shape[0], q.shape[2], q.shape[1], k.shape[1])


@implements_multi_head("diopiMultiHeadAttentionBackward")
def multi_head_attention_backward(grad_out, q, k, v, out, softmax_lse, dropout_p, is_causal, gen, scale):
    """Return the gradients of q, k and v."""
    _check_heads_equal(q, k)
    return flash.flash_attention_backward(
        grad_out, gen, q, k, v, None, out, softmax_lse, dropout_p, scale, is_causal, *NO_WINDOW
    )


@implements_multi_head("diopiMultiHeadAttentionVarLen")
def multi_head_attention_var_len(
    q, k, v, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, is_causal, return_debug_mask, scale, gen, *, out
):
    """Return attention for packed sequences, the log-sum-exp of the scores, and the debug mask (`_debug_mask`)."""
    _check_heads_equal(q, k)
    begins = cum_seq_q, cum_seq_k
    results = flash.flash_attention_var_len(gen, q, k, v, *begins, None, max_q, dropout_p, scale, is_causal, *NO_WINDOW)
    return *results, _debug_mask(out[2], return_debug_mask, len(cum_seq_q) - 1, q.shape[1], max_q, max_k)


@implements_multi_head("diopiMultiHeadAttentionVarLenBackward")
def multi_head_attention_var_len_backward(
    grad_out, q, k, v, out, softmax_lse, cum_seq_q, cum_seq_k, max_q, dropout_p, is_causal, gen, scale
):
    """Return the gradients of q, k and v for packed sequences."""
    _check_heads_equal(q, k)
    begins, records = (cum_seq_q, cum_seq_k), (out, softmax_lse)
    return flash.flash_attention_var_len_backward(
        grad_out, gen, q, k, v, *begins, None, *records, max_q, dropout_p, scale, is_causal, *NO_WINDOW
    )
