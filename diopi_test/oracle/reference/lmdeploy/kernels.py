"""The fused kernels of the LMDeploy engine, except attention and sampling.

They compute layers, set up sampling, apply penalties to logits, decide which sequences end, and rearrange tokens. A
table of token IDs has a row per time step and a column per sequence.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.

Source: LMDeploy's kernels.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from diopi_test.oracle.reference import Exact, WithTerms, reference
from diopi_test.oracle.reference.lmdeploy.sizes import workspace_size_after
from diopi_test.oracle.reference.products import sum_products
from diopi_test.oracle.reference.sums import sum_terms
from lib_rt.formats import format_of

float32 = np.finfo(np.float32)
"""The limits of float32."""

Array = NDArray[Any]


# Layer kernels


def _scale_by_rms(x: Array, scale: Array, eps: float, input_terms: Any = 0) -> WithTerms:
    """Return x / √(mean(x²) + eps) · scale, with terms; `input_terms` are the terms of x itself."""
    squares = (x**2).mean(-1, keepdims=True) + eps
    value = x / np.sqrt(squares) * scale
    terms = sum_terms(x**2, -1, keepdims=True) / x.shape[-1] / squares / 2
    return WithTerms(value, np.abs(value) * terms + np.abs(input_terms * scale) / np.sqrt(squares), signed=True)


@reference("diopiRootMeanSquareNormInp")
def root_mean_square_norm(inoutput, scale, eps):
    """Return x / √(mean(x²) + eps) · scale."""
    return _scale_by_rms(inoutput, scale, eps)


@reference("diopiFusedAddRootMeanSquareNormInp")
def fused_add_root_mean_square_norm(inoutput, residual, bias, scale, eps):
    """Return the RMS norm of residual + input + bias, and this sum."""
    if bias is None:
        total, terms = residual + inoutput, np.zeros(residual.shape)
    else:
        total = residual + inoutput + bias
        terms = sum_terms(np.stack(np.broadcast_arrays(residual, inoutput, bias)), 0)
    return _scale_by_rms(total, scale, eps, terms), WithTerms(total, terms)


@reference("diopiFusedSiluFfnInp")
def fused_silu_ffn(inoutput, weight1, weight2, weight3, workspace_size):
    """Return (silu(x W1) · (x W3)) W2 and the workspace size; a negative size only queries the size."""
    if workspace_size < 0:
        return Exact(inoutput), workspace_size_after(workspace_size)
    gate, up = (sum_products(np.matmul, inoutput, weight) for weight in (weight1, weight3))
    share = special.expit(gate.value)
    silu, slope = gate.value * share, share * (1 + gate.value * (1 - share))
    hidden = silu * up.value
    product = sum_products(np.matmul, hidden, weight2)
    rounding = np.hypot(slope * up.value * gate.terms, silu * up.terms)
    # subnormal intermediate values may be flushed to 0
    flushed = np.where(np.minimum(share, np.abs(hidden)) < float32.smallest_normal, np.abs(hidden) / float32.eps, 0)
    terms = product.terms + np.sqrt((flushed**2 + rounding**2) @ weight2**2)
    return WithTerms(product.value, terms), workspace_size_after(workspace_size)


# Sampling setup


def _expand_setting(values: Array, size: int, value: float) -> Array:
    """Return a setting of each sequence: `values` if their number `size` is above 1, else `value` for every one."""
    return values if size > 1 else np.full(values.shape, value)


@reference("diopiSetupTopkRuntimeArgsInp")
def setup_topk_runtime_args(top_ks, top_ps, top_k, top_ks_size, top_p, top_ps_size):
    """Return k and p of each sequence within their valid ranges, and whether the sequence skips top-k sampling.

    If k and p are both 0, k is 1. If only p is 0, p is 1. k is at most 1024, and p between 0 and 1.
    """
    k, p = _expand_setting(top_ks, top_ks_size, top_k), _expand_setting(top_ps, top_ps_size, top_p)
    k = np.where((k == 0) & (p == 0), 1, k)
    p = np.where((k > 0) & (p == 0), 1, p)
    return np.minimum(k, 1024), Exact(np.minimum(np.maximum(p, 0), 1)), k == 0


@reference("diopiSetupToppRuntimeArgsInp")
def setup_topp_runtime_args(
    top_ks, top_ps, top_k, top_ks_size, top_p, top_ps_size, top_p_decay, top_p_min, top_p_reset_ids
):
    """Return the settings of top-p sampling for each sequence.

    They are k, p within [0, 1], whether the sequence skips top-p sampling, the initial p, the decay of p, its minimum,
    and the ID of the token that resets p. A decay or minimum outside (0, 1] is replaced by 1 or 0.5.
    """
    k, p = _expand_setting(top_ks, top_ks_size, top_k), _expand_setting(top_ps, top_ps_size, top_p)
    k = np.where((k == 0) & (p == 0), 1, k)
    p = np.minimum(np.maximum(p, 0), 1)
    decay = np.full(p.shape, top_p_decay if 0 < top_p_decay <= 1 else 1.0)
    lowest = np.full(p.shape, top_p_min if 0 < top_p_min <= 1 else 0.5)
    return k, Exact(p), k > 0, Exact(p), Exact(decay), Exact(lowest), np.full(k.shape, top_p_reset_ids)


# Logits processing


@reference("diopiBatchApplyTemperaturePenaltyInp")
def batch_apply_temperature_penalty(logits, bias, temperatures, vocab_size, vocab_size_padd, *, out):
    """Return (logits + bias) / (temperature + 1e-6); tokens from vocab_size on get the lowest number of the type."""
    assert out.dtype is not None
    cooled = (logits + (0 if bias is None else bias)) / (temperatures[:, np.newaxis] + 1e-6)
    padded = np.broadcast_to(np.arange(vocab_size_padd) >= vocab_size, logits.shape)
    lowest = -format_of(out.dtype).largest
    terms = np.zeros(logits.shape)
    return WithTerms(np.where(padded, lowest, cooled), terms, signed=bias is None, exact=padded)


def _token_times(step: int, length: int, max_input_length: int) -> Iterator[int]:
    """Return the times before `step`, without the padding between a prompt and its continuation."""
    return (time for time in range(step) if not length <= time < max_input_length)


@reference("diopiBatchApplyRepetitionPenaltyInp")
def batch_apply_repetition_penalty(
    logits, penalties, output_ids, batch_size, input_lengths, max_input_length, step, penalty_type
):
    """Return the logits with a penalty for the tokens that each sequence already contains.

    For type 0, the logits are unchanged. For type 1, the penalty is subtracted. For other types, nonnegative logits are
    divided by the penalty, and negative logits are multiplied by it.
    """
    ids, result, is_unchanged = _time_major(output_ids, batch_size), logits.copy(), np.ones(logits.shape, bool)
    for b, penalty in enumerate(penalties if penalty_type else ()):
        length = max_input_length if input_lengths is None else input_lengths[b]
        tokens = [ids[time, b] for time in _token_times(step, length, max_input_length)]
        row = logits[b, tokens]
        scaled = np.where(row < 0, row * penalty, row / penalty)
        result[b, tokens] = row - penalty if penalty_type == 1 else scaled
        is_unchanged[b, tokens] = False
    return WithTerms(result, 0.0, signed=True, exact=is_unchanged)


def _time_major(ids: Array, batch_size: int) -> Array:
    """Return a table of token ids of any shape as [times, sequences]."""
    return ids.reshape(ids.size // max(batch_size, 1), batch_size)


def _iterate_words(table: Array) -> Iterator[Array]:
    """Yield the token IDs of each word of a table.

    Row 0 of the table has the tokens of all words one after the other. Row 1 has the end of each word, padded with −1.
    """
    tokens, ends = table
    start = 0
    for end in ends[ends >= 0]:
        yield tokens[start:end]
        start = end


def _ends_with_word(ids: Array, word: Array, last: int, offset: int, batch_size: int) -> bool:
    """Return whether the tokens of a sequence up to time `last` end with a word.

    Args:
        ids: the table of tokens, of any shape.
        word: the token IDs of the word.
        last: the time of the last token; there are at least as many tokens as the word has.
        offset: the position of the sequence in the row of each time.
        batch_size: the length of a row.
    """
    times = np.arange(len(word)) + last - (len(word) - 1)
    return bool((ids.reshape(-1)[times * batch_size + offset] == word).all())


@reference("diopiBanBadWordsInp")
def ban_bad_words(logits, output_ids, bad_words, id_offset, share_words, batch_size, vocab_size, step):
    """Return the logits, −∞ for tokens above 0 that would complete a bad word; token 0 is never banned."""
    result = logits.copy()
    for b in range(batch_size):
        for word in _iterate_words(bad_words if share_words else bad_words[b]):
            begun, token = word[:-1], word[-1]
            is_banned = len(begun) <= step and _ends_with_word(output_ids, begun, step - 1, id_offset + b, batch_size)
            if is_banned and 0 < token < vocab_size:
                result[b, token] = -np.inf
    return result


@reference("diopiStopWordsCriterion")
def stop_words_criterion(output_ids, stop_words, finished, id_offset, batch_size, step):
    """Return `finished`, also true for sequences whose tokens end with a stop word."""
    stopped = [
        any(
            len(word) <= step + 1 and _ends_with_word(output_ids, word, step, id_offset + b, batch_size)
            for word in _iterate_words(stop_words[b])
        )
        for b in range(batch_size)
    ]
    return finished | np.array(stopped, bool)


@reference("diopiLengthCriterion")
def length_criterion(finished, sequence_limit_length, step):
    """Return a mask of the sequences that are finished or at their length limit, whether all are, and their number."""
    ended = finished | (step >= sequence_limit_length)
    return ended, np.array([ended.all()]), np.array([ended.sum()])


# Helpers


@reference("diopiGatherOutput")
def gather_output(output_ids, ids, context_length, max_context_len, max_gen_step, batch_size):
    """Return the tokens of each sequence as a row, without the padding between prompt and continuation."""
    result, table = output_ids.copy(), _time_major(ids, batch_size)
    for b, length in enumerate(context_length):
        tokens = [table[time, b] for time in _token_times(max_gen_step, length, max_context_len)]
        result[b, : len(tokens)] = tokens
    return result


@reference("diopiPlusScalarInp")
def plus_scalar(inoutput, val, size):
    """Return the vector with `val` added to the first `size` elements."""
    return np.where(np.arange(len(inoutput)) < size, inoutput + val, inoutput)


@reference("diopiUpdatePaddingCount")
def update_padding_count(input_lengths, max_input_length):
    """Return the number of padding tokens of each sequence."""
    return max_input_length - input_lengths


@reference("diopiTransposeAxis01")
def transpose_axis_01(input):
    """Return the tensor with axes 0 and 1 swapped."""
    return input.transpose(1, 0, 2)


@reference("diopiEmbeddingLookupPosEncoding")
def embedding_lookup_pos_encoding(embedding_table, all_ids, batch_size, step):
    """Return the rows of the embedding table for the tokens of time `step`, one per sequence."""
    return embedding_table[_time_major(all_ids, batch_size)[step]]


@reference("diopiInputIdsEmbeddingLookupPosEncoding")
def input_ids_embedding_lookup_pos_encoding(input_ids, embedding_table):
    """Return the rows of the embedding table for the tokens."""
    return embedding_table[input_ids]
