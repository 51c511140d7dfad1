"""The attention kernels of the LMDeploy engine: prefill, and decoding of one token per sequence.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.

Source: LMDeploy's fused attention kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import Exact, PartlySpecified, WithTerms, reference
from diopi_test.oracle.reference.lmdeploy.sizes import workspace_size_after
from diopi_test.oracle.reference.products import sum_products
from diopi_test.oracle.reference.sums import accumulation_terms

Array = NDArray[Any]


@final
@dataclass(frozen=True)
class Vectors:
    """Vectors for each token and head, with their terms.

    Attributes:
        value: the vectors, [tokens, heads, size].
        terms: the terms of each element, in the same shape.
    """

    value: Array
    terms: Array

    def select(self, tokens: Any) -> Vectors:
        """Return the vectors of some tokens."""
        return Vectors(self.value[tokens], self.terms[tokens])


def _project(x: Array, weight: Array, bias: Array | None, heads: Sequence[int], size: int) -> list[Vectors]:
    """Return the queries, keys and values of tokens: the columns of x weight + bias.

    Args:
        x: the tokens, [tokens, hidden size].
        weight: the weight, [hidden size, columns].
        bias: the bias of each column; None for no bias.
        heads: the numbers of heads of queries, keys and values.
        size: the head size.
    """
    product = sum_products(np.matmul, x, weight)
    projected = product.value + (0 if bias is None else bias.reshape(-1))
    ends = np.cumsum(heads)[:-1] * size
    pairs = zip(np.split(projected, ends, 1), np.split(product.terms, ends, 1), strict=True)
    return [Vectors(*(array.reshape(len(x), -1, size) for array in pair)) for pair in pairs]


def _rotate(x: Vectors, positions: Array, width: int, theta: float) -> Vectors:
    """Return x after rotary embedding: elements 2i and 2i + 1 are rotated by the angle position / theta^(2i / width).

    The terms include the rounding error of the angle.

    Args:
        x: the vectors.
        positions: the position of each token.
        width: the number of elements of a head that are rotated; the remaining elements are unchanged.
        theta: the base of the angles.
    """
    origin = np.zeros_like(x.value[:1, :1, :1])  # an array of the class of the vectors
    angles = origin + (positions[:, np.newaxis] / theta ** (np.arange(0, width, 2) / width))[:, np.newaxis]
    a, b = x.value[..., 0:width:2], x.value[..., 1:width:2]
    value, terms = x.value.copy(), x.terms.copy()
    value[..., 0:width:2] = a * np.cos(angles) - b * np.sin(angles)
    value[..., 1:width:2] = a * np.sin(angles) + b * np.cos(angles)
    rotation_terms = np.hypot(x.terms[..., 0:width:2], x.terms[..., 1:width:2]) + np.hypot(a, b) * (1 + np.abs(angles))
    terms[..., 0:width:2] = terms[..., 1:width:2] = rotation_terms
    return Vectors(value, terms)


def _update_cache(cache: Array, layer: int, sequences: Array, slots: Array, new: Vectors) -> WithTerms:
    """Return a cache after one new token of each of some sequences is stored.

    Args:
        cache: the cache, [layers, batch, heads, slots, size].
        layer: the number of the layer.
        sequences: the numbers of the sequences in the batch.
        slots: the slot of each of these sequences in which its token is stored.
        new: the keys or values of the tokens.
    """
    value, terms, is_unchanged = cache.copy(), np.zeros(cache.shape), np.ones(cache.shape, bool)
    value[layer, sequences, :, slots] = new.value
    terms[layer, sequences, :, slots] = new.terms
    is_unchanged[layer, sequences, :, slots] = False
    return WithTerms(value, terms, exact=is_unchanged)


def _read_cache(cache: WithTerms, layer: int, sequence: int, slots: Array) -> Vectors:
    """Return the vectors of a sequence that the cache has in these slots, in the given order."""
    return Vectors(*(np.swapaxes(array[layer, sequence][:, slots], 0, 1) for array in (cache.value, cache.terms)))


def _attend(q: Vectors, k: Vectors, v: Vectors, visible: Array) -> Vectors:
    """Return the attention of queries: the mean of the values, weighted with the softmax of the scores.

    As in LMDeploy, −10000 is added to the scores of invisible keys, and 1e-6 to the divisor of the softmax. Consecutive
    query heads share a key head.

    Args:
        q: the queries.
        k: the keys.
        v: the values.
        visible: a mask of the keys that each query sees, [queries, keys].
    """
    groups = q.value.shape[1] // k.value.shape[1]
    k, v = (Vectors(np.repeat(x.value, groups, 1), np.repeat(x.terms, groups, 1)) for x in (k, v))
    scale = 1 / np.sqrt(q.value.shape[2])
    scores = scale * _dot(q.value, k.value) + np.where(visible, 0, -10000)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    p = e / (e.sum(-1, keepdims=True) + 1e-6)
    return Vectors(_mean(p, v.value), _mean_terms(p, scale**2 * _squared_terms(q, k), v))


def _dot(q: Array, k: Array) -> Array:
    """Return the dot product of each query and each key, [heads, queries, keys]."""
    return np.einsum("ihd,jhd->hij", q, k)


def _mean(p: Array, v: Array) -> Array:
    """Return Σ p · v over the keys: [queries, heads, size]."""
    return np.einsum("hij,jhd->ihd", p, v)


def _squared_terms(q: Vectors, k: Vectors) -> Array:
    """Return the squares of the terms of the dot products of queries and keys, [heads, queries, keys]."""
    q2, k2 = q.value**2, k.value**2
    return _dot(q.terms**2, k2) + _dot(q2, k.terms**2) + _dot(q2, k2)


def _mean_terms(p: Array, scores: Array, v: Vectors) -> Array:
    """Return the terms of weighted means of values: those of the sums, of the scores and of the values together.

    Args:
        p: the weights, [heads, queries, keys].
        scores: the squares of the terms of the scores.
        v: the values.
    """
    sum_errors = accumulation_terms(p.shape[-1], _mean(p, np.abs(v.value)), _mean(p**2, v.value**2), _mean(p, v.value))
    mean, moved = _mean(p, v.value), p**2 * scores
    total = np.swapaxes(moved.sum(-1), 0, 1)[..., np.newaxis]
    by_scores = _mean(moved, v.value**2) - 2 * mean * _mean(moved, v.value) + mean**2 * total
    return np.sqrt(sum_errors**2 + np.maximum(by_scores, 0) + _mean(p**2, v.terms**2))


@reference("diopiFusedContextAttentionInp")
def fused_context_attention(
    inoutput,
    qkv_weight,
    qkv_bias,
    pre_work_size,
    workspace_size,
    key_cache,
    value_cache,
    layer_id,
    local_head_num,
    local_kv_head_num,
    size_per_head,
    max_q_len,
    max_kv_len,
    rotary_embedding,
    rope_theta,
):
    """Return the attention of prompts, the workspace sizes, and the caches with the keys and values of the prompts.

    The tokens are first projected to queries, keys and values, and rotated. If a workspace size is negative, the call
    only queries the sizes, and the tensors are unchanged.
    """
    sizes = workspace_size_after(pre_work_size), workspace_size_after(workspace_size)
    if pre_work_size < 0 or workspace_size < 0:
        return Exact(inoutput), *sizes, Exact(key_cache), Exact(value_cache)
    history, batch = max_kv_len - max_q_len, len(inoutput) // max_q_len
    sequences, times = np.divmod(np.arange(len(inoutput)), max_q_len)
    times = times + history
    heads = local_head_num, local_kv_head_num, local_kv_head_num
    q, k, v = _project(inoutput, qkv_weight, qkv_bias, heads, size_per_head)
    q, k = (_rotate(x, times, rotary_embedding, rope_theta) for x in (q, k))
    keys = _update_cache(key_cache, layer_id, sequences, times, k)
    values = _update_cache(value_cache, layer_id, sequences, times, v)
    result, terms, slots = np.zeros_like(inoutput), np.zeros(inoutput.shape), np.arange(max_kv_len)
    for b in range(batch):
        is_in_sequence = sequences == b
        k, v = (_read_cache(cache, layer_id, b, slots) for cache in (keys, values))
        mean = _attend(q.select(is_in_sequence), k, v, slots <= times[is_in_sequence][:, np.newaxis])
        result[is_in_sequence], terms[is_in_sequence] = (x.reshape(max_q_len, -1) for x in (mean.value, mean.terms))
    return WithTerms(result, terms), *sizes, keys, values


@reference("diopiFusedDecoderAttentionInp")
def fused_decoder_attention(
    inoutput,
    qkv_weight,
    qkv_bias,
    workspace_size,
    key_cache,
    value_cache,
    finished,
    total_padding_tokens,
    sequence_lengths,
    step,
    layer_id,
    local_head_num,
    local_kv_head_num,
    size_per_head,
    max_seq_len,
    rotary_embedding,
    rope_theta,
):
    """Return the attention of one new token per sequence, the workspace size, and the caches with the new tokens.

    The caches of sequences that are finished are unchanged, and their results unspecified. A cache with max_seq_len
    slots is a ring: a new token replaces the oldest one. If the workspace size is negative, the call only queries it.
    """
    if workspace_size < 0:
        return Exact(inoutput), workspace_size_after(workspace_size), Exact(key_cache), Exact(value_cache)
    is_unfinished = np.ones(len(inoutput), bool) if finished is None else ~finished
    padding = np.zeros(len(inoutput)) if total_padding_tokens is None else total_padding_tokens
    positions, slots = step - 1 - padding, sequence_lengths % max_seq_len
    heads = local_head_num, local_kv_head_num, local_kv_head_num
    q, k, v = _project(inoutput, qkv_weight, qkv_bias, heads, size_per_head)
    q, k = (_rotate(x, positions, rotary_embedding, rope_theta) for x in (q, k))
    unfinished = np.flatnonzero(is_unfinished)
    keys = _update_cache(key_cache, layer_id, unfinished, slots[unfinished], k.select(unfinished))
    values = _update_cache(value_cache, layer_id, unfinished, slots[unfinished], v.select(unfinished))
    result, terms = np.zeros_like(inoutput), np.zeros(inoutput.shape)
    for b in unfinished.tolist():
        times = np.arange(max(0, sequence_lengths[b] + 1 - max_seq_len), sequence_lengths[b] + 1)
        k, v = (_read_cache(cache, layer_id, b, times % max_seq_len) for cache in (keys, values))
        mean = _attend(q.select([b]), k, v, np.ones((1, len(times)), bool))
        result[b], terms[b] = mean.value.reshape(-1), mean.terms.reshape(-1)
    specified = np.broadcast_to(is_unfinished[:, np.newaxis], inoutput.shape)
    return PartlySpecified(WithTerms(result, terms), specified), workspace_size_after(workspace_size), keys, values
