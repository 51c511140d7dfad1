"""Statistical tests: exact probabilities, no false alarm on right samples, alarm on wrong ones."""

from math import factorial, isclose
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from diopi_test.oracle.validators import chance

SEEDS = range(200)


def words(problems: Any) -> str:
    return "; ".join(problems)


def test_right_samples_raise_no_alarm() -> None:
    """Ten thousand right samples would raise less than one alarm in a thousand years of them."""
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        u, z, d = rng.random(500), rng.standard_normal(500), rng.integers(3, 10, 500)
        assert not words(chance.law("u", u, u))
        assert not words(chance.standard_normal("z", z, np.zeros(500)))
        assert not words(chance.whole_numbers("d", d, 3, 7))
        assert not words(chance.permutation("p", rng.permutation(500)))
        assert not words(chance.counts("c", rng.binomial(50, 0.3, 20), 50, 0.3))
        assert not words(chance.independent("u", u, {"other": rng.random(500)}))


@pytest.mark.parametrize("count", [1, 2, 5, 13])
def test_few_elements_are_no_evidence(count: int) -> None:
    ends = np.full(count, 0.5)
    assert not words(chance.law("u", ends, ends))
    assert not words(chance.whole_numbers("d", np.full(count, 3), 3, 7))
    assert not words(chance.permutation("p", np.arange(count)))
    assert not words(chance.independent("u", ends, {"other": ends}))


def test_probabilities_of_correlations_are_those_of_independent_samples() -> None:
    """No more than a share p of independent samples has a probability below p."""
    found = []
    for seed in range(2000):
        rng = np.random.default_rng(seed)
        found.append(chance.correlation(rng.random(200), rng.random(200)))
    for p in (0.5, 0.1, 0.01):
        assert np.mean(np.array(found) < p) < 1.4 * p


def test_a_shifted_sample_is_recognised() -> None:
    sample = np.random.default_rng(1).random(1000)
    for shift in (0, 1, 317, -400):
        assert chance.correlation(sample[500:], np.roll(sample, shift)[500:]) < chance.LEVEL or abs(shift) > 250
        assert chance.correlation(sample, np.roll(sample, shift)) < chance.LEVEL
    assert chance.correlation(sample, sample) > 1e-3  # with itself only at other places


UNEVEN = (np.tile([0.5] + [0.0] * 99, 50), np.tile([0.999, 0.5], 500), np.full(5000, 0.01), np.full(500, 0.5))
"""Probabilities of coins, of which some leave few in doubt."""


@pytest.mark.parametrize("p", UNEVEN, ids=range(len(UNEVEN)))
def test_coins_of_uneven_probabilities_raise_no_alarm(p: Any) -> None:
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        heads, other = (1.0 * (rng.random(p.size) < p) for _ in range(2))
        assert not words(chance.coins("c", heads, p, {"other": other}))


@pytest.mark.parametrize("p", UNEVEN[1:], ids=range(1, len(UNEVEN)))
def test_coins_that_fall_as_others_did_are_recognised(p: Any) -> None:
    heads = 1.0 * (np.random.default_rng(1).random(p.size) < p)
    assert "depend on those of other" in words(chance.coins("c", heads, p, {"other": heads.copy()}))
    assert "of the same call" in words(chance.coins("c", np.tile(heads[: p.size // 2], 2), p, {}))


def test_identity_has_the_probability_of_one_permutation() -> None:
    for count in (15, 20):
        text = words(chance.permutation("p", np.arange(count)))
        assert isclose(float(text.rsplit(" ", 1)[1]), 1 / factorial(count) / np.e, rel_tol=0.2)


def test_ends_that_are_never_reached() -> None:
    u = np.random.default_rng(3).random(4000)
    assert "upper end" in words(chance.law("u", 0.99 * u, 0.99 * u))
    assert "lower end" in words(chance.law("u", 0.01 + 0.99 * u, 0.01 + 0.99 * u))


def test_moments_of_the_normal_distribution() -> None:
    z, none = norm.ppf(np.random.default_rng(4).random(4000)), np.zeros(4000)
    assert "off its mean" in words(chance.standard_normal("z", z + 0.15, none))
    assert "times its standard deviation" in words(chance.standard_normal("z", 0.9 * z, none))
    assert "times its standard deviation" in words(chance.standard_normal("z", 1.1 * z, none))
    assert not words(chance.standard_normal("z", np.round(1.02 * z, 2), np.full(4000, 0.05)))
