"""Domains: the sets and distributions from which the values of a case's tensors are drawn.

A case is one call of a function with test data. Every tensor of a case has a domain.

A domain is a function of a random generator, a number of elements and an element type. It returns a vector of this many
values in float64, complex128, int64 or bool. The values are not yet rounded to the element type. Unless a docstring
says otherwise, a domain draws the real and the imaginary parts of complex numbers independently.
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
    """Return a random generator that is seeded with `key` only, so that equal keys give equal numbers on all machines.

    The generator is counter-based (Philox, Salmon et al. 2011).

    Args:
        *key: The words of the key, such as the names of a function, a case and an argument.

    Returns:
        The generator.
    """
    digest = hashlib.sha256("\0".join(key).encode()).digest()
    return Generator(Philox(key=int.from_bytes(digest[:16], "little")))


def _random_integers(rng: Generator, count: int, low: float, high: float, dtype: Dtype) -> NDArray[Any]:
    """Return `count` uniform integers from the part of [low, high] that the integer type `dtype` represents.

    Raises:
        ValueError: The type represents no integer in [low, high].
    """
    smallest, largest = integer_range(dtype)
    lowest, highest = max(int(np.ceil(low)), smallest), min(int(np.floor(high)), largest)
    if lowest > highest:
        raise ValueError(f"the range [{low}, {high}] contains no value of type {dtype.name}")
    return rng.integers(lowest, highest, size=count, endpoint=True, dtype=np.int64)


def _extend_to_complex(draw: Domain) -> Domain:
    """Return a domain that extends `draw`, a domain of real numbers, to complex types.

    For a complex type, the new domain draws all real parts first, then all imaginary parts.
    """

    @wraps(draw)
    def draw_parts(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        if not is_complex(dtype):
            return draw(rng, count, dtype)
        parts = np.empty(count, np.complex128)
        parts.real, parts.imag = draw(rng, count, COMPONENT[dtype]), draw(rng, count, COMPONENT[dtype])
        return parts

    return draw_parts


def _cache_domains(make: Callable[_Parameters, Domain]) -> Callable[_Parameters, Domain]:
    """Return a version of `make` that returns the same domain object whenever its arguments are equal.

    Other caches use domains as keys and therefore need identical objects.

    Args:
        make: A function that returns a domain.

    Returns:
        The function with a cache.
    """
    cached: Callable[..., Domain] = lru_cache(maxsize=None, typed=True)(make)
    return cached


@_cache_domains
def uniform(low: float, high: float) -> Domain:
    """Return a domain of uniformly distributed values in [low, high); for integer types, integers in [low, high].

    The range of integers is limited to the values of the element type, {0, 1} for bool.
    """

    @_extend_to_complex
    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        if is_floating(dtype):
            return rng.uniform(low, high, count)
        return _random_integers(rng, count, low, high, dtype)

    return draw


@_cache_domains
def normal(scale: float = 1.0, mean: float = 0.0) -> Domain:
    """Return a domain of normally distributed values.

    For integer types, the domain is uniform: integers that differ from the mean by at most max(3 · scale, 3).

    Args:
        scale: The standard deviation.
        mean: The mean.

    Returns:
        The domain.
    """

    @_extend_to_complex
    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        if is_floating(dtype):
            return rng.normal(mean, scale, count)
        return _random_integers(rng, count, mean - max(3 * scale, 3), mean + max(3 * scale, 3), dtype)

    return draw


@_cache_domains
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

    @_extend_to_complex
    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        if not is_floating(dtype):
            return _random_integers(rng, count, -(2.0**high_exponent) if signed else 0, 2.0**high_exponent, dtype)
        form = format_of(dtype)
        low, high = max(low_exponent, form.min_exponent), min(high_exponent, form.max_exponent)
        signs = rng.choice([-1.0, 1.0], count) if signed else 1.0
        return signs * np.exp2(rng.uniform(low, high, count))

    return draw


@_cache_domains
def integer_values(low: int, high: int) -> Domain:
    """Return a domain of uniform integers in [low, high], for every element type.

    If the limits are small, floating-point types represent sums and products of the integers exactly.
    """

    @_extend_to_complex
    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        values = _random_integers(rng, count, low, high, Dtype.int64 if is_floating(dtype) else dtype)
        return values.astype(np.float64) if is_floating(dtype) else values

    return draw


@_extend_to_complex
def full_range(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Return integers from the whole range of the type, or floating-point numbers with magnitudes from 2^-8 to 2^8.

    Sums and products of such integers overflow, so that a test can see whether they wrap around.
    """
    if is_floating(dtype):
        return log_uniform(-8, 8)(rng, count, dtype)
    return _random_integers(rng, count, *integer_range(dtype), dtype)


@_cache_domains
def non_integers(low: int, high: int, margin: float = 0.1) -> Domain:
    """Return a domain of values in [low, high] that have at least the distance `margin` from all integers.

    Functions such as floor jump at integers. For integer types, the domain draws integers in [low, high].
    """

    @_extend_to_complex
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

    @_extend_to_complex
    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        values = domain(rng, count, dtype)
        if is_floating(dtype):
            for point in points:
                near = np.abs(values - point) < margin
                values = np.where(near, point + np.copysign(margin, values - point), values)
        return values

    return draw


def alternating_rows(width: int, *domains: Domain) -> Domain:
    """Return a domain of rows, each of which is drawn from the next of several domains, in rotation.

    Args:
        width: The number of elements of a row. The number of elements to draw must be a multiple of it.
        *domains: The domains of the first row, the second row, and so on.

    Returns:
        The domain.
    """

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        samples = np.stack([domain(rng, count, dtype).reshape(-1, width) for domain in domains])
        rows = np.arange(count // width)
        return samples[rows % len(domains), rows].reshape(-1)

    return draw


@_extend_to_complex
def distinct(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Return different values in random order, for functions whose results are ambiguous if two elements are equal.

    Integers are consecutive, other values are consecutive multiples of 1/4. The type must represent at least `count`
    such values. For bool, which has only two values, true and false alternate.
    """
    if dtype is Dtype.bool:
        return np.asarray(np.arange(count) % 2 == 0)
    start = max(integer_range(dtype)[0], -(count // 2)) if not is_floating(dtype) else -(count // 2)
    values = rng.permutation(np.arange(start, start + count))
    return values / 4.0 if is_floating(dtype) else values


def choice(values: Sequence[complex]) -> Domain:
    """Return a domain that draws only from `values`.

    The domain repeats the values in order up to the number of elements, and shuffles the result. All values occur
    equally often if their number divides the number of elements. The domain draws complex numbers as a whole.
    """

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        repeated = np.resize(np.asarray(values), count)
        return rng.permutation(repeated)

    return draw


def special_values(dtype: Dtype) -> NDArray[Any]:
    """Return the values of an element type with which functions often fail, as a vector.

    - Floating-point types: zeros, subnormal numbers, 0.5, 1, 2, the smallest and the largest normal number and
      infinity, all with both signs; and NaN.
    - Complex types: all pairs of 0.0, −0.0, 1, −1, ∞ and NaN.
    - Integer types and bool: the ends of the range, the numbers next to them, and −1, 0, 1 and 2 as far as the type
      represents them.
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
    """Return zeros and subnormal numbers of both signs, for floating-point types.

    A device that flushes subnormal numbers to zero treats all of these values as equal.
    """
    multiples = np.array([0, 1, -1, 2, -2, 7, -7, 100, -100])
    return rng.permutation(np.resize(multiples, count)) * format_of(dtype).subnormal


def tiny_multiples(*multiples: float) -> Domain:
    """Return a domain of multiples of the smallest positive normal number, for floating-point types.

    Args:
        *multiples: The factors. They are repeated up to the number of elements and shuffled. A factor of magnitude
            below 1 gives a subnormal number, and so can the difference of two products.

    Returns:
        The domain.
    """

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        return rng.permutation(np.resize(np.array(multiples), count)) * format_of(dtype).tiny

    return draw


def special(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Return the first `count` values of the sequence that repeats `special_values(dtype)` in order.

    The generator is not used.
    """
    return np.resize(special_values(dtype), count)


@_extend_to_complex
def any_value(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Draw values for functions that only move data: `full_range` with every third value replaced by a special value.

    The order is random.

    Args:
        rng: The random generator.
        count: The number of values.
        dtype: The element type.

    Returns:
        The values. Subnormal numbers are not among them.
    """
    ends = special_values(dtype)
    if is_floating(dtype):
        ends = ends[~is_subnormal(ends, dtype)]
    values = full_range(rng, count, dtype)
    values[::3] = rng.choice(ends, len(values[::3]))
    return rng.permutation(values)


def half_zeros(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Draw `any_value` with about half of the elements replaced by zeros; in floating-point types, of both signs."""
    values = any_value(rng, count, dtype)
    is_integer_type = not is_floating(dtype) and not is_complex(dtype)
    zeros = np.zeros(count, np.int64) if is_integer_type else np.where(rng.random(count) < 0.5, 0.0, -0.0)
    return np.asarray(np.where(rng.random(count) < 0.5, zeros, values))


def half_nan(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Return NaN for the first half of the elements, and normally distributed numbers for the second half.

    In a tensor with several samples or channels, some of them therefore contain only NaN.
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
    """Return a domain that repeats the special values of the element type in order, without some of them.

    Args:
        *excluded: The values to leave out. 0.0 does not exclude −0.0; NaN excludes NaN.

    Returns:
        The domain.
    """

    def is_excluded(value: complex) -> bool:
        return any(
            np.array_equal(value, candidate, equal_nan=True) and np.signbit(value) == np.signbit(candidate)
            for candidate in excluded
        )

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        return np.resize(np.array([value for value in special_values(dtype) if not is_excluded(value)]), count)

    return draw
