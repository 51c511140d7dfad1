"""Sampling of the LMDeploy engine: a sequence draws a number from its own generator, by the state of that alone."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jax import Array

from diopi_impl.drawing import drawing_each
from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.jit import compiled
from diopi_impl.jax_cpu.lmdeploy.common import check_batch, check_number
from diopi_impl.jax_cpu.random import key_of
from diopi_impl.jax_cpu.sizes import check_shapes
from diopi_impl.workspace_queries import answer_workspace_queries

draws_each = partial(
    vendor.implements, adapt=answer_workspace_queries(drawing_each(partial(compiled, traced=["step", "generators"])))
)

Updated = tuple[Array, Array | None, Array | None, Array | None, Array | None]
"""output_ids, finished, sequence_lengths, cum_log_probs, output_log_probs."""


def _numbers(generators: Array) -> Array:
    """A number of (0, 1] from each state."""
    return 1 - jax.vmap(lambda state: jax.random.uniform(key_of(state), (), jnp.float64))(generators)


def _probabilities(logits: Array) -> Array:
    e = jnp.exp(logits - jnp.max(logits, -1, keepdims=True))
    return e / (jnp.sum(e, -1, keepdims=True) + jnp.float32(1e-6))


def _ranked(weights: Array) -> tuple[Array, Array]:
    """Tokens and weights in falling order, the lowest id first among equals."""
    ids = jnp.argsort(-weights, -1, stable=True)
    return ids, jnp.take_along_axis(weights, ids, -1)


def _first_reached(weights: Array, threshold: Array, last: Array) -> Array:
    """The first place of each row at which the running sum reaches the threshold, `last` if there is none before."""
    reached = jnp.cumsum(weights.astype(jnp.float64), -1) >= threshold[:, None]
    return jnp.minimum(jnp.where(jnp.any(reached, -1), jnp.argmax(reached, -1), last), last)


def _at(values: Array, places: Array) -> Array:
    return jnp.take_along_axis(values, places[:, None], -1)[:, 0]


def _updated(
    before: Updated, tokens: Array, logarithms: tuple[Array, Array], end_ids: Array, step: int, took: Array, drew: Array
) -> Updated:
    """The results where a sequence `took` a token, and where it `drew` it, so that the others follow."""
    ids, finished, lengths, cum, own = before
    batch = tokens.shape[0]
    places = jnp.where(took, step * batch + jnp.arange(batch), ids.size)  # beyond the last: dropped
    written = ids.reshape(-1).at[places].set(tokens, mode="drop").reshape(ids.shape)
    if cum is not None:
        cum = jnp.where(drew, cum + logarithms[0], cum)
    if own is not None:
        own = jnp.where(drew, logarithms[1], own)
    if finished is not None and lengths is not None:
        lengths = jnp.where(drew & ~finished, lengths + 1, lengths)
        finished = jnp.where(drew, tokens == end_ids, finished)
    return written, finished, lengths, cum, own


def _check(logits: Array, batch_size: int, vocab_size_padded: int, **others: Array | None) -> None:
    check_batch(batch_size, logits, **others)
    check_number("vocab_size_padded", vocab_size_padded, logits.shape[1])


def _flags(given: Array | None, batch: int) -> Array:
    return jnp.zeros(batch, bool) if given is None else given


@draws_each("diopiTopKSampling")
def top_k_sampling(
    output_ids: Array,
    logits: Array,
    workspace: Array | None,
    workspace_size: int,
    fusion_level: int,
    end_ids: Array,
    finished: Array | None,
    sequence_lengths: Array | None,
    step: int,
    batch_size: int,
    vocab_size_padded: int,
    runtime_top_k: Array,
    runtime_top_p: Array,
    skip_decode: Array | None,
    cum_log_probs: Array | None,
    output_log_probs: Array | None,
    generators: Array,
) -> Updated:
    before = output_ids, finished, sequence_lengths, cum_log_probs, output_log_probs
    given = dict(zip(("finished", "sequence_lengths", "cum_log_probs", "output_log_probs"), before[1:], strict=True))
    _check(logits, batch_size, vocab_size_padded, end_ids=end_ids, **given)
    check_shapes((batch_size,), runtime_top_k=runtime_top_k, runtime_top_p=runtime_top_p, skip_decode=skip_decode)
    is_logged = cum_log_probs is not None or output_log_probs is not None
    weights = _probabilities(logits) if is_logged else jnp.exp(logits - jnp.max(logits, -1, keepdims=True))
    ids, weights = _ranked(weights)
    limit = jnp.clip(runtime_top_k, 1, vocab_size_padded)
    total = jnp.sum(jnp.where(jnp.arange(vocab_size_padded) < limit[:, None], weights, 0), -1)
    place = _first_reached(weights, _numbers(generators) * runtime_top_p * total, limit - 1)
    goes_on, ended = ~_flags(skip_decode, batch_size), _flags(finished, batch_size)
    tokens, weight = jnp.where(ended, end_ids, _at(ids, place)), jnp.log(_at(weights, place))
    return _updated(before, tokens, (weight, weight - jnp.log(total)), end_ids, step, goes_on, goes_on & ~ended)


@draws_each("diopiTopPSampling")
def top_p_sampling(
    output_ids: Array,
    logits: Array,
    persistent_workspace: Array | None,
    persistent_workspace_size: int,
    workspace: Array | None,
    workspace_size: int,
    fusion_level: int,
    end_ids: Array,
    finished: Array | None,
    sequence_lengths: Array | None,
    step: int,
    batch_size: int,
    vocab_size_padded: int,
    runtime_top_p: Array,
    skip_decode: Array | None,
    cum_log_probs: Array | None,
    output_log_probs: Array | None,
    generators: Array,
) -> Updated:
    before = output_ids, finished, sequence_lengths, cum_log_probs, output_log_probs
    given = dict(zip(("finished", "sequence_lengths", "cum_log_probs", "output_log_probs"), before[1:], strict=True))
    _check(logits, batch_size, vocab_size_padded, end_ids=end_ids, **given)
    check_shapes((batch_size,), runtime_top_p=runtime_top_p, skip_decode=skip_decode)
    ids, weights = _ranked(_probabilities(logits))
    place = _first_reached(weights, _numbers(generators) * runtime_top_p, jnp.full(batch_size, vocab_size_padded - 1))
    place = jnp.where(weights[:, 0] >= runtime_top_p, 0, place)
    goes_on, ended = ~_flags(skip_decode, batch_size), _flags(finished, batch_size)
    tokens = jnp.where(ended, end_ids, _at(ids, place))
    logarithm = jnp.where(ended, 0, jnp.log(_at(weights, place)))
    return _updated(before, tokens, (logarithm, logarithm), end_ids, step, goes_on, goes_on)
