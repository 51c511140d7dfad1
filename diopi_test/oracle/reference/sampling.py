"""Bilinear samples of planes at given positions, and their adjoint: the four cells around each and their weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.budget import K
from diopi_test.oracle.reference import WithTerms
from diopi_test.oracle.reference.products import with_terms

Array = NDArray[Any]
Sums = Callable[[Array, Array], Array]
"""A bilinear function: every element of it is a sum of products."""


ROUNDED = K * 2.0**-24
"""By how much of its terms a position may be off: K half-ulps of float32."""


def exact(value: Array) -> WithTerms:
    """A value that is given: no rounding made it."""
    return WithTerms(value, np.zeros(value.shape))


def scaled(factor: Any, given: WithTerms) -> WithTerms:
    """A value times what broadcasts to it."""
    return WithTerms(factor * given.value, np.abs(factor) * given.terms)


def stacked(parts: Sequence[WithTerms], shape: tuple[int, ...]) -> WithTerms:
    """Several results as one of this shape."""
    values, terms = (np.reshape([getattr(part, name) for part in parts], shape) for name in ("value", "terms"))
    return WithTerms(values, terms)


def combined(sums: Sums, a: WithTerms, b: WithTerms) -> WithTerms:
    """`sums(a, b)` with the terms of the sums, and with those that the operands have already."""
    product = with_terms(sums, a.value, b.value)
    given = sums(a.terms, np.abs(b.value)) + sums(np.abs(a.value), b.terms)
    return WithTerms(product.value, product.terms + given)


@final
@dataclass(frozen=True)
class Coordinate:
    """Positions along an axis, and how large the terms are that they are computed from."""

    value: Array
    terms: Array

    @property
    def is_between(self) -> Array:
        """Whether a position stays between the same elements where it is rounded; derivatives jump on elements."""
        distance = np.abs(self.value - np.rint(self.value))
        return (distance == 0) | (distance > ROUNDED * self.terms)


@final
@dataclass(frozen=True)
class Cells:
    """The two elements of an axis around each position, their weights, and the weights' derivatives: (2, …) each.

    Those that are not `there` count as zeros.
    """

    index: Array
    there: Array
    weight: WithTerms
    slope: WithTerms


def bordered(at: Coordinate, length: int) -> Cells:
    """Up to one element outside the axis what counts is the element at its end, and nothing further out."""
    inside = (at.value >= -1) & (at.value <= length)
    place = np.clip(at.value, 0, length - 1)
    low = np.minimum(np.floor(place), length - 1)
    part = place - low
    free = inside & (place == at.value)
    index = np.array([low, np.minimum(low + 1, length - 1)]).astype(int)
    return _cells(index, part, np.array([inside, inside]), np.array([free, free]), at.terms)


def zero_padded(at: Coordinate, length: int) -> Cells:
    """The axis continues with zeros on both sides."""
    inside = (at.value > -1) & (at.value < length)
    low = np.floor(at.value)
    index = np.array([low, low + 1])
    there = inside & (index >= 0) & (index < length)
    return _cells(np.clip(index, 0, length - 1).astype(int), at.value - low, there, there, at.terms)


def _cells(index: Array, part: Array, there: Array, free: Array, terms: Array) -> Cells:
    """Cells with weights 1 − part and part, where they count; `free` is where the position moves them."""
    weights, slopes = np.array([1 - part, part]), np.array([-np.ones(part.shape), np.ones(part.shape)])
    return Cells(
        index,
        there,
        WithTerms(np.where(there, weights, 0), np.where(there, terms, 0)),
        WithTerms(np.where(free, slopes, 0), np.zeros(index.shape)),
    )


@final
@dataclass(frozen=True)
class Samples:
    """For each sample (S…) of a flattened plane the four cells around it: (4, S…).

    Attributes:
        index: their positions, −1 for a cell that counts as zero.
        weight: of them in the sample.
        by_y, by_x: the derivatives of the weights by the sample's coordinates.
    """

    index: Array
    weight: WithTerms
    by_y: WithTerms
    by_x: WithTerms


def samples(y: Cells, x: Cells, width: int) -> Samples:
    """The samples at positions along both axes of planes of this width."""

    def crossed(one: WithTerms, other: WithTerms) -> WithTerms:
        a, b = one.value[:, np.newaxis], other.value[np.newaxis]
        terms = np.abs(a) * other.terms[np.newaxis] + one.terms[:, np.newaxis] * np.abs(b)
        return WithTerms(_flat(a * b), _flat(terms))

    there = y.there[:, np.newaxis] & x.there[np.newaxis]
    index = _flat(np.where(there, y.index[:, np.newaxis] * width + x.index[np.newaxis], -1))
    return Samples(index, crossed(y.weight, x.weight), crossed(y.slope, x.weight), crossed(y.weight, x.slope))


def _flat(corners: Array) -> Array:
    return corners.reshape(4, *corners.shape[2:])


def taken(index: Array) -> Sums:
    """From weights (4, S…) and planes (…, H·W) to samples (…, S…)."""

    def sums(weights: Array, planes: Array) -> Array:
        with_zero = np.concatenate([planes, np.zeros((*planes.shape[:-1], 1))], -1)
        return np.asarray(np.sum(with_zero[..., index] * weights, -index.ndim))

    return sums


def put(index: Array, size: int) -> Sums:
    """The adjoint of `taken`: from weights (4, S…) and samples (C, S…) to planes (C, H·W) of this size."""

    def sums(weights: Array, given: Array) -> Array:
        planes = np.zeros((len(given), size + 1))
        summands = np.broadcast_to(given[:, np.newaxis] * weights, (len(given), *index.shape))
        places: Any = (slice(None), index)
        np.add.at(planes, places, summands)
        return planes[:, :size]

    return sums
