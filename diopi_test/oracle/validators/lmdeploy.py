"""Validators of token sampling in the LMDeploy engine: top-k and top-p sampling.

At each step, every sequence of a batch draws a token at random in proportion to the weights of the tokens. The
validators check that drawn tokens are possible, that their frequencies are plausible, and that the other results follow
from the tokens. The functions take the number of a sequence in the batch as `b`.

The arithmetic that a vendor declares changes the weights of tokens. It thereby changes the set of possible tokens,
their frequencies and the logarithms. As in error budgets, results may differ by K times such a change.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

import numpy as np

from diopi_proto.types import Dtype
from diopi_test.oracle.budget import K
from diopi_test.oracle.validators import Array, CompletedCall, Problems, validates
from diopi_test.oracle.validators.properties import check_elements
from diopi_test.oracle.validators.statistics import check_counts, check_independence, score_redraws
from lib_rt.formats import format_of

MASS_TOLERANCE = 1e-4
"""The accepted relative error of `CandidateTokens.mass_limit`, because cumulative sums of weights are rounded."""

WEIGHT_DECIMALS = 9
"""The number of decimal places to which weights are rounded before they are compared for equality."""

SMOOTHING = 1e-6
"""The constant that LMDeploy adds to the sum of the weights before it divides by the sum."""


@final
@dataclass(frozen=True, kw_only=True)
class CandidateTokens:
    """The tokens in descending order of weight, and the rules for how many of the first tokens a sequence may draw.

    Attributes:
        ids: the ids of all tokens, in descending order of weight.
        weights: the weight of each token in this order: its probability, or exp(logit − largest logit).
        errors: the largest change of each weight that a declared arithmetic permits.
        limit: the number of tokens, from the first on, among which a token is drawn.
        mass_limit: the sum of weights at which the candidates end. A token can be drawn only if the weights of the
            tokens before it add up to less.
        total: the divisor of a weight in `output_log_probs`.
        total_error: the largest change of the divisor that a declared arithmetic permits.
        is_certain: whether only the first token can be drawn.
        is_draw: whether the draw also updates log-probabilities, length and end; false for a sequence that has ended.
    """

    ids: Array
    weights: Array
    errors: Array
    limit: int
    mass_limit: float
    total: float = 1.0
    total_error: float = 0.0
    is_certain: bool = False
    is_draw: bool = True

    @property
    def candidate_count(self) -> int:
        """The number of tokens that can be drawn if rounding raises `mass_limit` as far as it is permitted."""
        begins = np.concatenate([[0.0], np.cumsum(self.weights[: self.limit - 1])])
        is_reached = begins < self.mass_limit * (1 + MASS_TOLERANCE) + self.mass_slack
        return max(1, int(np.count_nonzero(is_reached & (self.weights[: self.limit] > 0))))

    @property
    def mass_slack(self) -> float:
        """The largest error of a sum of the weights of the first tokens that a declared arithmetic permits."""
        return float(K * self.errors[: self.limit].sum())

    @property
    def may_be_first(self) -> Array:
        """A mask, in the order of `ids`, of the tokens that may have the largest weight in a declared arithmetic."""
        return np.asarray(self.weights + K * self.errors >= self.weights[0] - K * self.errors[0])

    @cached_property
    def shares(self) -> tuple[Array, Array]:
        """The distinct rounded weights of the first `limit` tokens, and the probability of drawing each weight.

        The second array has the probability that the drawn token has the weight at the same position of the first.
        """
        ends = np.minimum(np.cumsum(self.weights[: self.limit]), self.mass_limit)
        weights, groups = np.unique(self.weights[: self.limit].round(WEIGHT_DECIMALS), return_inverse=True)
        masses = np.bincount(groups.reshape(-1), np.diff(ends, prepend=0.0), len(weights))
        return weights, masses / max(self.mass_limit, 1e-300)


Sequences = Sequence[CandidateTokens | None]
"""The candidate tokens of each sequence of a batch; None for a sequence from which no token is drawn."""


@validates("diopiTopKSampling")
def top_k(call: CompletedCall) -> Problems:
    """Check top-k sampling: a token is drawn from the k most probable tokens.

    There are fewer candidates if fewer weights already add up to the share `runtime_top_p` of the sum of the k weights.
    """
    arguments = call.arguments
    is_logged = arguments["cum_log_probs"] is not None or arguments["output_log_probs"] is not None

    def rank(b: int) -> CandidateTokens:
        """Return the candidate tokens of sequence b."""
        ids, weights, errors = _sort_by_weight(call, b, is_logged)
        limit = int(np.clip(arguments["runtime_top_k"][b], 1, len(ids)))
        total = float(weights[:limit].sum())
        return _mark_certain(
            CandidateTokens(
                ids=ids,
                weights=weights,
                errors=errors,
                limit=limit,
                mass_limit=float(arguments["runtime_top_p"][b]) * total,
                total=total,
                total_error=float(errors[:limit].sum()) + call.sum_epsilon * total,
            )
        )

    yield from _check_sampling(call, _rank_sequences(call, rank, ends_count=False))


@validates("diopiTopPSampling")
def top_p(call: CompletedCall) -> Problems:
    """Check top-p sampling: a token is drawn from the most probable tokens whose probabilities reach `runtime_top_p`.

    If the probability of the most probable token reaches this share, that token is drawn with certainty.
    """
    arguments = call.arguments

    def rank(b: int) -> CandidateTokens:
        """Return the candidate tokens of sequence b."""
        ids, weights, errors = _sort_by_weight(call, b, True)
        share = float(arguments["runtime_top_p"][b])
        ranked = CandidateTokens(ids=ids, weights=weights, errors=errors, limit=len(ids), mass_limit=share)
        is_first_certain = not (ranked.may_be_first & (weights != weights[0])).any()
        if weights[0] - K * errors[0] >= share and is_first_certain:
            return replace(ranked, ids=ids[:1], weights=weights[:1], errors=errors[:1], limit=1, is_certain=True)
        return _mark_certain(ranked)

    yield from _check_sampling(call, _rank_sequences(call, rank, ends_count=True))


def _rank_sequences(call: CompletedCall, rank: Callable[[int], CandidateTokens], *, ends_count: bool) -> Sequences:
    """Return the candidate tokens of each sequence; None for a skipped sequence.

    Args:
        call: The call.
        rank: Returns the candidate tokens of a sequence that has not ended, from its number in the batch.
        ends_count: Whether the end token of a sequence that has ended updates the other results.
    """
    arguments = call.arguments

    def rank_sequence(b: int) -> CandidateTokens | None:
        """Return the candidate tokens of sequence b: only its end token if it has ended; None if it is skipped."""
        if arguments["skip_decode"] is not None and arguments["skip_decode"][b]:
            return None
        if arguments["finished"] is not None and arguments["finished"][b]:
            return CandidateTokens(
                ids=arguments["end_ids"][b : b + 1],
                weights=np.ones(1),
                errors=np.zeros(1),
                limit=1,
                mass_limit=0.0,
                is_certain=True,
                is_draw=ends_count,
            )
        return rank(b)

    return [rank_sequence(b) for b in range(len(arguments["logits"]))]


def _sort_by_weight(call: CompletedCall, b: int, are_probabilities: bool) -> tuple[Array, Array, Array]:
    """Return the ids of the tokens of sequence b, their weights, and the errors of the weights, by descending weight.

    Among equal weights, the lowest id comes first. The errors are those that a declared arithmetic permits.

    Args:
        call: The call.
        b: The number of the sequence.
        are_probabilities: Whether the weights exp(logit − largest logit) are divided by their sum.
    """
    logits = call.arguments["logits"][b]
    exponents = logits - logits.max()
    weights = np.exp(exponents)
    errors = call.errors.error("exp", exponents, weights)
    if are_probabilities:
        divisor = np.asarray(weights.sum() + SMOOTHING)
        divisor_error = float(errors.sum() / divisor) + call.sum_epsilon
        weights, errors = weights / divisor, errors / divisor
        errors = errors + weights * divisor_error + call.errors.quotient_error(divisor, weights)
    ids = np.lexsort((np.arange(len(logits)), -weights))
    return ids, weights[ids], errors[ids]


def _mark_certain(ranked: CandidateTokens) -> CandidateTokens:
    """Return the candidates with `is_certain` set if only the first token can be drawn."""
    is_certain = ranked.candidate_count == 1 and np.count_nonzero(ranked.may_be_first) == 1
    return replace(ranked, is_certain=bool(is_certain))


def _check_sampling(call: CompletedCall, sequences: Sequences) -> Problems:
    """Check the drawn tokens; if all are possible, check the other results, the frequencies and generator states."""
    problems = list(_check_tokens(call, sequences))
    yield from problems
    if not problems:
        yield from _check_log_probs_and_ends(call, sequences)
        yield from _check_frequencies(call, sequences)
        yield from _check_equal_states(call, sequences)


def _drawn_tokens(call: CompletedCall) -> Array:
    """Return the id of the token that each sequence draws at the step of this call."""
    step, batch = call.arguments["step"], len(call.arguments["logits"])
    tokens: Array = call.results["output_ids"].reshape(-1)[step * batch :][:batch]
    return tokens


def _check_tokens(call: CompletedCall, sequences: Sequences) -> Problems:
    """Check that each drawn token is possible and that all other ids are unchanged."""
    before, after, step = call.arguments["output_ids"], call.results["output_ids"], call.arguments["step"]
    is_drawn = np.zeros(before.size, bool)
    is_drawn[step * len(sequences) :][: len(sequences)] = [ranked is not None for ranked in sequences]
    yield from check_elements("output_ids", (after == before) | is_drawn.reshape(before.shape), after, "unchanged")
    possible = [
        ranked is None or _is_possible(ranked, token)
        for ranked, token in zip(sequences, _drawn_tokens(call), strict=True)
    ]
    yield from check_elements("output_ids", np.array(possible), _drawn_tokens(call), "tokens that can be drawn")


def _is_possible(ranked: CandidateTokens, token: int) -> bool:
    """Return whether a token is one of the candidates, or as probable as the last candidate."""
    largest = ranked.weights + K * ranked.errors
    last = ranked.candidate_count - 1
    return bool((largest[ranked.ids == token] >= ranked.weights[last] - K * ranked.errors[last]).any())


def _check_log_probs_and_ends(call: CompletedCall, sequences: Sequences) -> Problems:
    """Check that `cum_log_probs`, `output_log_probs` and `finished` agree with the drawn tokens."""
    tokens, arguments = _drawn_tokens(call), call.arguments
    is_unchanged = np.array([ranked is None or not ranked.is_draw for ranked in sequences])
    logarithm, total, changes, total_changes = np.zeros((4, len(sequences)))
    for b, ranked in enumerate(sequences):
        if ranked is not None:
            token = ranked.ids == tokens[b]
            logarithm[b], changes[b] = _logarithm(call, ranked.weights[token][0], ranked.errors[token][0])
            total[b], total_changes[b] = _logarithm(call, ranked.total, ranked.total_error)
    for name, value, change in (
        ("cum_log_probs", logarithm, changes),
        ("output_log_probs", logarithm - total, changes + total_changes),
    ):
        if name in call.results:
            before = arguments[name]
            expected = np.where(is_unchanged, before, value + (before if name == "cum_log_probs" else 0))
            # 5 eps for the relative error of a weight, which is an absolute error of the weight's logarithm
            size = 5 + np.abs(logarithm) + np.abs(before)
            allowed = np.where(is_unchanged, 0, K * (format_of(Dtype.float32).epsilon * size + change))
            is_valid = np.abs(call.results[name] - expected) <= allowed
            yield from check_elements(name, is_valid, call.results[name], "logarithms of the tokens' weights")
    if "finished" in call.results:
        before, counts_ends = arguments["finished"], arguments["sequence_lengths"] is not None
        expected = np.where(is_unchanged | (not counts_ends), before, tokens == arguments["end_ids"])
        is_valid = call.results["finished"] == expected
        yield from check_elements("finished", is_valid, call.results["finished"], "true exactly for the end token")


def _logarithm(call: CompletedCall, number: float, error: float) -> tuple[float, float]:
    """Return the logarithm of a number, and the largest change of the logarithm that the declared arithmetic permits.

    Args:
        call: The call.
        number: The number.
        error: The largest permitted change of the number.
    """
    result = np.log(number)
    return float(result), float(error / number + call.errors.error("log", np.asarray(number), result))


# Distribution


def _uncertain_sequences(sequences: Sequences) -> list[int]:
    """Return the numbers of the sequences that can draw more than one token."""
    return [b for b, ranked in enumerate(sequences) if ranked is not None and not ranked.is_certain]


def _weight_group(ranked: CandidateTokens, token: int) -> int:
    """Return the position in `ranked.shares` of the distinct weight that is nearest to the weight of `token`."""
    weight = ranked.weights[ranked.ids == token][0]
    return int(np.argmin(np.abs(ranked.shares[0] - weight)))


def _check_frequencies(call: CompletedCall, sequences: Sequences) -> Problems:
    """Check that sequences draw tokens of each weight with the probability of the weight, and independently.

    Only sequences with equal weights and limits are counted together.

    Args:
        call: The call.
        sequences: The candidates of each sequence.

    Yields:
        A description of each deviation.
    """
    alike: dict[Any, list[int]] = defaultdict(list)
    uncertain = _uncertain_sequences(sequences)
    for b in uncertain:
        ranked = _require(sequences[b])
        alike[
            ranked.weights.round(WEIGHT_DECIMALS).tobytes(), ranked.limit, round(ranked.mass_limit, WEIGHT_DECIMALS)
        ].append(b)
    for members in alike.values():
        weights, shares = _require(sequences[members[0]]).shares
        tokens = _drawn_tokens(call)
        places = [_weight_group(_require(sequences[b]), tokens[b]) for b in members]
        hits = np.bincount(places, minlength=len(weights))
        mass = max(_require(sequences[members[0]]).mass_limit, 1e-300)
        slack = max(_require(sequences[b]).mass_slack for b in members) / mass
        yield from check_counts("output_ids: a weight is drawn", hits, len(members), shares, slack)
    score = _make_score(sequences, uncertain)
    yield from check_independence("output_ids", score(call), score_redraws(call, score))


def _make_score(sequences: Sequences, uncertain: Sequence[int]) -> Callable[[CompletedCall], Array]:
    """Return a function that estimates the random number from which each uncertain sequence drew its token, minus ½.

    The random number is uniform in [0, 1). The estimate is the middle of the interval that belongs to tokens of the
    drawn weight.

    Args:
        sequences: The candidates of each sequence.
        uncertain: The numbers of the sequences that can draw more than one token.
    """

    def estimate_uniforms(call: CompletedCall) -> Iterator[float]:
        """Iterate over the estimated uniform numbers, minus ½, of the uncertain sequences."""
        for b in uncertain:
            ranked = _require(sequences[b])
            shares, group = ranked.shares[1], _weight_group(ranked, _drawn_tokens(call)[b])
            yield float(shares[group + 1 :].sum() + shares[group] / 2) - 0.5

    return lambda call: np.array(list(estimate_uniforms(call)))


def _require(ranked: CandidateTokens | None) -> CandidateTokens:
    """Return the candidates of a sequence that is not skipped."""
    assert ranked is not None
    return ranked


def _check_equal_states(call: CompletedCall, sequences: Sequences) -> Problems:
    """Check that sequences with equal logits and generator states draw the same token anywhere in the batch."""
    tokens = _drawn_tokens(call)
    first: dict[Any, int] = {}
    for b in _uncertain_sequences(sequences):
        ranked = _require(sequences[b])
        key = call.arguments["generators"][b], ranked.ids.tobytes(), ranked.weights.tobytes(), ranked.mass_limit
        earlier = first.setdefault(key, b)
        if tokens[earlier] != tokens[b]:
            yield f"output_ids: sequences {earlier} and {b} draw {tokens[earlier]} and {tokens[b]} in the same state"
