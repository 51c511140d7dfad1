"""The customized form of flash attention: with a mask, in a layout that the caller selects; and its gradient.

A layout is a string of the axes: B for the batch, S for the rows of a sequence, N for the heads, D for the elements of
a head, and H for the elements of all heads.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import PartlySpecified, WithTerms, reference
from diopi_test.oracle.reference.attention.core import (
    AttentionResult,
    AttentionRule,
    Sequences,
    attend,
    attention_gradients,
)
from diopi_test.oracle.reference.attention.sequences import batch_sequences, checked_packed_sequences
from diopi_test.oracle.reference.attention.specified import make_unspecified, mark_random

Array = NDArray[Any]

COPIES = 8
"""The number of copies of each saved statistic, along a new last axis; the standard specifies it."""

TRIANGLE = 2048
"""The number of rows and columns of a mask that represents a causal mask of any larger size."""


def view_as_rows(x: Array, layout: str, heads: int) -> Array:
    """Return a view of x in layout BSND, BNSD, BSH or SBH as [sequences, rows, heads, head size]."""
    match layout:
        case "BSND":
            return x
        case "BNSD":
            return x.swapaxes(1, 2)
        case "BSH":
            return x.reshape(*x.shape[:2], heads, x.shape[2] // heads)
        case _:
            return x.reshape(*x.shape[:2], heads, x.shape[2] // heads).swapaxes(0, 1)


def _to_layout(result: Any, layout: str, shape: tuple[int, ...]) -> Any:
    """Return the result in the layout `layout` and the shape `shape`: the inverse of `view_as_rows`."""

    def arrange(x: Array) -> Array:
        """Return `x`, [sequences, rows, heads, head size], in the layout, with the shape `shape`."""
        x = x.swapaxes(1, 2) if layout == "BNSD" else x.swapaxes(0, 1) if layout == "SBH" else x
        return x.reshape(shape)

    if isinstance(result, PartlySpecified):
        return PartlySpecified(_to_layout(result.value, layout, shape), arrange(result.specified))
    return WithTerms(arrange(result.value), arrange(result.terms))


def _view_all_as_rows(q: Array, k: Array, v: Array, layout: str, heads: int) -> tuple[Array, Array, Array]:
    """Return views of q, k and v as [sequences, rows, heads, head size]; raise ValueError if q has other heads."""
    if len(layout) == 4 and q.shape[layout.index("N")] != heads:
        raise ValueError(f"head_num is {heads}, but q has shape {q.shape} in layout {layout}")
    size = q.shape[-1] // heads if len(layout) == 3 else q.shape[-1]
    key_heads = k.shape[-1] // size if len(layout) == 3 else 0
    return view_as_rows(q, layout, heads), view_as_rows(k, layout, key_heads), view_as_rows(v, layout, key_heads)


def _masked_rule(rule: AttentionRule, mask: Array | None, queries: int, keys: int) -> AttentionRule:
    """Return the rule with a mask of hidden keys, and with the first query at the position of the first key.

    A mask of size `TRIANGLE` for longer causal sequences is ignored, because `rule.causal` describes it.

    Args:
        rule: the rule without a mask.
        mask: the mask, true for hidden keys, [queries, keys] or [sequences, 1, queries, keys]; None for no mask.
        queries: the number of queries of a sequence.
        keys: the number of keys of a sequence.
    """
    if mask is None or (rule.causal and mask.shape[-2:] == (TRIANGLE,) * 2 and min(queries, keys) > TRIANGLE):
        return replace(rule, top_left=True)
    hidden = mask if mask.ndim == 2 else mask[:, 0]
    return replace(rule, hidden=hidden[0] if hidden.ndim == 3 and len(hidden) == 1 else hidden, top_left=True)


def _saved_records(
    results: AttentionResult, sequences: Sequences, q: Array, scores: int, rule: AttentionRule
) -> list[Any]:
    """Return the results that are saved for the gradient: dropout mask, maxima, sums, and an empty array.

    Only their shapes are specified. The maxima and sums of the softmax are [sequences, heads, rows, copies] for
    sequences of equal length, and [rows, heads, copies] for packed sequences.

    Args:
        results: the results of attention.
        sequences: the rows of each sequence.
        q: the queries.
        scores: the number of scores, which determines the size of the dropout mask: one bit per score, padded.
        rule: the rule, with the probability of dropout.
    """
    maxima, sums = results.top, np.where(np.isposinf(results.lse.value), 0, np.exp(results.lse.value - results.top))
    if q.ndim == 3:
        parts = [(number, len(q[query_rows])) for number, (query_rows, _) in enumerate(sequences)]
        maxima, sums = (np.concatenate([x[n, :, :rows].T for n, rows in parts]) for x in (maxima, sums))
    saved = [np.repeat(x[..., None], COPIES, -1) for x in (maxima, sums)]
    bits = -(-scores // 128) * 16 if rule.dropout else 0
    return [make_unspecified(x) for x in (np.zeros(bits, np.int64), *saved, np.zeros(0))]


@reference("diopiCustomizedFlashAttention")
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
    """Return attention in the layout of the inputs, and the records saved for the gradient."""
    rows = _view_all_as_rows(q, k, v, input_layout, head_num)
    batch, queries, heads, _ = rows[0].shape
    rule = AttentionRule(
        scale=softmax_scale,
        causal=is_causal,
        window=(window_size_left, window_size_right),
        slopes=alibi_slopes,
        hidden=None,
        top_left=True,
        dropout=p_dropout,
        seed=gen,
    )
    rule = _masked_rule(rule, attention_mask, queries, rows[1].shape[1])
    sequences = batch_sequences(rows[0])
    results = attend(*rows, sequences, rule, queries)
    saved = _saved_records(results, sequences, rows[0], batch * heads * queries * rows[1].shape[1], rule)
    return mark_random(rule, _to_layout(results.out, input_layout, q.shape)), *saved


@reference("diopiCustomizedFlashAttentionBackward")
def customized_flash_attention_backward(
    grad_output,
    q,
    k,
    v,
    alibi_slopes,
    attention_out,
    attention_mask,
    softmax_scale,
    is_causal,
    window_size_left,
    window_size_right,
    head_num,
    input_layout,
):
    """Return the gradients of q, k and v in the layout of the inputs."""
    rows = _view_all_as_rows(q, k, v, input_layout, head_num)
    queries, keys = rows[0].shape[1], rows[1].shape[1]
    rule = AttentionRule(
        scale=softmax_scale, causal=is_causal, window=(window_size_left, window_size_right), slopes=alibi_slopes
    )
    rule = _masked_rule(rule, attention_mask, queries, keys)
    sequences = batch_sequences(rows[0])
    lse = attend(*rows, sequences, rule, queries).lse.value
    g, out = (view_as_rows(x, input_layout, head_num) for x in (grad_output, attention_out))
    grads = attention_gradients(g, *rows, out, lse, sequences, rule)
    return tuple(_to_layout(grad, input_layout, x.shape) for grad, x in zip(grads, (q, k, v), strict=True))


@reference("diopiCustomizedFlashAttentionVarLen")
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
    """Return attention for packed sequences, and the records saved for the gradient."""
    rule = AttentionRule(
        scale=softmax_scale,
        causal=is_causal,
        window=(window_size_left, window_size_right),
        slopes=alibi_slopes,
        hidden=None,
        top_left=True,
        dropout=p_dropout,
        seed=gen,
    )
    rule = _masked_rule(rule, attention_mask, max_seqlen_q, max_seqlen_kv)
    sequences = checked_packed_sequences((0, *cum_seq_q), (0, *cum_seq_kv), q, k)
    results = attend(q, k, v, sequences, rule, len(q))
    scores = len(sequences) * q.shape[1] * max_seqlen_q * max_seqlen_kv
    return mark_random(rule, results.out), *_saved_records(results, sequences, q, scores, rule)


@reference("diopiCustomizedFlashAttentionVarLenBackward")
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
    max_seqlen_q,
    max_seqlen_kv,
    softmax_scale,
    is_causal,
    window_size_left,
    window_size_right,
):
    """Return the gradients of q, k and v for packed sequences."""
    rule = AttentionRule(
        scale=softmax_scale, causal=is_causal, window=(window_size_left, window_size_right), slopes=alibi_slopes
    )
    rule = _masked_rule(rule, attention_mask, max_seqlen_q, max_seqlen_kv)
    sequences = checked_packed_sequences((0, *cum_seq_q), (0, *cum_seq_kv), q, k)
    lse = attend(q, k, v, sequences, rule, len(q)).lse.value
    return attention_gradients(grad_output, q, k, v, attention_out, lse, sequences, rule)
