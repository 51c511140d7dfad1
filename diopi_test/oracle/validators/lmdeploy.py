"""Sampling of the LMDeploy engine: tokens that can come, as often as they should, and what follows from them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

import numpy as np

from diopi_proto.types import Dtype
from diopi_test.cases.formats import format_of
from diopi_test.oracle.budget import K
from diopi_test.oracle.validators import Answer, Array, Problems, validates
from diopi_test.oracle.validators.chance import counts, independent, of_others
from diopi_test.oracle.validators.kinds import all_where

SLACK = 1e-4
"""Part of the reach that rounding of a running sum may add to it."""

DIGITS = 9
"""After the point of weights that are told apart."""

SMOOTHING = 1e-6
"""Added to the sum that probabilities are divided by."""


@final
@dataclass(frozen=True)
class Ranked:
    """The tokens one sequence draws from.

    Attributes:
        ids, weights: of all tokens, the largest weight first.
        limit: how many of them can be drawn.
        reach: how much of the running sum can be drawn.
        total: what a weight is divided by for `output_log_probs`.
        is_certain: whether the first token alone can come.
        is_draw: whether log-probabilities, length and end follow, too.
    """

    ids: Array
    weights: Array
    limit: int
    reach: float
    total: float = 1.0
    is_certain: bool = False
    is_draw: bool = True

    @property
    def within(self) -> int:
        """How many tokens begin within reach, or so little beyond it that rounding may tell."""
        begins = np.concatenate([[0.0], np.cumsum(self.weights[: self.limit - 1])])
        return max(1, int(np.count_nonzero((begins < self.reach * (1 + SLACK)) & (self.weights[: self.limit] > 0))))

    @cached_property
    def shares(self) -> tuple[Array, Array]:
        """The weights within the limit, each once but for rounding, and what part of the reach those of each are."""
        ends = np.minimum(np.cumsum(self.weights[: self.limit]), self.reach)
        weights, groups = np.unique(self.weights[: self.limit].round(DIGITS), return_inverse=True)
        masses = np.bincount(groups.reshape(-1), np.diff(ends, prepend=0.0), len(weights))
        return weights, masses / max(self.reach, 1e-300)


Sequences = Sequence[Ranked | None]


@validates("diopiTopKSampling")
def top_k(answer: Answer) -> Problems:
    """Of the k largest, by their own sum."""
    given = answer.arguments
    is_logged = given["cum_log_probs"] is not None or given["output_log_probs"] is not None

    def ranked(b: int) -> Ranked:
        ids, weights = _sorted(given["logits"][b], is_logged)
        limit = int(np.clip(given["runtime_top_k"][b], 1, len(ids)))
        total = float(weights[:limit].sum())
        return _left_to_chance(Ranked(ids, weights, limit, float(given["runtime_top_p"][b]) * total, total))

    yield from _judged(answer, _sequences(answer, ranked, ends_count=False))


@validates("diopiTopPSampling")
def top_p(answer: Answer) -> Problems:
    """Of all, unless the largest is as much as the share; then the lowest id among equals."""
    given = answer.arguments

    def ranked(b: int) -> Ranked:
        ids, weights = _sorted(given["logits"][b], True)
        share = float(given["runtime_top_p"][b])
        if weights[0] >= share:
            return Ranked(ids[:1], weights[:1], 1, 0.0, is_certain=True)
        return _left_to_chance(Ranked(ids, weights, len(ids), share))

    yield from _judged(answer, _sequences(answer, ranked, ends_count=True))


def _sequences(answer: Answer, ranked: Callable[[int], Ranked], *, ends_count: bool) -> Sequences:
    """What each sequence draws from, None for those that are skipped; `ends_count` if the end of one is a draw."""
    given = answer.arguments

    def of(b: int) -> Ranked | None:
        if given["skip_decode"] is not None and given["skip_decode"][b]:
            return None
        if given["finished"] is not None and given["finished"][b]:
            return Ranked(given["end_ids"][b : b + 1], np.ones(1), 1, 0.0, is_certain=True, is_draw=ends_count)
        return ranked(b)

    return [of(b) for b in range(len(given["logits"]))]


def _sorted(logits: Array, are_probabilities: bool) -> tuple[Array, Array]:
    """Tokens and weights, the largest first and the lowest id first among equals."""
    weights = np.exp(logits - logits.max())
    if are_probabilities:
        weights = weights / (weights.sum() + SMOOTHING)
    ids = np.lexsort((np.arange(len(logits)), -weights))
    return ids, weights[ids]


def _left_to_chance(ranked: Ranked) -> Ranked:
    """The same, certain if nothing but the first token can come."""
    is_certain = ranked.within == 1 and np.count_nonzero(ranked.weights == ranked.weights[0]) == 1
    return replace(ranked, is_certain=bool(is_certain))


def _judged(answer: Answer, sequences: Sequences) -> Problems:
    problems = list(_tokens_that_can_come(answer, sequences))
    yield from problems
    if not problems:
        yield from _consequences(answer, sequences)
        yield from _frequencies(answer, sequences)
        yield from _equal_states(answer, sequences)


def _tokens(answer: Answer) -> Array:
    """The token of each sequence at the step."""
    step, batch = answer.arguments["step"], len(answer.arguments["logits"])
    drawn: Array = answer.results["output_ids"].reshape(-1)[step * batch :][:batch]
    return drawn


def _tokens_that_can_come(answer: Answer, sequences: Sequences) -> Problems:
    """Tokens are among those within reach, or as probable as one of them; all other ids are what they were."""
    before, after, step = answer.arguments["output_ids"], answer.results["output_ids"], answer.arguments["step"]
    drawn = np.zeros(before.size, bool)
    drawn[step * len(sequences) :][: len(sequences)] = [ranked is not None for ranked in sequences]
    yield from all_where("output_ids", (after == before) | drawn.reshape(before.shape), after, "what they were")
    possible = [
        ranked is None or _can_come(ranked, token) for ranked, token in zip(sequences, _tokens(answer), strict=True)
    ]
    yield from all_where("output_ids", np.array(possible), _tokens(answer), "tokens that can be drawn")


def _can_come(ranked: Ranked, token: int) -> bool:
    own = ranked.weights[ranked.ids == token]
    return bool((own >= ranked.weights[ranked.within - 1]).any())


def _consequences(answer: Answer, sequences: Sequences) -> Problems:
    """Log-probabilities and ends are those of the tokens."""
    tokens, given = _tokens(answer), answer.arguments
    kept = np.array([ranked is None or not ranked.is_draw for ranked in sequences])
    logarithm, total = np.zeros(len(sequences)), np.zeros(len(sequences))
    for b, ranked in enumerate(sequences):
        if ranked is not None:
            logarithm[b], total[b] = np.log(ranked.weights[ranked.ids == tokens[b]][0]), np.log(ranked.total)
    for name, value in (("cum_log_probs", logarithm), ("output_log_probs", logarithm - total)):
        if name in answer.results:
            before = given[name]
            wanted = np.where(kept, before, value + (before if name == "cum_log_probs" else 0))
            size = 5 + np.abs(logarithm) + np.abs(before)
            allowed = np.where(kept, 0, K * format_of(Dtype.float32).epsilon * size)
            right = np.abs(answer.results[name] - wanted) <= allowed
            yield from all_where(name, right, answer.results[name], "logarithms of the tokens' weights")
    if "finished" in answer.results:
        before, counts_ends = given["finished"], given["sequence_lengths"] is not None
        wanted = np.where(kept | (not counts_ends), before, tokens == given["end_ids"])
        yield from all_where("finished", answer.results["finished"] == wanted, answer.results["finished"], "right")


# Chance


def _uncertain(sequences: Sequences) -> list[int]:
    return [b for b, ranked in enumerate(sequences) if ranked is not None and not ranked.is_certain]


def _place(ranked: Ranked, token: int) -> int:
    """Which of the distinct weights a token has; a rival of the last one within the limit counts as that."""
    own = ranked.weights[ranked.ids == token][0]
    return int(np.argmin(np.abs(ranked.shares[0] - own)))


def _frequencies(answer: Answer, sequences: Sequences) -> Problems:
    """Sequences with the same weights draw each as often as its share; none depends on another."""
    alike: dict[Any, list[int]] = defaultdict(list)
    drawn = _uncertain(sequences)
    for b in drawn:
        ranked = _present(sequences[b])
        alike[ranked.weights.round(DIGITS).tobytes(), ranked.limit, round(ranked.reach, DIGITS)].append(b)
    for members in alike.values():
        weights, shares = _present(sequences[members[0]]).shares
        tokens = _tokens(answer)
        places = [_place(_present(sequences[b]), tokens[b]) for b in members]
        hits = np.bincount(places, minlength=len(weights))
        yield from counts("output_ids: a weight is drawn", hits, len(members), np.clip(shares, 0, 1))
    score = _scores(sequences, drawn)
    yield from independent("output_ids", score(answer), of_others(answer, score))


def _scores(sequences: Sequences, drawn: Sequence[int]) -> Callable[[Answer], Array]:
    """Gives where between 0 and 1 the number lay that a sequence drew, as far as its token tells."""

    def middles(answer: Answer) -> Iterator[float]:
        for b in drawn:
            ranked = _present(sequences[b])
            shares, place = ranked.shares[1], _place(ranked, _tokens(answer)[b])
            yield float(shares[place + 1 :].sum() + shares[place] / 2) - 0.5

    return lambda answer: np.array(list(middles(answer)))


def _present(ranked: Ranked | None) -> Ranked:
    assert ranked is not None
    return ranked


def _equal_states(answer: Answer, sequences: Sequences) -> Problems:
    """Sequences with equal logits and generators in one state draw one token, wherever they are in the batch."""
    tokens = _tokens(answer)
    first: dict[Any, int] = {}
    for b in _uncertain(sequences):
        ranked = _present(sequences[b])
        key = answer.arguments["generators"][b], ranked.ids.tobytes(), ranked.weights.tobytes(), ranked.reach
        other = first.setdefault(key, b)
        if tokens[other] != tokens[b]:
            yield f"output_ids: sequences {other} and {b} draw {tokens[other]} and {tokens[b]} in one state"
