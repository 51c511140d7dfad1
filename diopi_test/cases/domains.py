"""Domains: from which values a case's tensors are drawn.

A domain takes a random generator, a number of elements and the element type, and gives that many values, as float64
(complex128, int64) still to be rounded to the type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.dtypes import COMPONENT, is_complex, is_floating
from diopi_proto.types import Dtype
from diopi_test.cases.formats import format_of, is_subnormal
from lib_rt.dtypes import to_numpy

Domain = Callable[[Generator, int, Dtype], NDArray[Any]]


def integer_range(dtype: Dtype) -> tuple[int, int]:
    """Smallest and largest value of an integer type; 0 and 1 for bool."""
    if dtype is Dtype.bool:
        return 0, 1
    limits = np.iinfo(to_numpy(dtype))
    return int(limits.min), int(limits.max)


def _integers(rng: Generator, count: int, low: float, high: float, dtype: Dtype) -> NDArray[Any]:
    smallest, largest = integer_range(dtype)
    lowest, highest = max(int(np.ceil(low)), smallest), min(int(np.floor(high)), largest)
    if lowest > highest:
        raise ValueError(f"no {dtype.name} lies in [{low}, {high}]")
    return rng.integers(lowest, highest, size=count, endpoint=True, dtype=np.int64)


def _by_parts(draw: Domain) -> Domain:
    """`draw` for real types; for complex ones, real and imaginary parts drawn one after the other."""

    @wraps(draw)
    def draw_parts(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        if not is_complex(dtype):
            return draw(rng, count, dtype)
        both = np.empty(count, np.complex128)
        both.real, both.imag = draw(rng, count, COMPONENT[dtype]), draw(rng, count, COMPONENT[dtype])
        return both

    return draw_parts


def uniform(low: float, high: float) -> Domain:
    """Uniform in [low, high); whole numbers of the closed interval for integer types."""

    @_by_parts
    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        if is_floating(dtype):
            return rng.uniform(low, high, count)
        return _integers(rng, count, low, high, dtype)

    return draw


def normal(scale: float = 1.0, mean: float = 0.0) -> Domain:
    """Normal with this mean and standard deviation; whole numbers within three deviations for integer types."""

    @_by_parts
    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        if is_floating(dtype):
            return rng.normal(mean, scale, count)
        return _integers(rng, count, mean - max(3 * scale, 3), mean + max(3 * scale, 3), dtype)

    return draw


def log_uniform(low_exponent: int, high_exponent: int, *, signed: bool = True) -> Domain:
    """Log-uniform magnitudes 2^low … 2^high within the normal numbers of the format, of either sign if `signed`."""

    @_by_parts
    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        if not is_floating(dtype):
            return _integers(rng, count, -(2.0**high_exponent) if signed else 0, 2.0**high_exponent, dtype)
        form = format_of(dtype)
        low, high = max(low_exponent, form.min_exponent), min(high_exponent, form.max_exponent)
        signs = rng.choice([-1.0, 1.0], count) if signed else 1.0
        return signs * np.exp2(rng.uniform(low, high, count))

    return draw


def integer_values(low: int, high: int) -> Domain:
    """Small whole numbers in [low, high], whatever the type: sums and products of them are exact."""

    @_by_parts
    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        values = _integers(rng, count, low, high, Dtype.int64 if is_floating(dtype) else dtype)
        return values.astype(np.float64) if is_floating(dtype) else values

    return draw


@_by_parts
def full_range(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Every value of an integer type alike, so that arithmetic wraps around; floats of magnitudes 2^-8 … 2^8."""
    if is_floating(dtype):
        return log_uniform(-8, 8)(rng, count, dtype)
    return _integers(rng, count, *integer_range(dtype), dtype)


def non_integers(low: int, high: int, margin: float = 0.1) -> Domain:
    """As `uniform`, but floating values keep `margin` away from every whole number, where floor and its like jump."""

    @_by_parts
    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        if not is_floating(dtype):
            return _integers(rng, count, low, high, dtype)
        return rng.integers(low, high, count) + rng.uniform(margin, 1 - margin, count)

    return draw


def avoid_points(points: Sequence[float], domain: Domain, margin: float = 0.05) -> Domain:
    """As `domain`, but floating values nearer than `margin` to one of `points` are pushed out to that distance."""

    @_by_parts
    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        values = domain(rng, count, dtype)
        if is_floating(dtype):
            for point in points:
                near = np.abs(values - point) < margin
                values = np.where(near, point + np.copysign(margin, values - point), values)
        return values

    return draw


def alternating_rows(width: int, *domains: Domain) -> Domain:
    """Rows of so many numbers, one of each domain after the other."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        drawn = np.stack([domain(rng, count, dtype).reshape(-1, width) for domain in domains])
        rows = np.arange(count // width)
        return drawn[rows % len(domains), rows].reshape(-1)

    return draw


@_by_parts
def distinct(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """All different, in random order, so that there are no ties; needs a type with at least `count` values."""
    if dtype is Dtype.bool:
        return np.asarray(np.arange(count) % 2 == 0)
    start = max(integer_range(dtype)[0], -(count // 2)) if not is_floating(dtype) else -(count // 2)
    values = rng.permutation(np.arange(start, start + count))
    return values / 4.0 if is_floating(dtype) else values


def choice(values: Sequence[complex]) -> Domain:
    """Any of `values`, all of them when there are elements enough."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        repeated = np.resize(np.asarray(values), count)
        return rng.permutation(repeated)

    return draw


def special_values(dtype: Dtype) -> NDArray[Any]:
    """What breaks implementations: zeros of both signs, infinities, NaN, subnormals, the ends of the range."""
    if not is_floating(dtype) and not is_complex(dtype):
        low, high = integer_range(dtype)
        return np.unique(np.array([low, low + 1, -1, 0, 1, 2, high - 1, high]).clip(low, high))
    form = format_of(dtype)
    positive = [0.0, form.subnormal, form.tiny - form.subnormal, form.tiny, 0.5, 1.0, 2.0, form.largest, np.inf]
    values = np.array([*positive, *(-value for value in positive), np.nan])
    if is_complex(dtype):
        few = np.array([0.0, -0.0, 1.0, -1.0, np.inf, np.nan])
        return np.array([complex(real, imaginary) for real in few for imaginary in few])
    return values


def subnormal(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """Subnormal numbers of both signs and a zero, which are equal only if subnormal numbers are taken for zero."""
    multiples = np.array([0, 1, -1, 2, -2, 7, -7, 100, -100])
    return rng.permutation(np.resize(multiples, count)) * format_of(dtype).subnormal


def tiny_multiples(*multiples: float) -> Domain:
    """Multiples of the least normal number of the type, whose differences and remainders may be subnormal."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        return rng.permutation(np.resize(np.array(multiples), count)) * format_of(dtype).tiny

    return draw


def special(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """The special values of the type in their order, repeated to the number of elements."""
    return np.resize(special_values(dtype), count)


@_by_parts
def any_value(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """The whole range of the type, with special values but subnormal ones scattered in it: for data that is moved."""
    ends = special_values(dtype)
    if is_floating(dtype):
        ends = ends[~is_subnormal(ends, dtype)]
    values = full_range(rng, count, dtype)
    values[::3] = rng.choice(ends, len(values[::3]))
    return rng.permutation(values)


def half_zeros(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """As `any_value`, but half of the elements are zeros, of either sign."""
    values = any_value(rng, count, dtype)
    is_exact = not is_floating(dtype) and not is_complex(dtype)
    zeros = np.zeros(count, np.int64) if is_exact else np.where(rng.random(count) < 0.5, 0.0, -0.0)
    return np.asarray(np.where(rng.random(count) < 0.5, zeros, values))


def half_nan(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
    """NaN in the first half of the elements, then as `normal`: whole samples or channels that have no other number."""
    values = normal()(rng, count, dtype)
    values[: count // 2] = np.nan
    return values


def with_value_in_middle(value: float, others: Domain) -> Domain:
    """As `others`, but for this value in the middle."""

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        values = others(rng, count, dtype)
        values[count // 2] = value
        return values

    return draw


def special_except(*left_out: float) -> Domain:
    """As `special`, without the values whose result is left open; −0.0 and 0.0 are two."""

    def is_left_out(value: complex) -> bool:
        return any(
            np.array_equal(value, other, equal_nan=True) and np.signbit(value) == np.signbit(other)
            for other in left_out
        )

    def draw(rng: Generator, count: int, dtype: Dtype) -> NDArray[Any]:
        return np.resize(np.array([value for value in special_values(dtype) if not is_left_out(value)]), count)

    return draw
