"""Statistical tests of drawn numbers, each with a false alarm so improbable that all of a case stay below 1e-9.

The probabilities are exact, or bounds from above, for any number of elements, but for the normal approximation of
correlations. What a result is rounded to is allowed for by intervals: a number in [low, high] was drawn.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import fft
from scipy.stats import binom, chi2, kstwo, norm, poisson

from diopi_test.oracle.validators import Answer, Array, Problems

FALSE_ALARM = 1e-9
"""Probability that a case refuses a right answer."""

LEVEL = FALSE_ALARM / 1000
"""Of a single test: a case makes less than a hundred, and approximations are given a factor of ten."""

FEWEST = 200
"""Elements below which no correlation is judged: it would not be normal."""


def unlikely(what: str, probability: float) -> Problems:
    """`what` happened, which has at most this probability under the law."""
    if probability < LEVEL:
        yield f"{what}, which happens with probability {probability:.2g}"


def counts(name: str, hits: Any, trials: Any, probabilities: Any) -> Problems:
    """`hits` of `trials` are binomial, for each of several probabilities."""
    hits, trials, probabilities = np.broadcast_arrays(hits, trials, probabilities)
    tails = np.minimum(binom.cdf(hits, trials, probabilities), binom.sf(hits - 1, trials, probabilities))
    if tails.size:
        worst = int(np.argmin(tails))
        what = f"{name}: {hits.flat[worst]} of {trials.flat[worst]} where p is {probabilities.flat[worst]:.4g}"
        yield from unlikely(what, 2 * tails.size * float(tails.flat[worst]))


def coins(name: str, heads: Array, p: Array, others: dict[str, Array]) -> Problems:
    """`heads`, 0 or 1, are 1 with probability p, element by element."""
    p = np.broadcast_to(p, heads.shape)
    values, groups = np.unique(p, return_inverse=True)
    hits = np.bincount(groups.reshape(-1), heads.reshape(-1), len(values))
    trials = np.bincount(groups.reshape(-1), minlength=len(values))
    yield from counts(f"{name}: ones", hits, trials, values)
    deviations, variance = heads - p, p * (1 - p)
    dependence = {"others of the same call": coincidence(deviations, deviations, variance)}
    dependence |= {f"those of {what}": coincidence(deviations, other - p, variance) for what, other in others.items()}
    for what, probability in dependence.items():
        yield from unlikely(f"{name}: elements depend on {what}", probability)


def law(name: str, low: Array, high: Array) -> Problems:
    """Numbers whose distribution function lies between `low` and `high` are a sample of it.

    Their empirical distribution (Kolmogorov, Smirnov) and how far they reach into its ends.
    """
    low, high, count = np.sort(low, axis=None), np.sort(high, axis=None), low.size
    if count:
        steps = np.arange(count + 1) / count
        distance = float(max((steps[1:] - high).max(), (low - steps[:-1]).max(), 0))
        yield from unlikely(f"{name}: is {distance:.3g} away from its distribution", float(kstwo.sf(distance, count)))
        yield from unlikely(f"{name}: the upper end of the distribution is not reached", float(high[-1]) ** count)
        yield from unlikely(f"{name}: the lower end of the distribution is not reached", float(1 - low[0]) ** count)


def standard_normal(name: str, z: Array, slack: Array) -> Problems:
    """`z`, known within `slack`, is a sample of N(0, 1): mean, variance, distribution."""
    if not z.size:
        return
    size, inexact = np.abs(z), float(slack.mean())
    mean, spread = float(z.mean()), float(np.square(z).mean())
    off = max(abs(mean) - inexact, 0) * np.sqrt(z.size)
    yield from unlikely(f"{name}: is off its mean by {mean:.3g} standard deviations", 2 * float(norm.sf(off)))
    least, most = np.square(np.maximum(size - slack, 0)).sum(), np.square(size + slack).sum()
    tail = min(float(chi2.cdf(most, z.size)), float(chi2.sf(least, z.size)))
    yield from unlikely(f"{name}: has {np.sqrt(spread):.3g} times its standard deviation", 2 * tail)
    yield from law(name, norm.cdf(z - slack), norm.cdf(z + slack))


def whole_numbers(name: str, drawn: Array, low: int, span: int) -> Problems:
    """`drawn` is uniform over the `span` whole numbers from `low` on."""
    places = drawn.reshape(-1).astype(np.float64) - low
    if span <= FEWEST:
        numbers = np.bincount(places.astype(np.int64), minlength=span)
        yield from counts(f"{name}: a number occurs", numbers, drawn.size, 1 / span)
    yield from law(name, places / span, (places + 1) / span)
    first_odd = 1 - low % 2
    odd = np.mod(drawn, 2) == 1
    yield from counts(f"{name}: odd numbers", int(odd.sum()), drawn.size, (span + 1 - first_odd) // 2 / span)


def permutation(name: str, drawn: Array) -> Problems:
    """`drawn`, a permutation of 0 … n − 1, is a random one."""
    identity = np.arange(drawn.size)
    fixed = int((drawn == identity).sum())
    yield from unlikely(f"{name}: {fixed} numbers are in their places", float(poisson.sf(fixed - 1, 1)))
    yield from unlikely(f"{name}: keeps the order of the numbers", correlation(drawn, identity))


def independent(name: str, drawn: Array, others: dict[str, Array]) -> Problems:
    """The elements depend neither on each other nor on those of other calls, at whatever distance."""
    yield from unlikely(f"{name}: elements depend on others of the same call", correlation(drawn, drawn))
    for what, other in others.items():
        yield from unlikely(f"{name}: elements depend on those of {what}", correlation(drawn, other))


def of_others(answer: Answer, score: Any) -> dict[str, Array]:
    """`score` of the calls that must have drawn other numbers, by what they are."""
    return {what: score(other) for what, other in answer.others.items()}


def correlation(one: Array, other: Array) -> float:
    """Probability that independent samples correlate as much as these two do at any shift up to half their length.

    For a sample and itself, at any shift but none. 1 where there are too few elements to tell, or all are equal.
    """
    a, b = _standardised(one), _standardised(other)
    count = a.size
    if count < FEWEST or count != b.size or not (a.any() and b.any()):
        return 1.0
    shifts = _shifts(count, both_ways=one is not other)
    scores = np.abs(_products(a, b)[shifts]) / np.sqrt(count - np.abs(shifts))
    return min(1.0, 2 * len(shifts) * float(norm.sf(scores.max())))


def coincidence(one: Array, other: Array, variance: Array) -> float:
    """A bound of the probability that independent coins coincide as much as these two samples do, as `correlation`.

    Their deviations are at most 1 and have these variances, element by element, which differ: where few coins are not
    all but certain, so few products decide that their sum is not normal (G. Bennett, "Probability inequalities for the
    sum of independent random variables", 1962).
    """
    a, b, v = one.reshape(-1), other.reshape(-1), variance.reshape(-1)
    if a.size < FEWEST or a.size != b.size:
        return 1.0
    shifts, rounding = _shifts(a.size, both_ways=one is not other), 1e-12 * a.size  # of the Fourier transform
    sums, spreads = np.abs(_products(a, b)[shifts]), np.maximum(_products(v, v)[shifts], rounding)
    excess = np.maximum(sums - rounding, 0) / spreads
    exponents = spreads * ((1 + excess) * np.log1p(excess) - excess)
    return min(1.0, 2 * len(shifts) * float(np.exp(-exponents.max())))


def _shifts(count: int, *, both_ways: bool) -> Array:
    """How far one sample is moved against another: up to half their length, against itself by 1 at least."""
    return np.arange(-(count // 2) if both_ways else 1, count // 2 + 1)


def _products(a: Array, b: Array) -> Array:
    """The sums of products of two samples, by how far one is moved against the other; negative ones from the end."""
    size = fft.next_fast_len(2 * a.size, real=True)
    return np.asarray(fft.irfft(fft.rfft(a, size) * np.conj(fft.rfft(b, size)), size))


def _standardised(sample: Array) -> Array:
    """With mean 0 and variance 1; zeros where all are equal."""
    flat = sample.reshape(-1).astype(np.float64)
    deviations = flat - (flat.mean() if flat.size else 0)
    deviations /= np.abs(deviations).max(initial=0) or 1
    spread = float(np.sqrt(np.square(deviations).mean())) if flat.size else 0.0
    result: Array = deviations / spread if spread > 0 else np.zeros_like(deviations)
    return result
