"""Statistical tests have exact probabilities, raise no alarm for correct samples, and detect wrong ones."""

from math import factorial, isclose
from typing import Any

import numpy as np
import pytest
from scipy.special import chdtrc
from scipy.stats import norm

from diopi_test.cases.random import LONG_SAMPLE_SHAPE
from diopi_test.oracle.validators import statistics

SEEDS = range(200)


def words(problems: Any) -> str:
    """Return all problems as one text."""
    return "; ".join(problems)


def test_correct_samples_raise_no_alarm() -> None:
    """A correct sample raises an alarm with a probability below 1e-9."""
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        u, z, d = rng.random(500), rng.standard_normal(500), rng.integers(3, 10, 500)
        assert not words(statistics.check_distribution("u", u, u))
        assert not words(statistics.check_standard_normal("z", z, np.zeros(500)))
        assert not words(statistics.check_uniform_integers("d", d, 3, 7))
        assert not words(statistics.check_permutation("p", rng.permutation(500)))
        assert not words(statistics.check_counts("c", rng.binomial(50, 0.3, 20), 50, 0.3))
        assert not words(statistics.check_independence("u", u, {"other": rng.random(500)}))


@pytest.mark.parametrize("count", [1, 2, 5, 13])
def test_too_few_elements_raise_no_alarm(count: int) -> None:
    ends = np.full(count, 0.5)
    assert not words(statistics.check_distribution("u", ends, ends))
    assert not words(statistics.check_uniform_integers("d", np.full(count, 3), 3, 7))
    assert not words(statistics.check_permutation("p", np.arange(count)))
    assert not words(statistics.check_independence("u", ends, {"other": ends}))


def test_correlation_probability_is_exact_for_independent_samples() -> None:
    """At most a share p of independent samples has a probability below p."""
    found = []
    for seed in range(2000):
        rng = np.random.default_rng(seed)
        found.append(statistics.correlation_probability(rng.random(200), rng.random(200)))
    for p in (0.5, 0.1, 0.01):
        assert np.mean(np.array(found) < p) < 1.4 * p


def test_shifted_copy_of_a_sample_raises_an_alarm() -> None:
    sample = np.random.default_rng(1).random(1000)
    for shift in (0, 1, 317, -400):
        assert (
            statistics.correlation_probability(sample[500:], np.roll(sample, shift)[500:]) < statistics.LEVEL
            or abs(shift) > 250
        )
        assert statistics.correlation_probability(sample, np.roll(sample, shift)) < statistics.LEVEL
    assert statistics.correlation_probability(sample, sample) > 1e-3  # with itself only at other places


UNEVEN = (np.tile([0.5] + [0.0] * 99, 50), np.tile([0.999, 0.5], 500), np.full(5000, 0.01), np.full(500, 0.5))
"""Probabilities of trials, some of which have almost certain results."""


@pytest.mark.parametrize("p", UNEVEN, ids=range(len(UNEVEN)))
def test_independent_coins_of_different_probabilities_raise_no_alarm(p: Any) -> None:
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        heads, redraw = (1.0 * (rng.random(p.size) < p) for _ in range(2))
        assert not words(statistics.check_coins("c", heads, p, {"other": redraw}))


@pytest.mark.parametrize("p", UNEVEN[1:], ids=range(1, len(UNEVEN)))
def test_repeated_coins_raise_an_alarm(p: Any) -> None:
    heads = 1.0 * (np.random.default_rng(1).random(p.size) < p)
    assert "depend on elements of other" in words(statistics.check_coins("c", heads, p, {"other": heads.copy()}))
    assert "of the same call" in words(statistics.check_coins("c", np.tile(heads[: p.size // 2], 2), p, {}))


def test_identity_permutation_raises_an_alarm() -> None:
    for count in (15, 20):
        text = words(statistics.check_permutation("p", np.arange(count)))
        assert isclose(float(text.rsplit(" ", 1)[1]), 1 / factorial(count) / np.e, rel_tol=0.2)


def test_sample_that_misses_an_end_of_its_distribution_raises_an_alarm() -> None:
    u = np.random.default_rng(3).random(4000)
    assert "upper end" in words(statistics.check_distribution("u", 0.99 * u, 0.99 * u))
    assert "lower end" in words(statistics.check_distribution("u", 0.01 + 0.99 * u, 0.01 + 0.99 * u))


def test_wrong_moments_of_a_normal_sample_raise_an_alarm() -> None:
    z, none = norm.ppf(np.random.default_rng(4).random(4000)), np.zeros(4000)
    assert "off its mean" in words(statistics.check_standard_normal("z", z + 0.15, none))
    assert "times the expected one" in words(statistics.check_standard_normal("z", 0.9 * z, none))
    assert "times the expected one" in words(statistics.check_standard_normal("z", 1.1 * z, none))
    assert not words(statistics.check_standard_normal("z", np.round(1.02 * z, 2), np.full(4000, 0.05)))


POOLED = 9 * LONG_SAMPLE_SHAPE[0]
"""The number of elements that the suite draws in a case of the level large."""


def test_a_probability_that_is_off_by_half_a_percent_is_found_in_999_of_1000_runs() -> None:
    rng, p = np.random.default_rng(6), 0.3
    hits = rng.binomial(POOLED, [[p], [1.005 * p]], (2, 1000))
    correct, biased = ([bool(words(statistics.check_counts("b", hit, POOLED, p))) for hit in row] for row in hits)
    assert not any(correct)
    assert sum(biased) >= 999


def test_a_deviation_that_is_off_by_half_a_percent_is_found_in_999_of_1000_runs() -> None:
    """The sum of squares of a normal sample has a chi-square distribution, so no sample has to be drawn."""
    squares = 1.005**2 * np.random.default_rng(7).chisquare(POOLED, 1000)
    assert np.sum(2 * chdtrc(POOLED, squares) < statistics.LEVEL) >= 999


def test_an_element_that_all_permutations_have_in_one_place_raises_an_alarm() -> None:
    rng = np.random.default_rng(8)
    permutations = rng.permuted(np.tile(np.arange(300), (8, 1)), axis=1)
    assert not words(statistics.check_repeated_positions("p", permutations))
    for row in permutations:
        place = int(np.argmax(row))
        row[[place, -1]] = row[[-1, place]]
    assert "element 299 is 299 in all of 8 calls" in words(statistics.check_repeated_positions("p", permutations))
    assert not words(statistics.check_repeated_positions("p", permutations[:2]))


def test_coin_correlation_bound_exceeds_the_probability_for_independent_coins() -> None:
    """At most a share p of independent pairs of samples has a bound below p."""
    rng, variance = np.random.default_rng(5), np.full(200, 0.25)
    bounds = [statistics.coin_correlation_bound(*(rng.integers(0, 2, (2, 200)) - 0.5), variance) for _ in range(500)]
    for p in (0.5, 0.1, 0.01):
        assert np.mean(np.array(bounds) < p) <= p
