"""Token sampling of the LMDeploy engine: each sequence of a batch draws its next token with its own generator.

A *weight* is a token's probability, or a number proportional to it.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from diopi_impl.jax_cpu.lmdeploy.argument_checks import check_batch, check_number
from diopi_impl.jax_cpu.random import derive_key
from diopi_impl.jax_cpu.registration import implements_sampling
from diopi_impl.jax_cpu.sizes import check_shapes

SamplingState = tuple[Array, Array | None, Array | None, Array | None, Array | None]
"""The updated tensors: output_ids, finished, sequence_lengths, cum_log_probs and output_log_probs."""


def _draw_numbers(generators: Array) -> Array:
    """Return a random number from (0, 1] for each generator state."""
    return 1 - jax.vmap(lambda state: jax.random.uniform(derive_key(state), (), jnp.float64))(generators)


def _probabilities(logits: Array) -> Array:
    """Return the softmax of the logits, with 1e-6 added to the divisor as in LMDeploy."""
    e = jnp.exp(logits - jnp.max(logits, -1, keepdims=True))
    return e / (jnp.sum(e, -1, keepdims=True) + jnp.float32(1e-6))


def _sort_weights(weights: Array) -> tuple[Array, Array]:
    """Return tokens and weights in descending order of weight; among equal weights, the lowest ID comes first."""
    ids = jnp.argsort(-weights, -1, stable=True)
    return ids, jnp.take_along_axis(weights, ids, -1)


def _find_position(weights: Array, threshold: Array, last: Array) -> Array:
    """Return the first position of each row at which the cumulative weight reaches the threshold, at most `last`."""
    reached = jnp.cumsum(weights.astype(jnp.float64), -1) >= threshold[:, None]
    return jnp.minimum(jnp.where(jnp.any(reached, -1), jnp.argmax(reached, -1), last), last)


def _take_per_row(values: Array, places: Array) -> Array:
    """Return the element of each row at the row's position in `places`."""
    return jnp.take_along_axis(values, places[:, None], -1)[:, 0]


def _update_state(
    state: SamplingState,
    tokens: Array,
    logarithms: tuple[Array, Array],
    end_ids: Array,
    step: int,
    is_written: Array,
    is_sampled: Array,
) -> SamplingState:
    """Return the state after one token per sequence was chosen.

    Args:
        state: The tensors before the step.
        tokens: The token of each sequence.
        logarithms: The logarithms to add to cum_log_probs, and to write to output_log_probs.
        end_ids: The end token of each sequence.
        step: The row of output_ids to write.
        is_written: Whether the token of each sequence is written.
        is_sampled: Whether the token was drawn, so that the other tensors are updated as well.

    Returns:
        The updated tensors.
    """
    ids, finished, lengths, cum, log_probs = state
    batch = tokens.shape[0]
    # a write to an index that is out of range has no effect
    places = jnp.where(is_written, step * batch + jnp.arange(batch), ids.size)
    written = ids.reshape(-1).at[places].set(tokens, mode="drop").reshape(ids.shape)
    if cum is not None:
        cum = jnp.where(is_sampled, cum + logarithms[0], cum)
    if log_probs is not None:
        log_probs = jnp.where(is_sampled, logarithms[1], log_probs)
    if finished is not None and lengths is not None:
        lengths = jnp.where(is_sampled & ~finished, lengths + 1, lengths)
        finished = jnp.where(is_sampled, tokens == end_ids, finished)
    return written, finished, lengths, cum, log_probs


def _check_shapes_of_call(logits: Array, batch_size: int, vocab_size_padded: int, **tensors: Array | None) -> None:
    """Raise ValueError unless logits have shape [batch_size, vocab_size_padded] and other tensors [batch_size]."""
    check_batch(batch_size, logits, **tensors)
    check_number("vocab_size_padded", vocab_size_padded, logits.shape[1])


def _flags(flags: Array | None, batch: int) -> Array:
    """Return the flags of the sequences; false for all sequences if the flags are omitted."""
    return jnp.zeros(batch, bool) if flags is None else flags


@implements_sampling("diopiTopKSampling")
def top_k_sampling(
    output_ids,
    logits,
    end_ids,
    finished,
    sequence_lengths,
    step,
    batch_size,
    vocab_size_padded,
    runtime_top_k,
    runtime_top_p,
    skip_decode,
    cum_log_probs,
    output_log_probs,
    generators,
):
    """Draw a token for each sequence from its k most probable tokens, and return the updated state (`SamplingState`).

    The token is drawn from the most probable of these tokens, up to the share `runtime_top_p` of their total weight.
    Finished sequences get their end token.
    """
    state = output_ids, finished, sequence_lengths, cum_log_probs, output_log_probs
    named_state = dict(
        zip(("finished", "sequence_lengths", "cum_log_probs", "output_log_probs"), state[1:], strict=True)
    )
    _check_shapes_of_call(logits, batch_size, vocab_size_padded, end_ids=end_ids, **named_state)
    check_shapes((batch_size,), runtime_top_k=runtime_top_k, runtime_top_p=runtime_top_p, skip_decode=skip_decode)
    is_logged = cum_log_probs is not None or output_log_probs is not None
    weights = _probabilities(logits) if is_logged else jnp.exp(logits - jnp.max(logits, -1, keepdims=True))
    ids, weights = _sort_weights(weights)
    limit = jnp.clip(runtime_top_k, 1, vocab_size_padded)
    total = jnp.sum(jnp.where(jnp.arange(vocab_size_padded) < limit[:, None], weights, 0), -1)
    place = _find_position(weights, _draw_numbers(generators) * runtime_top_p * total, limit - 1)
    is_decoded, ended = ~_flags(skip_decode, batch_size), _flags(finished, batch_size)
    tokens, weight = jnp.where(ended, end_ids, _take_per_row(ids, place)), jnp.log(_take_per_row(weights, place))
    return _update_state(
        state, tokens, (weight, weight - jnp.log(total)), end_ids, step, is_decoded, is_decoded & ~ended
    )


@implements_sampling("diopiTopPSampling")
def top_p_sampling(
    output_ids,
    logits,
    end_ids,
    finished,
    sequence_lengths,
    step,
    batch_size,
    vocab_size_padded,
    runtime_top_p,
    skip_decode,
    cum_log_probs,
    output_log_probs,
    generators,
):
    """Draw a token for each sequence from its most probable tokens, and return the updated state (`SamplingState`).

    The token is drawn from the most probable tokens up to the cumulative probability `runtime_top_p`. Finished
    sequences get their end token.
    """
    state = output_ids, finished, sequence_lengths, cum_log_probs, output_log_probs
    named_state = dict(
        zip(("finished", "sequence_lengths", "cum_log_probs", "output_log_probs"), state[1:], strict=True)
    )
    _check_shapes_of_call(logits, batch_size, vocab_size_padded, end_ids=end_ids, **named_state)
    check_shapes((batch_size,), runtime_top_p=runtime_top_p, skip_decode=skip_decode)
    ids, weights = _sort_weights(_probabilities(logits))
    place = _find_position(
        weights, _draw_numbers(generators) * runtime_top_p, jnp.full(batch_size, vocab_size_padded - 1)
    )
    place = jnp.where(weights[:, 0] >= runtime_top_p, 0, place)
    is_decoded, ended = ~_flags(skip_decode, batch_size), _flags(finished, batch_size)
    tokens = jnp.where(ended, end_ids, _take_per_row(ids, place))
    logarithm = jnp.where(ended, 0, jnp.log(_take_per_row(weights, place)))
    return _update_state(state, tokens, (logarithm, logarithm), end_ids, step, is_decoded, is_decoded)
