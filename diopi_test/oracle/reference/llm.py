"""Kernels of language model serving: token caches, decoding, prefill, penalties, and matrix product with all-reduce.

A token cache stores the keys and values of earlier tokens in *slots*. Prefill computes attention for all tokens of a
prompt, and decoding for one new token per sequence.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.

Source: W. Kwon et al., "Efficient Memory Management for Large Language Model Serving with PagedAttention", 2023, for
the tables of blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import PartlySpecified, WithTerms, reference
from diopi_test.oracle.reference.attention.core import AttentionRule, attend
from diopi_test.oracle.reference.attention.sequences import batch_sequences, packed_sequences
from diopi_test.oracle.reference.products import add_rounded, sum_products
from diopi_test.oracle.reference.sums import relative_terms

Array = NDArray[Any]


@reference("diopiDestIndexCopyKV")
def dest_index_copy_kv(out, k, dest_loc):
    """Return the cache with the tokens `k` written to the slots `dest_loc`."""
    copied = out.copy()
    copied[dest_loc] = k
    return copied


# A table of token slots, right-aligned


def _locate_tokens(
    b_loc: Array, b_start_loc: Array, b_seq_len: Array, max_input_len: int
) -> Iterator[tuple[slice, Array]]:
    """Yield, for each sequence, its slice of the packed data and the slots of its tokens in the cache.

    Args:
        b_loc: A table of slots with a row per sequence, in which the slots of a sequence are aligned to the right.
        b_start_loc: The start of each sequence in the packed data.
        b_seq_len: The number of tokens of each sequence.
        max_input_len: The number of columns of the table that are used.

    Yields:
        The slice and the slots.
    """
    for slots, start, length in zip(b_loc, b_start_loc, b_seq_len, strict=True):
        yield slice(start, start + length), slots[max_input_len - length : max_input_len]


@reference("diopiTokenAttentionInference")
def token_attention_inference(token_attention_out, q, k, b_loc, b_start_loc, b_seq_len, max_input_len):
    """Return q · k / √d for the new token of each sequence and all cached tokens of the sequence, per head."""
    scores, terms = token_attention_out.copy(), np.zeros(token_attention_out.shape)
    scale = 1 / np.sqrt(q.shape[-1])
    for number, (columns, slots) in enumerate(_locate_tokens(b_loc, b_start_loc, b_seq_len, max_input_len)):
        products = sum_products(lambda queries, keys: np.einsum("hd,thd->ht", queries, keys), q[number], k[slots])
        scores[:, columns], terms[:, columns] = scale * products.value, scale * products.terms
    return WithTerms(scores, terms, signed=True)


@reference("diopiTokenSoftmaxReduceVInference")
def token_softmax_reduce_v_inference(logics, v, b_loc, b_start_loc, b_seq_len, max_input_len):
    """Return the sum of the cached values, weighted with the softmax of the scores of each sequence."""
    values, terms = (np.zeros_like(v, shape=(len(b_loc), *v.shape[1:])) for _ in range(2))
    for number, (columns, slots) in enumerate(_locate_tokens(b_loc, b_start_loc, b_seq_len, max_input_len)):
        shifted = logics[:, columns] - logics[:, columns].max(1, keepdims=True)
        e = np.exp(shifted)
        sums = sum_products(
            lambda weights, vectors: np.einsum("ht,thd->hd", weights, vectors), e / e.sum(1, keepdims=True), v[slots]
        )
        values[number] = sums.value
        # the terms of the sum and of the divisor, and the rounding error of the difference from the maximum
        rounding = np.abs(shifted[..., None] * v[slots].swapaxes(0, 1)).max(1)
        terms[number] = sums.terms + np.abs(sums.value) * relative_terms(e, 1) + np.exp(-1) * rounding
    return WithTerms(values, terms)


@reference("diopiContextAttentionInference")
def context_attention_inference(context_attention_out, q, k, v, b_start_loc, b_seq_len):
    """Return causal attention of packed prompts; rows outside all sequences are unchanged."""
    rows = [slice(start, start + length) for start, length in zip(b_start_loc, b_seq_len, strict=True)]
    if any(span.start < 0 or span.stop > len(q) for span in rows):
        raise ValueError(f"the rows of the sequences are {rows}, expected slices of {len(q)} rows")
    rule = AttentionRule(scale=1 / np.sqrt(q.shape[-1]), causal=True)
    attended = attend(q, k, v, [(span, span) for span in rows], rule, len(q)).out
    is_covered = np.zeros((len(q), 1, 1), bool)
    for span in rows:
        is_covered[span] = True
    return WithTerms(np.where(is_covered, attended.value, context_attention_out), attended.terms)


# Blocks and padding


def _split_heads(x: Array, heads: int, dim: int) -> Array:
    """Return x as [rows, heads, dim]; raise ValueError if the last axis has neither size dim nor heads · dim."""
    if x.shape[-1] not in (dim, heads * dim):
        raise ValueError(f"rows of shape {x.shape} are not {heads} heads of {dim} numbers")
    return x.reshape(x.size // (heads * dim), heads, dim)


@reference("diopiPagedAttention")
def paged_attention(q, k, v, attenMask, actual_seq_lengths, num_heads, num_kv_heads, dim, block_table, block_size):
    """Return attention of one new token per sequence to its cached tokens.

    With `block_table`, the cache consists of blocks of `block_size` tokens, and each row of the table lists the blocks
    of a sequence.
    """
    queries, keys, values = _split_heads(q, num_heads, dim), *(_split_heads(x, num_kv_heads, dim) for x in (k, v))
    places = [np.arange(length) for length in actual_seq_lengths]
    slots = places
    if block_table is not None:
        blocks = zip(block_table, places, strict=True)
        slots = [table[place // block_size] * block_size + place % block_size for table, place in blocks]
    hidden = None
    if attenMask is not None:
        hidden = np.broadcast_to(attenMask, (len(q), attenMask.shape[-1]))[:, None]
    ends = np.cumsum([0, *actual_seq_lengths])
    all_slots = np.concatenate(slots)
    rule = AttentionRule(scale=1 / np.sqrt(dim), hidden=hidden)
    attended = attend(
        queries, keys[all_slots], values[all_slots], packed_sequences(np.arange(len(q) + 1), ends), rule, 1
    ).out
    return WithTerms(attended.value.reshape(q.shape), attended.terms.reshape(q.shape))


@reference("diopiPromptFlashAttention")
def prompt_flash_attention(
    query, key, value, atten_mask, actual_seq_lengths, max_input_len, num_heads, num_kv_heads, dim
):
    """Return causal attention of padded prompts; padding rows are unspecified."""
    length = max_input_len
    batch = query.size // (length * num_heads * dim)
    q, k, v = (
        x.reshape(batch, length, heads, dim)
        for x, heads in ((query, num_heads), (key, num_kv_heads), (value, num_kv_heads))
    )
    is_present = np.arange(length) < np.reshape(actual_seq_lengths or [length] * batch, (batch, 1))
    hidden = np.broadcast_to(~is_present[:, None], (batch, length, length))
    if atten_mask is not None:
        hidden = hidden | atten_mask.reshape(-1, length, length)
    attended = attend(
        q, k, v, batch_sequences(q), AttentionRule(scale=1 / np.sqrt(dim), causal=True, hidden=hidden), length
    ).out
    result = WithTerms(attended.value.reshape(query.shape), attended.terms.reshape(query.shape))
    return PartlySpecified(result, np.broadcast_to(is_present.reshape(*query.shape[:-1], 1), query.shape))


# Penalties


@reference("diopiApplyPenalty")
def apply_penalty(logits, presence_penalty, frequency_penalty, p_token_ids, p_token_counts, p_cumsum_seq_len):
    """Return the logits; the penalties of a sequence are subtracted at the tokens that it already contains.

    The penalty of a token is its count times the frequency penalty, plus the presence penalty.
    """
    rows = np.repeat(np.arange(len(logits)), np.diff(p_cumsum_seq_len))
    frequency_penalties = p_token_counts * frequency_penalty[rows]
    return _subtract_penalties(
        logits, (rows, p_token_ids), logits[rows, p_token_ids], frequency_penalties, presence_penalty[rows]
    )


@reference("diopiApplyPenaltyV2")
def apply_penalty_v2(logits, presence_penalty, frequency_penalty, repetition_penalty, p_token_ids, p_token_counts):
    """Return the logits with the repetition, frequency and presence penalties applied in this order.

    `p_token_ids` are the flat positions in the logits. The repetition penalty divides positive logits and multiplies
    others; the remaining penalties are subtracted as in `apply_penalty`.
    """
    places = np.unravel_index(p_token_ids, logits.shape)
    x = logits[places]
    repeated = np.where(x > 0, x / repetition_penalty, x * repetition_penalty)
    return _subtract_penalties(logits, places, repeated, p_token_counts * frequency_penalty, presence_penalty)


def _subtract_penalties(
    logits: Array, places: tuple[Array, ...], x: Array, frequency_penalties: Array, presence_penalties: Array
) -> WithTerms:
    """Return the logits with x − frequency_penalties − presence_penalties at `places`, with terms."""
    values, terms = logits.copy(), np.zeros(logits.shape)
    values[places] = x - frequency_penalties - presence_penalties
    terms[places] = np.abs(x) + np.abs(frequency_penalties) + np.abs(presence_penalties)
    return WithTerms(values, terms, signed=True)


@reference("diopiMatmulAllReduce")
def matmul_all_reduce(x1, x2, bias):
    """Return x1 x2 + bias, which is the result on a single device, where the all-reduce adds nothing."""
    product = sum_products(np.matmul, x1, x2)
    return product if bias is None else add_rounded(product, bias)
