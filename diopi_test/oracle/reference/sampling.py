"""Bilinear samples of planes at arbitrary positions, and their adjoint: four cells and their weights per sample.

The *terms* of a result (`WithTerms`) are sizes of intermediate values. The error budget of an element allows an error
of eps times its terms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.budget import K
from diopi_test.oracle.reference import WithTerms
from diopi_test.oracle.reference.products import sum_products

Array = NDArray[Any]
BilinearFunction = Callable[[Array, Array], Array]
"""A bilinear function: each element of the result is a sum of products of an element of both arguments."""


POSITION_ERROR = K * 2.0**-24
"""The error of a position relative to its terms: K half-ulps of float32."""


def with_zero_terms(value: Array) -> WithTerms:
    """Return a value that has no rounding error, with terms of 0."""
    return WithTerms(value, np.zeros(value.shape))


def stack_results(parts: Sequence[WithTerms], shape: tuple[int, ...]) -> WithTerms:
    """Return several results as one result of this shape."""
    values, terms = (np.reshape([getattr(part, name) for part in parts], shape) for name in ("value", "terms"))
    return WithTerms(values, terms)


def sum_rounded_products(sums: BilinearFunction, a: WithTerms, b: WithTerms) -> WithTerms:
    """Return `sums(a, b)` with the terms of the sums and the propagated terms of both operands."""
    product = sum_products(sums, a.value, b.value)
    operand_terms = sums(a.terms, np.abs(b.value)) + sums(np.abs(a.value), b.terms)
    return WithTerms(product.value, product.terms + operand_terms)


@final
@dataclass(frozen=True)
class Coordinate:
    """Positions along an axis, and the size of the terms that they are computed from."""

    value: Array
    terms: Array

    @property
    def stays_in_cell(self) -> Array:
        """Return whether rounding leaves a position between the same two elements; derivatives jump at elements."""
        distance = np.abs(self.value - np.rint(self.value))
        return (distance == 0) | (distance > POSITION_ERROR * self.terms)


@final
@dataclass(frozen=True, kw_only=True)
class AxisCells:
    """The two elements of an axis around each position, their weights and the derivatives of the weights: (2, …) each.

    Elements that are not `is_valid` count as zeros.
    """

    index: Array
    is_valid: Array
    weight: WithTerms
    slope: WithTerms


def clamped_cells(position: Coordinate, length: int) -> AxisCells:
    """Return cells that repeat the first and the last element for one step outside the axis; further out is zero."""
    inside = (position.value >= -1) & (position.value <= length)
    clamped = np.clip(position.value, 0, length - 1)
    low = np.minimum(np.floor(clamped), length - 1)
    fraction = clamped - low
    is_free = inside & (clamped == position.value)
    index = np.array([low, np.minimum(low + 1, length - 1)]).astype(int)
    return _axis_cells(index, fraction, np.array([inside, inside]), np.array([is_free, is_free]), position.terms)


def zero_padded_cells(position: Coordinate, length: int) -> AxisCells:
    """Return the cells of an axis that continues with zeros on both sides."""
    inside = (position.value > -1) & (position.value < length)
    low = np.floor(position.value)
    index = np.array([low, low + 1])
    is_valid = inside & (index >= 0) & (index < length)
    return _axis_cells(
        np.clip(index, 0, length - 1).astype(int), position.value - low, is_valid, is_valid, position.terms
    )


def _axis_cells(index: Array, fraction: Array, is_valid: Array, is_free: Array, terms: Array) -> AxisCells:
    """Return cells with weights 1 − fraction and fraction; `is_free` tells where the weights depend on the position."""
    weights, slopes = np.array([1 - fraction, fraction]), np.array([-np.ones(fraction.shape), np.ones(fraction.shape)])
    return AxisCells(
        index=index,
        is_valid=is_valid,
        weight=WithTerms(np.where(is_valid, weights, 0), np.where(is_valid, terms, 0)),
        slope=WithTerms(np.where(is_free, slopes, 0), np.zeros(index.shape)),
    )


@final
@dataclass(frozen=True, kw_only=True)
class BilinearSamples:
    """The four cells around each sample (S…) of a flattened plane: (4, S…).

    Attributes:
        index: The positions of the cells; −1 for a cell that counts as zero.
        weight: The weights of the cells in the sample.
        slope_y: The derivatives of the weights by y.
        slope_x: The derivatives of the weights by x.
    """

    index: Array
    weight: WithTerms
    slope_y: WithTerms
    slope_x: WithTerms


def bilinear_samples(y: AxisCells, x: AxisCells, width: int) -> BilinearSamples:
    """Return the samples at positions along both axes of planes of this width."""

    def cross(along_y: WithTerms, along_x: WithTerms) -> WithTerms:
        """Return the products of weights along y and along x."""
        a, b = along_y.value[:, np.newaxis], along_x.value[np.newaxis]
        terms = np.abs(a) * along_x.terms[np.newaxis] + along_y.terms[:, np.newaxis] * np.abs(b)
        return WithTerms(_flatten_corners(a * b), _flatten_corners(terms))

    is_valid = y.is_valid[:, np.newaxis] & x.is_valid[np.newaxis]
    index = _flatten_corners(np.where(is_valid, y.index[:, np.newaxis] * width + x.index[np.newaxis], -1))
    return BilinearSamples(
        index=index,
        weight=cross(y.weight, x.weight),
        slope_y=cross(y.slope, x.weight),
        slope_x=cross(y.weight, x.slope),
    )


def _flatten_corners(corners: Array) -> Array:
    """Return an array (2, 2, …) as (4, …)."""
    return corners.reshape(4, *corners.shape[2:])


def make_gather(index: Array) -> BilinearFunction:
    """Return the bilinear function of weights (4, S…) and planes (…, H·W) that computes samples (…, S…)."""

    def sums(weights: Array, planes: Array) -> Array:
        """Return the weighted sums of four cells."""
        with_zero = np.concatenate([planes, np.zeros((*planes.shape[:-1], 1))], -1)
        return np.asanyarray(np.sum(with_zero[..., index] * weights, -index.ndim))

    return sums


def make_scatter(index: Array, size: int) -> BilinearFunction:
    """Return the adjoint of `make_gather`: a function of weights (4, S…) and samples (C, S…) to planes (C, size)."""

    def sums(weights: Array, values: Array) -> Array:
        """Return planes with each sample, times its weights, added to four cells."""
        planes = np.zeros_like(values, shape=(len(values), size + 1))
        summands = np.broadcast_to(values[:, np.newaxis] * weights, (len(values), *index.shape))
        selection: Any = (slice(None), index)
        np.add.at(planes, selection, summands)
        return planes[:, :size]

    return sums
