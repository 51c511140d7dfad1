"""Sampling of the LMDeploy engine: the tokens that a sequence draws from, and the results of a draw."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import AnyOf, Exact, WithTerms, reference
from diopi_test.oracle.reference.lmdeploy.sizes import size_after

Array = NDArray[Any]


@final
@dataclass(frozen=True)
class TokenRanking:
    """The tokens that a sequence draws from, in descending order of weight.

    Attributes:
        ids: the ids of all tokens.
        weights: their weights.
        limit: how many of the first tokens can be drawn.
        reach: the upper bound of the cumulative weight at which a token that can be drawn begins.
        total: the divisor of a weight in `output_log_probs`.
        is_ordered: whether the lowest id of equal weights is drawn, so that ties leave no choice.
        is_draw: whether the draw also updates log-probabilities, length and end.
        terms: the terms of the logarithm of a weight.
    """

    ids: Array
    weights: Array
    limit: int
    reach: float
    total: float = 1.0
    is_ordered: bool = False
    is_draw: bool = True
    terms: float = 1.0

    @property
    def count(self) -> int:
        """The number of tokens that can be drawn: those that begin within reach."""
        weights = self.weights[: self.limit]
        return max(1, int(np.sum((np.cumsum(weights) - weights < self.reach) & (weights > 0))))

    @property
    def is_certain(self) -> bool:
        """Whether only one token can be drawn."""
        rivals = int(np.sum(self.weights == self.weights[0]))
        return self.count == 1 and (rivals == 1 or self.is_ordered)

    def place(self, u: float) -> int:
        """Return the first place at which the cumulative weight reaches u times the reach, or the last place."""
        reached = np.cumsum(self.weights[: self.limit]) >= u * self.reach
        return int(np.argmax(reached)) if np.any(reached) else self.limit - 1


def _exponentials(logits: Array) -> Array:
    return np.exp(logits - np.max(logits))


def _probabilities(logits: Array) -> Array:
    weights = _exponentials(logits)
    return weights / (np.sum(weights) + 1e-6)


def _sort_by_weight(weights: Array) -> tuple[Array, Array]:
    """Return tokens and weights in descending order of weight, the lowest id first among equals."""
    ids = np.argsort(-weights, kind="stable")
    return ids, weights[ids]


def rank_top_k(logits: Array, k: int, p: float, are_logged: bool) -> TokenRanking:
    """Rank the k most probable tokens, limited to the share p of their sum."""
    ids, weights = _sort_by_weight(_probabilities(logits) if are_logged else _exponentials(logits))
    limit = min(max(k, 1), len(ids))
    total = float(np.sum(weights[:limit]))
    return TokenRanking(ids, weights, limit, p * total, total)


def rank_top_p(logits: Array, p: float) -> TokenRanking:
    """Rank all tokens, limited to the share p; only the first if its probability is at least p."""
    ids, weights = _sort_by_weight(_probabilities(logits))
    if weights[0] >= p:
        return TokenRanking(ids, weights, 1, 0.0, is_ordered=True)
    return TokenRanking(ids, weights, len(ids), p)


def _ended_ranking(token: int, is_draw: bool) -> TokenRanking:
    """Return the token of an ended sequence, whose probability is 1, or 1 / (1 + 1e-6) with smoothing."""
    return TokenRanking(np.array([token]), np.array([1 - 5e-7]), 1, 0.0, is_draw=is_draw, terms=5.0)


def _flags(flags: Array | None, batch: int) -> Array:
    return np.zeros(batch, bool) if flags is None else flags


UPDATED = ("output_ids", "finished", "sequence_lengths", "cum_log_probs", "output_log_probs")
"""The arguments that sampling updates."""

Updated = tuple[Array, Array | None, Array | None, Array | None, Array | None]


def _apply_draw(
    numbers: Array, before: Updated, sequences: Sequence[TokenRanking | None], end_ids: Array, step: int
) -> Updated:
    """Return the updated arguments after each sequence that is not None has drawn with a number of (0, 1]."""
    ids, finished, lengths, cum, log_probs = (None if array is None else array.copy() for array in before)
    assert ids is not None
    ended = _flags(before[1], len(sequences))
    for b, ranked in enumerate(sequences):
        if ranked is None:
            continue
        place = ranked.place(numbers[b])
        token, logarithm = ranked.ids[place], np.log(ranked.weights[place])
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
    """Rank the tokens of each sequence for top-k sampling; None for skipped sequences."""
    batch = len(logits)
    rows = zip(logits, _flags(finished, batch), _flags(skip, batch), end_ids, ks, ps, strict=True)
    return [
        None if is_skipped else _ended_ranking(end, False) if has_ended else rank_top_k(row, k, p, are_logged)
        for row, has_ended, is_skipped, end, k, p in rows
    ]


def rank_sequences_top_p(
    logits: Array, finished: Array | None, end_ids: Array, ps: Array, skip: Array | None
) -> list[TokenRanking | None]:
    """Rank the tokens of each sequence for top-p sampling; None for skipped sequences."""
    batch = len(logits)
    rows = zip(logits, _flags(finished, batch), _flags(skip, batch), end_ids, ps, strict=True)
    return [
        None if is_skipped else _ended_ranking(end, True) if has_ended else rank_top_p(row, p)
        for row, has_ended, is_skipped, end, p in rows
    ]


Draw = Callable[[Array], Updated]
"""Maps a number per sequence to the updated arguments."""


def top_k_draw(arguments: Any) -> tuple[list[TokenRanking | None], Draw]:
    """Return the ranking of each sequence in a call of top-k sampling, and a function that draws."""
    before = _updated(arguments)
    are_logged = before[3] is not None or before[4] is not None
    ks, ps, skip = arguments["runtime_top_k"], arguments["runtime_top_p"], arguments["skip_decode"]
    sequences = rank_sequences_top_k(arguments["logits"], before[1], arguments["end_ids"], ks, ps, skip, are_logged)
    return sequences, partial(
        _apply_draw, before=before, sequences=sequences, end_ids=arguments["end_ids"], step=arguments["step"]
    )


def top_p_draw(arguments: Any) -> tuple[list[TokenRanking | None], Draw]:
    """Return the ranking of each sequence in a call of top-p sampling, and a function that draws."""
    before = _updated(arguments)
    ps, skip = arguments["runtime_top_p"], arguments["skip_decode"]
    sequences = rank_sequences_top_p(arguments["logits"], before[1], arguments["end_ids"], ps, skip)
    return sequences, partial(
        _apply_draw, before=before, sequences=sequences, end_ids=arguments["end_ids"], step=arguments["step"]
    )


def _updated(arguments: Any) -> Updated:
    ids, finished, lengths, cum, log_probs = (arguments[name] for name in UPDATED)
    return ids, finished, lengths, cum, log_probs


def _results(sequences: Sequence[TokenRanking | None], draw: Draw) -> tuple[list[Any], list[Any]]:
    """Return `output_ids` and the other results, marked as one of several if they depend on the draw."""
    ids, finished, lengths, cum, log_probs = draw(np.full(len(sequences), 0.5))
    if not all(ranked.is_certain for ranked in sequences if ranked is not None):
        validated = [None if array is None else AnyOf(array) for array in (finished, cum, log_probs)]
        return [AnyOf(ids)], [validated[0], lengths, *validated[1:]]
    terms = np.array([_terms(ranked) for ranked in sequences])
    logarithms = [None if array is None else WithTerms(array, terms, exact=terms == 0) for array in (cum, log_probs)]
    return [ids], [finished, lengths, *logarithms]


def _terms(ranked: TokenRanking | None) -> float:
    """Return the terms of a logarithm; 0 if there is none."""
    return 0.0 if ranked is None or not ranked.is_draw else ranked.terms + abs(float(np.log(ranked.weights[0])))


def _unchanged_results(arguments: Any, sizes: Sequence[Any]) -> tuple[Any, ...]:
    ids, finished, lengths, *logarithms = _updated(arguments)
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
    arguments, sizes = locals(), [size_after(workspace_size)]
    if workspace_size < 0:
        return _unchanged_results(arguments, sizes)
    ids, updated = _results(*top_k_draw(arguments))
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
    arguments, sizes = locals(), [size_after(persistent_workspace_size), size_after(workspace_size)]
    if persistent_workspace_size < 0 or workspace_size < 0:
        return _unchanged_results(arguments, sizes)
    ids, updated = _results(*top_p_draw(arguments))
    return (*ids, *sizes, *updated)
