"""Multi-head attention for batches and for packed sequences: flash attention without ALiBi and window.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.cases.case import ResultOverride
from diopi_test.oracle.reference import reference
from diopi_test.oracle.reference.attention.flash import (
    flash_attention,
    flash_attention_backward,
    flash_attention_var_len,
    flash_attention_var_len_backward,
)
from diopi_test.oracle.reference.attention.specified import make_unspecified

Array = NDArray[Any]

NO_WINDOW = -1, -1
"""The sizes of a window, to the left and to the right, with which each query sees all keys."""


def _debug_mask(is_written: bool, dropped: float, override: ResultOverride | None, *shape: int) -> Any:
    """Return the dropout mask as a result: ones, or unspecified if dropout is random or the mask is not requested.

    Args:
        is_written: whether the call requests the mask.
        dropped: the probability that a weight is dropped.
        override: the properties of the tensor that the caller provides for the mask.
        *shape: the shape of a requested mask.
    """
    if is_written and not dropped:
        return np.ones(shape, bool)
    chosen = override.shape if override and override.shape is not None else None
    return make_unspecified(np.ones(shape if is_written or chosen is None else chosen, bool))


@reference("diopiMultiHeadAttention")
def multi_head_attention(q, k, v, dropout_p, is_causal, return_debug_mask, scale, gen, *, out):
    """Return attention, the logarithms of the softmax divisors, and the dropout mask."""
    results = flash_attention(gen, q, k, v, None, dropout_p, scale, is_causal, *NO_WINDOW)
    shape = q.shape[0], q.shape[2], q.shape[1], k.shape[1]
    return *results, _debug_mask(return_debug_mask, dropout_p, out[2], *shape)


@reference("diopiMultiHeadAttentionBackward")
def multi_head_attention_backward(grad_out, q, k, v, out, softmax_lse, dropout_p, is_causal, gen, scale):
    """Return the gradients of q, k and v."""
    return flash_attention_backward(
        grad_out, gen, q, k, v, None, out, softmax_lse, dropout_p, scale, is_causal, *NO_WINDOW
    )


@reference("diopiMultiHeadAttentionVarLen")
def multi_head_attention_var_len(
    q, k, v, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, is_causal, return_debug_mask, scale, gen, *, out
):
    """Return attention for packed sequences, the logarithms of the divisors, and the dropout mask."""
    begins = cum_seq_q, cum_seq_k
    results = flash_attention_var_len(gen, q, k, v, *begins, None, max_q, dropout_p, scale, is_causal, *NO_WINDOW)
    return *results, _debug_mask(return_debug_mask, dropout_p, out[2], len(cum_seq_q) - 1, q.shape[1], max_q, max_k)


@reference("diopiMultiHeadAttentionVarLenBackward")
def multi_head_attention_var_len_backward(
    grad_out, q, k, v, out, softmax_lse, cum_seq_q, cum_seq_k, dropout_p, is_causal, gen, scale
):
    """Return the gradients of q, k and v for packed sequences."""
    begins, records = (cum_seq_q, cum_seq_k), (out, softmax_lse)
    return flash_attention_var_len_backward(
        grad_out, gen, q, k, v, *begins, None, *records, dropout_p, scale, is_causal, *NO_WINDOW
    )
