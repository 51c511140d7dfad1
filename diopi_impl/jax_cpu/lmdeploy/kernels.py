"""The fused kernels of the LMDeploy engine: layers, sampling parameters, penalties, stop criteria, helpers.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results. `out` describes results that the caller allocates: their shapes and element
types.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.lmdeploy.argument_checks import check_batch, check_number, time_major
from diopi_impl.jax_cpu.registration import implements_step, implements_workspace_free
from diopi_impl.jax_cpu.sizes import check_shapes
from lib_rt.dtypes import to_numpy

# Layer kernels


def _rms_norm(x: Array, scale: Array, eps: float) -> Array:
    """Return x / √(mean(x²) + eps) · scale."""
    check_shapes(x.shape[-1:], scale=scale)
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + eps) * scale


@vendor.implements("diopiRootMeanSquareNormInp")
def root_mean_square_norm(inoutput, scale, eps):
    """Return x / √(mean(x²) + eps) · scale."""
    return _rms_norm(inoutput, scale, eps)


@vendor.implements("diopiFusedAddRootMeanSquareNormInp")
def fused_add_root_mean_square_norm(inoutput, residual, bias, scale, eps):
    """Return the RMS norm of residual + input + bias, and this sum."""
    check_shapes(inoutput.shape, residual=residual)
    check_shapes(inoutput.shape[-1:], bias=bias)
    total = residual + inoutput + (0 if bias is None else bias)
    return _rms_norm(total, scale, eps), total


@implements_workspace_free("diopiFusedSiluFfnInp")
def fused_silu_ffn(inoutput, weight1, weight2, weight3):
    """Return (silu(x W1) · (x W3)) W2."""
    check_shapes(weight1.shape[::-1], weight2=weight2)
    check_shapes(weight1.shape, weight3=weight3)
    return ((jax.nn.silu(inoutput @ weight1) * (inoutput @ weight3)) @ weight2,)


# Sampling parameters


def _expand_argument(values: Array, size: int, value: float) -> Array:
    """Return `values`, one per sequence, if `size` exceeds 1; otherwise return `value` for every sequence."""
    return values if size > 1 else jnp.full_like(values, value)


@vendor.implements("diopiSetupTopkRuntimeArgsInp")
def setup_topk_runtime_args(top_ks, top_ps, batch_size, top_k, top_ks_size, top_p, top_ps_size):
    """Return k, at most 1024, and p, from 0 to 1, of each sequence, and whether the sequence skips top-k sampling."""
    check_batch(batch_size, top_ks, top_ps=top_ps)
    k, p = _expand_argument(top_ks, top_ks_size, top_k), _expand_argument(top_ps, top_ps_size, top_p)
    k = jnp.where((k == 0) & (p == 0), 1, k)
    p = jnp.where((k > 0) & (p == 0), 1, p)
    return jnp.minimum(k, 1024), jnp.clip(p, 0, 1), k == 0


@vendor.implements("diopiSetupToppRuntimeArgsInp")
def setup_topp_runtime_args(
    top_ks, top_ps, batch_size, top_k, top_ks_size, top_p, top_ps_size, top_p_decay, top_p_min, top_p_reset_ids
):
    """Return k, p, whether to skip top-p sampling, and the initial p, decay, minimum and reset id of each sequence."""
    check_batch(batch_size, top_ks, top_ps=top_ps)
    k, p = _expand_argument(top_ks, top_ks_size, top_k), _expand_argument(top_ps, top_ps_size, top_p)
    k = jnp.where((k == 0) & (p == 0), 1, k)
    p = jnp.clip(p, 0, 1)
    decay = jnp.full_like(p, top_p_decay if 0 < top_p_decay <= 1 else 1.0)
    lowest = jnp.full_like(p, top_p_min if 0 < top_p_min <= 1 else 0.5)
    return k, p, k > 0, p, decay, lowest, jnp.full_like(k, top_p_reset_ids)


# Logits processing


@vendor.implements("diopiBatchApplyTemperaturePenaltyInp")
def batch_apply_temperature_penalty(logits, bias, temperatures, batch_size, vocab_size, vocab_size_padd, *, out):
    """Return (logits + bias) / (temperature + 1e-6); padding of the vocabulary becomes the type's lowest number."""
    check_batch(batch_size, logits, temperatures=temperatures)
    check_number("vocab_size_padd", vocab_size_padd, logits.shape[1])
    check_shapes(logits.shape[1:], bias=bias)
    cooled = (logits + (0 if bias is None else bias)) / (temperatures[:, None] + jnp.float32(1e-6))
    lowest = float(jnp.finfo(to_numpy(out.dtype)).min)
    return jnp.where(jnp.arange(vocab_size_padd) < vocab_size, cooled, lowest)


@implements_step("diopiBatchApplyRepetitionPenaltyInp")
def batch_apply_repetition_penalty(
    logits, penalties, output_ids, batch_size, vocab_size, input_lengths, max_input_length, step, penalty_type
):
    """Return the logits, lowered for the tokens that a sequence already has.

    Penalty type 1 subtracts the penalty. Type 2 divides positive logits by the penalty, and multiplies negative logits
    by it. Type 0 changes nothing.
    """
    check_batch(batch_size, logits, penalties=penalties, input_lengths=input_lengths)
    check_number("vocab_size", vocab_size, logits.shape[1])
    if penalty_type not in (0, 1, 2):
        raise ValueError(f"penalty_type is {penalty_type}, expected 0, 1 or 2")
    if penalty_type == 0:
        return logits
    ids = time_major(output_ids, batch_size)
    times = jnp.arange(ids.shape[0])[:, None]
    lengths = max_input_length if input_lengths is None else input_lengths
    is_left_out = (times >= step) | ((times >= lengths) & (times < max_input_length))
    columns = jnp.where(is_left_out, vocab_size, ids)  # writes to an index out of range are dropped
    occurs = jnp.zeros(logits.shape, bool).at[jnp.arange(batch_size), columns].set(True, mode="drop")
    penalty = penalties[:, None]
    scaled = jnp.where(logits < 0, logits * penalty, logits / penalty)
    return jnp.where(occurs, logits - penalty if penalty_type == 1 else scaled, logits)


def _matches_word(
    ids: Array, word: Array, start: Array, count: Array, last: Any, offset: Array, batch_size: int
) -> Array:
    """Return whether the `count` tokens of a word, from `start` on, equal the tokens generated up to time `last`.

    Args:
        ids: the token IDs of all time steps and sequences, in one axis.
        word: the joined tokens of all words.
        start: the position of the first token of the word.
        count: the number of tokens of the word.
        last: the time of the last token.
        offset: the position of the sequence in each time step.
        batch_size: the number of sequences.

    Returns:
        A Boolean.
    """
    places = jnp.arange(word.shape[0])
    times = last - (count - 1) + places
    generated = ids[jnp.clip(times * batch_size + offset, 0, ids.shape[0] - 1)]
    expected = word[jnp.clip(start + places, 0, word.shape[0] - 1)]
    return jnp.all((generated == expected) | (places >= count))


def _word_spans(table: Array) -> tuple[Array, Array, Array]:
    """Return the start and end of every word in the first row of a table [2, W], and whether the word exists."""
    ends = table[1]
    return jnp.concatenate([jnp.zeros(1, ends.dtype), ends[:-1]]), ends, ends >= 0


@implements_step("diopiBanBadWordsInp")
def ban_bad_words(logits, output_ids, bad_words, id_offset, bad_words_len, share_words, batch_size, vocab_size, step):
    """Return the logits with −∞ for each token that would complete a bad word."""
    check_batch(batch_size, logits)
    check_number("vocab_size", vocab_size, logits.shape[1])
    check_number("bad_words_len", bad_words_len, bad_words.shape[-1])
    check_shapes((*([] if share_words else [batch_size]), 2, bad_words_len), bad_words=bad_words)
    ids = output_ids.reshape(-1)

    def ban_tokens(row: Array, table: Array, offset: Array) -> Array:
        """Return a row of logits with −∞ for tokens that would complete a bad word."""

        def last_token(start: Array, end: Array, is_word: Array) -> Array:
            """Return the last token of a word whose other tokens were just generated, else an ID out of range."""
            prefix_length, token = end - start - 1, table[0][jnp.clip(end - 1, 0, bad_words_len - 1)]
            is_begun = (prefix_length <= step) & _matches_word(
                ids, table[0], start, prefix_length, step - 1, offset, batch_size
            )
            return jnp.where(is_word & is_begun & (token > 0) & (token < vocab_size), token, vocab_size)

        return row.at[jax.vmap(last_token)(*_word_spans(table))].set(-jnp.inf, mode="drop")

    tables = jnp.broadcast_to(bad_words, (batch_size, 2, bad_words_len))
    return jax.vmap(ban_tokens)(logits, tables, id_offset + jnp.arange(batch_size))


@implements_step("diopiStopWordsCriterion")
def stop_words_criterion(output_ids, stop_words, finished, id_offset, stop_words_len, batch_size, step):
    """Return `finished`, also true for sequences whose tokens end with a stop word."""
    check_shapes((batch_size, 2, stop_words_len), stop_words=stop_words)
    check_shapes((batch_size,), finished=finished)
    ids = output_ids.reshape(-1)

    def has_stop_word(table: Array, offset: Array) -> Array:
        """Return whether the tokens of a sequence end with a stop word."""

        def is_last(start: Array, end: Array, is_word: Array) -> Array:
            """Return whether the tokens of a sequence end with the word."""
            count = end - start
            return is_word & (count <= step + 1) & _matches_word(ids, table[0], start, count, step, offset, batch_size)

        return jnp.any(jax.vmap(is_last)(*_word_spans(table)))

    return finished | jax.vmap(has_stop_word)(stop_words, id_offset + jnp.arange(batch_size))


@implements_step("diopiLengthCriterion")
def length_criterion(finished, sequence_limit_length, batch_size, step):
    """Return which sequences are finished, whether all sequences are finished, and how many are."""
    check_batch(batch_size, finished, sequence_limit_length=sequence_limit_length)
    ended = finished | (step >= sequence_limit_length)
    return ended, jnp.all(ended)[None], jnp.sum(ended)[None]


# Small helpers


@vendor.implements("diopiGatherOutput")
def gather_output(output_ids, ids, context_length, max_context_len, max_gen_step, max_output_len, batch_size):
    """Return the tokens of each sequence as a row, without the padding between prompt and continuation."""
    check_shapes((batch_size, max_output_len), output_ids=output_ids)
    check_shapes((batch_size,), context_length=context_length)
    if max_gen_step <= 0 or not output_ids.size:
        return output_ids
    table, places = time_major(ids, batch_size), jnp.arange(max_output_len)

    def gather_row(row: Array, column: Array, length: Array) -> Array:
        """Return the tokens of a sequence without the padding after its prompt."""
        gap = jnp.maximum(max_context_len - length, 0)
        times = places + jnp.where(places < length, 0, gap)
        return jnp.where(times < max_gen_step, column[jnp.clip(times, 0, max_gen_step - 1)], row)

    return jax.vmap(gather_row, (0, 1, 0))(output_ids, table, context_length)


@vendor.implements("diopiPlusScalarInp")
def plus_scalar(inoutput, val, size):
    """Return the vector with `val` added to the first `size` elements."""
    if inoutput.ndim != 1 or not 0 <= size <= inoutput.shape[0]:
        raise ValueError(f"size is {size}, expected 0 to the length of inoutput, which has shape {inoutput.shape}")
    return jnp.where(jnp.arange(inoutput.shape[0]) < size, inoutput.astype(jnp.int64) + val, inoutput)


@vendor.implements("diopiUpdatePaddingCount")
def update_padding_count(total_padding_count, input_lengths, max_input_length, batch_size):
    """Return the number of padding tokens of each sequence."""
    check_batch(batch_size, total_padding_count, input_lengths=input_lengths)
    return max_input_length - input_lengths


@vendor.implements("diopiTransposeAxis01")
def transpose_axis_01(input, dim0, dim1, dim2, *, out):
    """Return the tensor with axes 0 and 1 swapped."""
    check_shapes((dim0, dim1, dim2), input=input)
    if out.shape != (dim1, dim0, dim2):
        raise ValueError(f"output has shape {out.shape}, expected {(dim1, dim0, dim2)}")
    return jnp.swapaxes(input, 0, 1)


@implements_step("diopiEmbeddingLookupPosEncoding")
def embedding_lookup_pos_encoding(embedding_table, all_ids, batch_size, hidden_units, step, *, out):
    """Return the embeddings of the tokens of time `step`."""
    check_number("hidden_units", hidden_units, embedding_table.shape[1])
    check_number("batch_size", batch_size, out.shape[0])
    return embedding_table[all_ids.reshape(-1)[step * batch_size + jnp.arange(batch_size)]]


@vendor.implements("diopiInputIdsEmbeddingLookupPosEncoding")
def input_ids_embedding_lookup_pos_encoding(input_ids, embedding_table, input_lengths, hidden_units):
    """Return the embeddings of the tokens."""
    check_number("hidden_units", hidden_units, embedding_table.shape[1])
    check_shapes((input_lengths,), input_ids=input_ids)
    return embedding_table[input_ids]
