"""Token sampling of the LMDeploy engine: each sequence of a batch draws its next token at random.

A *ranking* lists the tokens that can be drawn, the most probable first. A random number u from (0, 1] selects the token
at which the cumulative weight reaches the share u of the accepted weight.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.

Sources: LMDeploy's sampling kernels; A. Holtzman et al., "The Curious Case of Neural Text Degeneration", 2019 (top-p
sampling).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import AnyOf, Exact, WithTerms, reference
from diopi_test.oracle.reference.lmdeploy.sizes import workspace_size_after

Array = NDArray[Any]


@final
@dataclass(frozen=True, kw_only=True)
class TokenRanking:
    """The tokens from which the next token of a sequence is drawn, in descending order of weight.

    Attributes:
        ids: the ids of all tokens.
        weights: the weight of each token in this order: its probability, or exp(logit − largest logit).
        limit: the number of tokens, from the first on, among which a token is drawn.
        mass_limit: the sum of weights at which the candidates end. A token can be drawn only if the weights of all
            preceding tokens add up to less.
        total: the number by which a weight is divided before its logarithm enters `output_log_probs`.
        is_ordered: whether the token with the lowest ID is drawn among equal weights, so that only one token is valid.
        is_draw: whether the draw also updates the log-probabilities, the length and the end of the sequence.
        terms: a part of the terms of the logarithm of a weight; the other part is the magnitude of the logarithm.
    """

    ids: Array
    weights: Array
    limit: int
    mass_limit: float
    total: float = 1.0
    is_ordered: bool = False
    is_draw: bool = True
    terms: float = 1.0

    @property
    def count(self) -> int:
        """Return the number of tokens that can be drawn."""
        weights = self.weights[: self.limit]
        return max(1, int(np.sum((np.cumsum(weights) - weights < self.mass_limit) & (weights > 0))))

    @property
    def is_certain(self) -> bool:
        """Return whether only one token can be drawn."""
        rivals = int(np.sum(self.weights == self.weights[0]))
        return self.count == 1 and (rivals == 1 or self.is_ordered)

    def find_position(self, u: float) -> int:
        """Return the position of the token that the random number u selects.

        It is the first position at which the cumulative weight reaches u · mass_limit; if there is none, `limit` − 1.
        """
        reached = np.cumsum(self.weights[: self.limit]) >= u * self.mass_limit
        return int(np.argmax(reached)) if np.any(reached) else self.limit - 1


def _exponentials(logits: Array) -> Array:
    """Return exp(logit − largest logit) of each token."""
    return np.exp(logits - np.max(logits))


def _probabilities(logits: Array) -> Array:
    """Return the softmax of the logits, with 1e-6 added to the divisor as in LMDeploy."""
    weights = _exponentials(logits)
    return weights / (np.sum(weights) + 1e-6)


def _sort_by_weight(weights: Array) -> tuple[Array, Array]:
    """Return tokens and weights in descending order of weight; among equal weights, the lowest id comes first."""
    ids = np.argsort(-weights, kind="stable")
    return ids, weights[ids]


def rank_top_k(logits: Array, k: int, p: float, are_logged: bool) -> TokenRanking:
    """Return the ranking of the k most probable tokens, limited to the share p of their total weight.

    Args:
        logits: The logits of all tokens.
        k: The maximum number of tokens.
        p: The share of the total weight of these tokens.
        are_logged: Whether log-probabilities are results. The weights are then probabilities, otherwise exponentials.

    Returns:
        The ranking.
    """
    ids, weights = _sort_by_weight(_probabilities(logits) if are_logged else _exponentials(logits))
    limit = min(max(k, 1), len(ids))
    total = float(np.sum(weights[:limit]))
    return TokenRanking(ids=ids, weights=weights, limit=limit, mass_limit=p * total, total=total)


def rank_top_p(logits: Array, p: float) -> TokenRanking:
    """Return the ranking of the most probable tokens up to the cumulative probability p, at least one token."""
    ids, weights = _sort_by_weight(_probabilities(logits))
    if weights[0] >= p:
        return TokenRanking(ids=ids, weights=weights, limit=1, mass_limit=0.0, is_ordered=True)
    return TokenRanking(ids=ids, weights=weights, limit=len(ids), mass_limit=p)


def _ended_ranking(token: int, is_draw: bool) -> TokenRanking:
    """Return the ranking of a sequence that has ended: it contains only the end token, with a weight of nearly 1."""
    return TokenRanking(
        ids=np.array([token]), weights=np.array([1 - 5e-7]), limit=1, mass_limit=0.0, is_draw=is_draw, terms=5.0
    )


def _flags(flags: Array | None, batch: int) -> Array:
    """Return the flags of the sequences; false for all sequences if the flags are omitted."""
    return np.zeros(batch, bool) if flags is None else flags


STATE_NAMES = ("output_ids", "finished", "sequence_lengths", "cum_log_probs", "output_log_probs")
"""The names of the arguments that sampling updates, in the order of `SamplingState`."""

SamplingState = tuple[Array, Array | None, Array | None, Array | None, Array | None]
"""The tensors that sampling updates: output_ids, finished, sequence_lengths, cum_log_probs and output_log_probs."""


def _apply_draw(
    numbers: Array, before: SamplingState, sequences: Sequence[TokenRanking | None], end_ids: Array, step: int
) -> SamplingState:
    """Return the updated arguments after each sequence with a ranking has drawn a token.

    Args:
        numbers: The random number of each sequence, from (0, 1].
        before: The arguments before the call.
        sequences: The ranking of each sequence; None for a skipped sequence.
        end_ids: The end token of each sequence.
        step: The row of `output_ids` to write.

    Returns:
        The updated arguments.
    """
    ids, finished, lengths, cum, log_probs = (None if array is None else array.copy() for array in before)
    assert ids is not None
    ended = _flags(before[1], len(sequences))
    for b, ranked in enumerate(sequences):
        if ranked is None:
            continue
        position = ranked.find_position(numbers[b])
        token, logarithm = ranked.ids[position], np.log(ranked.weights[position])
        ids.reshape(-1)[step * len(sequences) + b] = token
        if cum is not None and ranked.is_draw:
            cum[b] += logarithm
        if log_probs is not None and ranked.is_draw:
            log_probs[b] = logarithm - np.log(ranked.total)
        if finished is not None and lengths is not None and ranked.is_draw:
            lengths[b] += not ended[b]
            finished[b] = token == end_ids[b]
    return ids, finished, lengths, cum, log_probs


def rank_sequences_top_k(
    logits: Array, finished: Array | None, end_ids: Array, ks: Array, ps: Array, skip: Array | None, are_logged: bool
) -> list[TokenRanking | None]:
    """Return the ranking of each sequence for top-k sampling; None for skipped sequences.

    Args:
        logits: The logits, [sequences, tokens].
        finished: Which sequences have ended; None for no sequence.
        end_ids: The end token of each sequence.
        ks: The maximum number of candidates of each sequence.
        ps: The share of the total weight of each sequence.
        skip: Which sequences are skipped; None for no sequence.
        are_logged: Whether log-probabilities are results.
    """
    batch = len(logits)
    rows = zip(logits, _flags(finished, batch), _flags(skip, batch), end_ids, ks, ps, strict=True)
    return [
        None if is_skipped else _ended_ranking(end, False) if has_ended else rank_top_k(row, k, p, are_logged)
        for row, has_ended, is_skipped, end, k, p in rows
    ]


def rank_sequences_top_p(
    logits: Array, finished: Array | None, end_ids: Array, ps: Array, skip: Array | None
) -> list[TokenRanking | None]:
    """Return the ranking of each sequence for top-p sampling; the arguments are those of `rank_sequences_top_k`."""
    batch = len(logits)
    rows = zip(logits, _flags(finished, batch), _flags(skip, batch), end_ids, ps, strict=True)
    return [
        None if is_skipped else _ended_ranking(end, True) if has_ended else rank_top_p(row, p)
        for row, has_ended, is_skipped, end, p in rows
    ]


Draw = Callable[[Array], SamplingState]
"""A function that receives the random number of each sequence and returns the updated arguments."""


def top_k_draw(arguments: Any) -> tuple[list[TokenRanking | None], Draw]:
    """Return the rankings of a call of top-k sampling, and a function that draws; `arguments` are those of the call."""
    before = _state_of(arguments)
    are_logged = before[3] is not None or before[4] is not None
    ks, ps, skip = arguments["runtime_top_k"], arguments["runtime_top_p"], arguments["skip_decode"]
    sequences = rank_sequences_top_k(arguments["logits"], before[1], arguments["end_ids"], ks, ps, skip, are_logged)
    return sequences, partial(
        _apply_draw, before=before, sequences=sequences, end_ids=arguments["end_ids"], step=arguments["step"]
    )


def top_p_draw(arguments: Any) -> tuple[list[TokenRanking | None], Draw]:
    """Return the rankings of a call of top-p sampling, and a function that draws; `arguments` are those of the call."""
    before = _state_of(arguments)
    ps, skip = arguments["runtime_top_p"], arguments["skip_decode"]
    sequences = rank_sequences_top_p(arguments["logits"], before[1], arguments["end_ids"], ps, skip)
    return sequences, partial(
        _apply_draw, before=before, sequences=sequences, end_ids=arguments["end_ids"], step=arguments["step"]
    )


def _state_of(arguments: Any) -> SamplingState:
    """Return the arguments that sampling updates, in the order of `STATE_NAMES`."""
    ids, finished, lengths, cum, log_probs = (arguments[name] for name in STATE_NAMES)
    return ids, finished, lengths, cum, log_probs


def _draw_results(sequences: Sequence[TokenRanking | None], draw: Draw) -> tuple[list[Any], list[Any]]:
    """Return `output_ids` in a list, and the other results; results that depend on random numbers are `AnyOf`.

    Args:
        sequences: The ranking of each sequence; None for a skipped sequence.
        draw: The function that draws from them.
    """
    ids, finished, lengths, cum, log_probs = draw(np.full(len(sequences), 0.5))
    if not all(ranked.is_certain for ranked in sequences if ranked is not None):
        validated = [None if array is None else AnyOf(array) for array in (finished, cum, log_probs)]
        return [AnyOf(ids)], [validated[0], lengths, *validated[1:]]
    terms = np.array([_log_terms(ranked) for ranked in sequences])
    logarithms = [None if array is None else WithTerms(array, terms, exact=terms == 0) for array in (cum, log_probs)]
    return [ids], [finished, lengths, *logarithms]


def _log_terms(ranked: TokenRanking | None) -> float:
    """Return the terms of the logarithm of the drawn weight; 0 if the sequence has no such logarithm."""
    return 0.0 if ranked is None or not ranked.is_draw else ranked.terms + abs(float(np.log(ranked.weights[0])))


def _unchanged_results(arguments: Any, sizes: Sequence[Any]) -> tuple[Any, ...]:
    """Return the results of a call that only queries workspace sizes: all other arguments are unchanged."""
    ids, finished, lengths, *logarithms = _state_of(arguments)
    exact_log_probs = [None if array is None else Exact(array) for array in logarithms]
    return (ids, *sizes, finished, lengths, *exact_log_probs)


@reference("diopiTopKSampling")
def top_k_sampling(
    output_ids,
    logits,
    workspace_size,
    end_ids,
    finished,
    sequence_lengths,
    step,
    runtime_top_k,
    runtime_top_p,
    skip_decode,
    cum_log_probs,
    output_log_probs,
):
    """Return the updated arguments after each sequence draws a token from its k most probable tokens."""
    arguments, sizes = locals(), [workspace_size_after(workspace_size)]
    if workspace_size < 0:
        return _unchanged_results(arguments, sizes)
    ids, updated = _draw_results(*top_k_draw(arguments))
    return (*ids, *sizes, *updated)


@reference("diopiTopPSampling")
def top_p_sampling(
    output_ids,
    logits,
    persistent_workspace_size,
    workspace_size,
    end_ids,
    finished,
    sequence_lengths,
    step,
    runtime_top_p,
    skip_decode,
    cum_log_probs,
    output_log_probs,
):
    """Return the updated arguments after each sequence draws a token from its most probable tokens.

    Their cumulative probability is limited to p.
    """
    arguments, sizes = locals(), [workspace_size_after(persistent_workspace_size), workspace_size_after(workspace_size)]
    if persistent_workspace_size < 0 or workspace_size < 0:
        return _unchanged_results(arguments, sizes)
    ids, updated = _draw_results(*top_p_draw(arguments))
    return (*ids, *sizes, *updated)
