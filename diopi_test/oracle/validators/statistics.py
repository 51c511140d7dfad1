"""Statistical tests of random numbers.

A test computes the probability of the observed numbers if they have the expected distribution. It reports a problem if
the probability is below `LEVEL`. All tests of a case together report a problem by chance with a probability below 1e-9.
The probabilities are exact or upper bounds for any number of elements, except for the normal approximation of
correlations.

Results are rounded. The distribution function at the number before rounding is therefore known only to lie between two
bounds, `low` and `high`.

The *redraws* of a call are further calls with the same arguments that must draw different random numbers. A mapping
contains them by their description, such as "another seed".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import fft, special

from diopi_test.oracle.validators import Array, CompletedCall, Problems

FALSE_ALARM = 1e-9
"""The largest accepted probability that a case fails although the numbers have the right distribution."""

LEVEL = FALSE_ALARM / 1000
"""The significance level of a single test.

1000 is the product of at most 100 tests of a case, and a factor of 10 for approximations in their probabilities.
"""

MAX_SHIFTED = 2**20
"""The largest number of elements that a test of correlation uses, which limits its time."""

MIN_ELEMENTS = 200
"""The least number of elements for a test of correlation. With fewer, a correlation is not normally distributed."""

MAX_COUNTED_SPAN = 200
"""The largest range of integers for which the occurrences of each integer are counted."""


def report_unlikely(description: str, probability: float) -> Problems:
    """Yield a problem if the probability of an event that has happened is below `LEVEL`.

    Args:
        description: A sentence that describes the event.
        probability: An upper bound of its probability if the numbers have the expected distribution.

    Yields:
        The description with the probability, or nothing.
    """
    if probability < LEVEL:
        yield f"{description}, which happens with probability {probability:.2g}"


def check_counts(name: str, hits: Any, trials: Any, probabilities: Any, slack: float = 0.0) -> Problems:
    """Check that `hits` successes in `trials` trials are plausible for a binomial distribution, element by element.

    Args:
        name: a description of what is counted.
        hits: the numbers of successes.
        trials: the numbers of trials.
        probabilities: the probabilities of a success.
        slack: the largest difference of the true probabilities from `probabilities` that is accepted.

    Yields:
        A description of the least plausible number of successes.
    """
    hits, trials, probabilities = np.broadcast_arrays(hits, trials, probabilities)
    low, high = np.clip(probabilities - slack, 0, 1), np.clip(probabilities + slack, 0, 1)
    tails = np.minimum(special.bdtr(hits, trials, low), special.bdtrc(hits - 1, trials, high))
    if tails.size:
        worst = int(np.argmin(tails))
        description = f"{name}: {hits.flat[worst]} of {trials.flat[worst]} where p is {probabilities.flat[worst]:.4g}"
        yield from report_unlikely(description, 2 * tails.size * float(tails.flat[worst]))


def check_coins(name: str, heads: Array, p: Array, redraws: dict[str, Array]) -> Problems:
    """Check draws of 0 and 1: each is 1 with probability `p`, and independent of other draws and of the redraws.

    Args:
        name: a description of what is drawn.
        heads: the draws, 0 or 1.
        p: the probabilities of 1; they broadcast to `heads`.
        redraws: the draws of further calls by description, in the shape of `heads`.

    Yields:
        A description of each deviation.
    """
    p = np.broadcast_to(p, heads.shape)
    yield from check_ones(name, heads, p)
    if redraws:
        pooled = np.stack([heads, *redraws.values()])
        yield from check_ones(f"{name} of {len(pooled)} calls", pooled, np.broadcast_to(p, pooled.shape))
    deviations, variance = heads - p, p * (1 - p)
    dependence = {"elements of the same call": coin_correlation_bound(deviations, deviations, variance)}
    dependence |= {
        f"elements of {description}": coin_correlation_bound(deviations, redraw - p, variance)
        for description, redraw in redraws.items()
    }
    for description, probability in dependence.items():
        yield from report_unlikely(f"{name}: elements depend on {description}", probability)


def check_ones(name: str, heads: Array, p: Array) -> Problems:
    """Check that the elements of `heads`, 0 or 1, are 1 as often as their probabilities `p` (same shape) predict."""
    values, groups = np.unique(p, return_inverse=True)
    hits = np.bincount(groups.reshape(-1), heads.reshape(-1), len(values))
    trials = np.bincount(groups.reshape(-1), minlength=len(values))
    yield from check_counts(f"{name}: ones", hits, trials, values)


def check_distribution(name: str, low: Array, high: Array) -> Problems:
    """Check that numbers are a sample of their distribution (Kolmogorov-Smirnov test) and reach both of its ends.

    Args:
        name: the name of the result.
        low: a lower bound of the distribution function at each number, in [0, 1].
        high: an upper bound, of the same shape.

    Yields:
        A description of each deviation from the distribution.
    """
    low, high, count = np.sort(low, axis=None), np.sort(high, axis=None), low.size
    if count:
        steps = np.arange(count + 1) / count
        distance = float(max((steps[1:] - high).max(), (low - steps[:-1]).max(), 0))
        probability = 2 * float(special.smirnov(count, distance))  # factor 2: the distance may be above or below
        yield from report_unlikely(f"{name}: is {distance:.3g} away from its distribution", probability)
        yield from report_unlikely(
            f"{name}: the upper end of the distribution is not reached", float(high[-1]) ** count
        )
        yield from report_unlikely(
            f"{name}: the lower end of the distribution is not reached", float(1 - low[0]) ** count
        )


def check_standard_normal(name: str, z: Array, slack: Array) -> Problems:
    """Check that numbers `z`, with rounding errors up to `slack`, are a sample of the standard normal distribution."""
    if not z.size:
        return
    size, inexact = np.abs(z), float(slack.mean())
    mean, spread = float(z.mean()), float(np.square(z).mean())
    deviation = max(abs(mean) - inexact, 0) * np.sqrt(z.size)
    yield from report_unlikely(
        f"{name}: is off its mean by {mean:.3g} standard deviations", 2 * float(special.ndtr(-deviation))
    )
    lower, upper = np.square(np.maximum(size - slack, 0)).sum(), np.square(size + slack).sum()
    tail = min(float(special.chdtr(z.size, upper)), float(special.chdtrc(z.size, lower)))
    yield from report_unlikely(
        f"{name}: the standard deviation is {np.sqrt(spread):.3g} times the expected one", 2 * tail
    )
    yield from check_distribution(name, special.ndtr(z - slack), special.ndtr(z + slack))


def check_uniform_integers(name: str, sample: Array, low: int, span: int) -> Problems:
    """Check that `sample` is uniformly distributed over the integers from `low` to `low` + `span` − 1."""
    places = sample.reshape(-1).astype(np.float64) - low
    if span <= MAX_COUNTED_SPAN:
        numbers = np.bincount(places.astype(np.int64), minlength=span)
        yield from check_counts(f"{name}: occurrences of a number", numbers, sample.size, 1 / span)
    yield from check_distribution(name, places / span, (places + 1) / span)
    first_odd = 1 - low % 2
    odd = np.mod(sample, 2) == 1
    yield from check_counts(f"{name}: odd numbers", int(odd.sum()), sample.size, (span + 1 - first_odd) // 2 / span)


def check_permutation(name: str, sample: Array) -> Problems:
    """Check that a permutation of 0 … n − 1 is random: few fixed points, and no correlation with 0, 1, …, n − 1."""
    identity = np.arange(sample.size)
    fixed = int((sample == identity).sum())
    probability = float(special.gammainc(fixed, 1.0))  # that a Poisson variable with mean 1 is at least `fixed`
    yield from report_unlikely(f"{name}: {fixed} numbers are at the position of their value", probability)
    yield from report_unlikely(
        f"{name}: is correlated with the order of the numbers", correlation_probability(sample, identity)
    )


def check_repeated_positions(name: str, samples: Array) -> Problems:
    """Check that no element of a permutation is the same in all of several independent permutations.

    Args:
        name: the name of the result.
        samples: the permutations of 0 … n − 1, [permutations, n].

    Yields:
        A description of the first element that is the same in all permutations.
    """
    count, size = samples.shape
    repeated = np.flatnonzero((samples == samples[0]).all(0))
    if count > 1 and repeated.size:
        place = int(repeated[0])
        probability = min(1.0, size * float(size) ** (1 - count))  # that any of the elements is the same in all
        description = f"{name}: element {place} is {samples[0, place]:g} in all of {count} calls"
        yield from report_unlikely(description, probability)


def check_independence(name: str, sample: Array, redraws: dict[str, Array]) -> Problems:
    """Check that elements are uncorrelated with each other and with the redraws, at shifts up to half their number.

    Args:
        name: the name of the result.
        sample: the elements.
        redraws: the elements of further calls by description, in the shape of `sample`.

    Yields:
        A description of each correlation.
    """
    yield from report_unlikely(
        f"{name}: elements depend on elements of the same call", correlation_probability(sample, sample)
    )
    for description, redraw in redraws.items():
        yield from report_unlikely(
            f"{name}: elements depend on elements of {description}", correlation_probability(sample, redraw)
        )


def pool_draws(call: CompletedCall, score: Callable[[CompletedCall], Array]) -> Array:
    """Return the array `score(call)` of a call and of its redraws, stacked along a new first axis."""
    return np.stack([score(draw) for draw in (call, *call.redraws.values())])


def score_redraws(call: CompletedCall, score: Callable[[CompletedCall], Array]) -> dict[str, Array]:
    """Return the array `score(call)` of each redraw of a call, by its description."""
    return {description: score(redraw) for description, redraw in call.redraws.items()}


def correlation_probability(x: Array, y: Array) -> float:
    """Return the probability that independent samples have as large a correlation as x and y at any shift.

    The shifts go up to half the size of the samples.

    Args:
        x: a sample.
        y: another sample of the same size, or x itself for its autocorrelation, which excludes shift 0.

    Returns:
        The probability, or an upper bound of it. It is 1 if there are fewer than `MIN_ELEMENTS` elements, if the sizes
        differ, or if all elements of a sample are equal.
    """
    a, b = (_standardize(sample.reshape(-1)[:MAX_SHIFTED]) for sample in (x, y))
    count = a.size
    if count < MIN_ELEMENTS or count != b.size or not (a.any() and b.any()):
        return 1.0
    shifts = _shifts(count, both_ways=x is not y)
    scores = np.abs(_cross_correlate(a, b)[shifts]) / np.sqrt(count - np.abs(shifts))
    return min(1.0, 2 * len(shifts) * float(special.ndtr(-scores.max())))


def coin_correlation_bound(x: Array, y: Array, variance: Array) -> float:
    """Return an upper bound of the probability that independent coins are as correlated as x and y at any shift.

    If only a few coins are uncertain, few products are not zero, and their sum is not normally distributed. The bound
    is that of G. Bennett, "Probability inequalities for the sum of independent random variables", JASA 57, 1962.

    Args:
        x: the deviations of coins: their results, 0 or 1, minus the probabilities of 1.
        y: the deviations of further coins, or x itself for coins of the same call, which excludes shift 0.
        variance: the variance of each coin.

    Returns:
        The bound; 1 if there are fewer than `MIN_ELEMENTS` elements, or if the sizes differ.
    """
    a, b, v = (array.reshape(-1)[:MAX_SHIFTED] for array in (x, y, variance))
    if a.size < MIN_ELEMENTS or a.size != b.size:
        return 1.0
    shifts, rounding = _shifts(a.size, both_ways=x is not y), 1e-12 * a.size  # rounding error of the Fourier transform
    sums, spreads = np.abs(_cross_correlate(a, b)[shifts]), np.maximum(_cross_correlate(v, v)[shifts], rounding)
    excess = np.maximum(sums - rounding, 0) / spreads
    exponents = spreads * ((1 + excess) * np.log1p(excess) - excess)
    return min(1.0, 2 * len(shifts) * float(np.exp(-exponents.max())))


def _shifts(count: int, *, both_ways: bool) -> Array:
    """Return the shifts between two samples, up to half their length; only positive shifts unless `both_ways`."""
    return np.arange(-(count // 2) if both_ways else 1, count // 2 + 1)


def _cross_correlate(a: Array, b: Array) -> Array:
    """Return Σ a[i + shift] · b[i] for every shift; negative shifts are at the end of the array."""
    size = fft.next_fast_len(2 * a.size, real=True)
    return np.asarray(fft.irfft(fft.rfft(a, size) * np.conj(fft.rfft(b, size)), size))


def _standardize(sample: Array) -> Array:
    """Return a flat sample with mean 0 and variance 1; zeros if all elements are equal."""
    flat = sample.reshape(-1).astype(np.float64)
    deviations = flat - (flat.mean() if flat.size else 0)
    deviations /= np.abs(deviations).max(initial=0) or 1
    spread = float(np.sqrt(np.square(deviations).mean())) if flat.size else 0.0
    result: Array = deviations / spread if spread > 0 else np.zeros_like(deviations)
    return result
