"""Domains: the sets and distributions from which the values of a case's tensors are drawn.

A domain is a function of a random generator, a number of elements and an element type. It returns a vector of this many
values in float64, complex128, int64 or bool. The values are not yet rounded to the element type.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from typing import Any, ParamSpec

import numpy as np
from numpy.random import Generator, Philox
from numpy.typing import NDArray

from diopi_proto.dtypes import COMPONENT, is_complex, is_floating
from diopi_proto.types import Dtype
from lib_rt.dtypes import integer_range
from lib_rt.formats import format_of, is_subnormal

Domain = Callable[[Generator, int, Dtype], NDArray[Any]]
"""Returns a vector of `count` values for a random generator, `count` and an element type.

The caller rounds the values to the element type and gives them the shape of a tensor.
"""

_Parameters = ParamSpec("_Parameters")
"""The parameters of a function that returns a domain."""


def random_generator(*key: str) -> Generator:
    """Return a counter-based random generator seeded only by the words of `key` (Philox, Salmon et al. 2011)."""
    digest = hashlib.sha256("\0".join(key).encode()).digest()
    return Generator(Philox(key=int.from_bytes(digest[:16], "little")))


def _random_integers(rng: Generator, count: int, low: float, high: float, dtype: Dtype) -> NDArray[Any]:
    """Draw uniform integers from the part of [low, high] that the type represents; raise ValueError if it is empty."""
    smallest, largest = integer_range(dtype)
    lowest, highest = max(int(np.ceil(low)), smallest), min(int(np.floor(high)), largest)
    if lowest > highest:
        raise ValueError(f"the range [{low}, {high}] contains no value of type {dtype.name}")
    return rng.integers(lowest, highest, size=count, endpoint=True, dtype=np.int64)


def _draws_complex_parts(draw: Domain) -> Domain:
    """Return a domain that extends `draw` to complex types: it draws all real parts first, then all imaginary parts."""

    @wraps(draw)
    def draw_parts(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        if not is_complex(dtype):
            return draw(rng, count, dtype)
        parts = np.empty(count, np.complex128)
        parts.real, parts.imag = draw(rng, count, COMPONENT[dtype]), draw(rng, count, COMPONENT[dtype])
        return parts

    return draw_parts


def _one_per_arguments(make: Callable[_Parameters, Domain]) -> Callable[_Parameters, Domain]:
    """Return `make` with a cache: equal arguments give the same domain, so that domains can be keys of caches."""
    cached: Callable[..., Domain] = lru_cache(maxsize=None, typed=True)(make)
    return cached


@_one_per_arguments
def uniform(low: float, high: float) -> Domain:
    """Return a domain of uniformly distributed values in [low, high); for integer types, integers in [low, high]."""

    @_draws_complex_parts
    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        if is_floating(dtype):
            return rng.uniform(low, high, count)
        return _random_integers(rng, count, low, high, dtype)

    return draw


@_one_per_arguments
def normal(scale: float = 1.0, mean: float = 0.0) -> Domain:
    """Return a domain of normally distributed values.

    For integer types, the domain is uniform: integers at a distance of at most 3·scale, or 3, from the mean.

    Args:
        scale: The standard deviation.
        mean: The mean.

    Returns:
        The domain.
    """

    @_draws_complex_parts
    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        if is_floating(dtype):
            return rng.normal(mean, scale, count)
        return _random_integers(rng, count, mean - max(3 * scale, 3), mean + max(3 * scale, 3), dtype)

    return draw


@_one_per_arguments
def log_uniform(low_exponent: int, high_exponent: int, *, signed: bool = True) -> Domain:
    """Return a domain of numbers whose logarithm is uniformly distributed.

    Args:
        low_exponent: The base-2 logarithm of the smallest magnitude.
        high_exponent: The base-2 logarithm of the largest magnitude. Both exponents are limited to those of normal
            numbers of the type.
        signed: Whether half of the numbers are negative, on average.

    Returns:
        The domain. For integer types, it draws uniform integers with magnitudes up to 2^high_exponent.
    """

    @_draws_complex_parts
    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        if not is_floating(dtype):
            return _random_integers(rng, count, -(2.0**high_exponent) if signed else 0, 2.0**high_exponent, dtype)
        form = format_of(dtype)
        low, high = max(low_exponent, form.min_exponent), min(high_exponent, form.max_exponent)
        signs = rng.choice([-1.0, 1.0], count) if signed else 1.0
        return signs * np.exp2(rng.uniform(low, high, count))

    return draw


@_one_per_arguments
def integer_values(low: int, high: int) -> Domain:
    """Return a domain of uniform integers in [low, high], for every element type.

    If the limits are small, floating-point types represent sums and products of the integers exactly.
    """

    @_draws_complex_parts
    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        values = _random_integers(rng, count, low, high, Dtype.int64 if is_floating(dtype) else dtype)
        return values.astype(np.float64) if is_floating(dtype) else values

    return draw


@_draws_complex_parts
def full_range(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Draw integers from the whole range, so that arithmetic wraps around; floating numbers from 2^-8 to 2^8."""
    if is_floating(dtype):
        return log_uniform(-8, 8)(rng, count, dtype)
    return _random_integers(rng, count, *integer_range(dtype), dtype)


@_one_per_arguments
def non_integers(low: int, high: int, margin: float = 0.1) -> Domain:
    """Return a domain of values in [low, high] that have at least the distance `margin` from all integers.

    Functions such as floor jump at integers. For integer types, the domain draws integers in [low, high].
    """

    @_draws_complex_parts
    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        if not is_floating(dtype):
            return _random_integers(rng, count, low, high, dtype)
        return rng.integers(low, high, count) + rng.uniform(margin, 1 - margin, count)

    return draw


def avoid_points(points: Sequence[float], domain: Domain, margin: float = 0.05) -> Domain:
    """Return a domain without floating-point values near some points.

    Args:
        points: The points. They should be at least two margins apart.
        domain: The domain from which values are drawn.
        margin: The least distance from a point. Values that are nearer to a point are moved to this distance.

    Returns:
        The new domain. Integer values are not changed.
    """

    @_draws_complex_parts
    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        values = domain(rng, count, dtype)
        if is_floating(dtype):
            for point in points:
                near = np.abs(values - point) < margin
                values = np.where(near, point + np.copysign(margin, values - point), values)
        return values

    return draw


def alternating_rows(width: int, *domains: Domain) -> Domain:
    """Return a domain of rows of `width` numbers, with the rows drawn from each of `domains` in rotation."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        samples = np.stack([domain(rng, count, dtype).reshape(-1, width) for domain in domains])
        rows = np.arange(count // width)
        return samples[rows % len(domains), rows].reshape(-1)

    return draw


@_draws_complex_parts
def distinct(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Return different values in random order, so that there are no ties.

    Integers are consecutive, other values are consecutive multiples of 1/4. The type must represent at least `count`
    such values. For bool, which has only two values, true and false alternate.
    """
    if dtype is Dtype.bool:
        return np.asarray(np.arange(count) % 2 == 0)
    start = max(integer_range(dtype)[0], -(count // 2)) if not is_floating(dtype) else -(count // 2)
    values = rng.permutation(np.arange(start, start + count))
    return values / 4.0 if is_floating(dtype) else values


def choice(values: Sequence[complex]) -> Domain:
    """Return a domain that repeats `values` up to the number of elements and shuffles the result.

    If the number of elements is a multiple of the number of values, all values occur equally often.
    """

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        repeated = np.resize(np.asarray(values), count)
        return rng.permutation(repeated)

    return draw


def special_values(dtype: Dtype) -> NDArray[Any]:
    """Return values of a type with which functions often fail.

    They are zeros of both signs, infinities, NaN, subnormal numbers and the ends of the range; for complex types, all
    pairs of 0.0, −0.0, 1, −1, ∞ and NaN; for integer types, the ends of the range, and small integers.
    """
    if not is_floating(dtype) and not is_complex(dtype):
        low, high = integer_range(dtype)
        return np.unique(np.array([low, low + 1, -1, 0, 1, 2, high - 1, high]).clip(low, high))
    form = format_of(dtype)
    positive = [0.0, form.subnormal, form.tiny - form.subnormal, form.tiny, 0.5, 1.0, 2.0, form.largest, np.inf]
    values = np.array([*positive, *(-value for value in positive), np.nan])
    if is_complex(dtype):
        parts = np.array([0.0, -0.0, 1.0, -1.0, np.inf, np.nan])
        return np.array([complex(real, imaginary) for real in parts for imaginary in parts])
    return values


def subnormal(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Draw zeros, and subnormal numbers of both signs; all are equal if subnormal numbers are flushed to zero."""
    multiples = np.array([0, 1, -1, 2, -2, 7, -7, 100, -100])
    return rng.permutation(np.resize(multiples, count)) * format_of(dtype).subnormal


def tiny_multiples(*multiples: float) -> Domain:
    """Return a domain of `multiples` times the least normal number, in random order.

    Multiples below 1 in magnitude, and the differences of some others, are subnormal.
    """

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        return rng.permutation(np.resize(np.array(multiples), count)) * format_of(dtype).tiny

    return draw


def special(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Return the first `count` values of the sequence that repeats `special_values` in order."""
    return np.resize(special_values(dtype), count)


@_draws_complex_parts
def any_value(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Draw values for functions that only move data: as `full_range`, with one third replaced by special values.

    Args:
        rng: The random generator.
        count: The number of values.
        dtype: The element type.

    Returns:
        The values; subnormal numbers are not among the special values.
    """
    ends = special_values(dtype)
    if is_floating(dtype):
        ends = ends[~is_subnormal(ends, dtype)]
    values = full_range(rng, count, dtype)
    values[::3] = rng.choice(ends, len(values[::3]))
    return rng.permutation(values)


def half_zeros(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Draw as `any_value`, and replace about half of the elements by zeros, of either sign except in integer types."""
    values = any_value(rng, count, dtype)
    is_exact = not is_floating(dtype) and not is_complex(dtype)
    zeros = np.zeros(count, np.int64) if is_exact else np.where(rng.random(count) < 0.5, 0.0, -0.0)
    return np.asarray(np.where(rng.random(count) < 0.5, zeros, values))


def half_nan(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Return NaN for the first half of the elements, and normally distributed numbers for the others.

    In a tensor with several samples or channels, some therefore contain only NaN.
    """
    values = normal()(rng, count, dtype)
    values[: count // 2] = np.nan
    return values


def with_value_in_middle(value: float, domain: Domain) -> Domain:
    """Return a domain that draws from `domain` and replaces the middle element, at position count // 2, by `value`."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        values = domain(rng, count, dtype)
        values[count // 2] = value
        return values

    return draw


def special_except(*excluded: float) -> Domain:
    """Return a domain that repeats the special values of the type except `excluded`; −0.0 and 0.0 differ."""

    def is_excluded(value: complex) -> bool:
        return any(
            np.array_equal(value, candidate, equal_nan=True) and np.signbit(value) == np.signbit(candidate)
            for candidate in excluded
        )

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        return np.resize(np.array([value for value in special_values(dtype) if not is_excluded(value)]), count)

    return draw
