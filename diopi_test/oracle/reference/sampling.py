"""Bilinear samples of planes at arbitrary positions, and their gradients.

A plane is one channel of an image, with shape (H, W). A sample is a weighted sum of the four elements around its
position, called its *cells*.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.
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
"""A function whose result elements are sums of products of an element of either array."""


POSITION_ERROR = K * 2.0**-24
"""The largest accepted error of a position, divided by its terms: K half-ulps of float32."""


def with_zero_terms(value: Array) -> WithTerms:
    """Return `value`, which has no rounding error, with terms of 0."""
    return WithTerms(value, np.zeros(value.shape))


def stack_results(parts: Sequence[WithTerms], shape: tuple[int, ...]) -> WithTerms:
    """Return results of equal shape as one result of the shape `shape`; zeros if there are no results."""
    if not parts:
        return with_zero_terms(np.zeros(shape))
    return WithTerms(*(np.stack([getattr(part, name) for part in parts]).reshape(shape) for name in ("value", "terms")))


def sum_rounded_products(sums: BilinearFunction, a: WithTerms, b: WithTerms) -> WithTerms:
    """Return `sums(a, b)` with its terms: those of the sums, and the propagated terms of both operands."""
    product = sum_products(sums, a.value, b.value)
    operand_terms = sums(a.terms, np.abs(b.value)) + sums(np.abs(a.value), b.terms)
    return WithTerms(product.value, product.terms + operand_terms)


@final
@dataclass(frozen=True)
class Coordinate:
    """Positions along an axis, in elements, and their terms.

    Attributes:
        value: The positions; 0 is the position of the first element.
        terms: The terms of the positions, in the same shape.
    """

    value: Array
    terms: Array

    @property
    def stays_in_cell(self) -> Array:
        """Return a mask of the positions that are exactly on an element, or that rounding cannot move to an element.

        The derivatives of a sample jump at the elements. They are not checked for other positions.
        """
        distance = np.abs(self.value - np.rint(self.value))
        return (distance == 0) | (distance > POSITION_ERROR * self.terms)


@final
@dataclass(frozen=True, kw_only=True)
class AxisCells:
    """The two cells of an axis around each position. Arrays have shape (2, …), where … is the shape of the positions.

    Attributes:
        index: The index of the cell on the axis.
        is_valid: Whether the cell is an element of the axis; other cells count as zeros.
        weight: The weight of the cell in the sample.
        slope: The derivative of the weight with respect to the position.
    """

    index: Array
    is_valid: Array
    weight: WithTerms
    slope: WithTerms


def clamped_cells(position: Coordinate, length: int) -> AxisCells:
    """Return the cells of an axis that continues with its first and last element for a distance of 1 on both sides.

    Samples that are farther outside are 0.

    Args:
        position: The positions.
        length: The number of elements of the axis.
    """
    inside = (position.value >= -1) & (position.value <= length)
    clamped = np.clip(position.value, 0, length - 1)
    low = np.minimum(np.floor(clamped), length - 1)
    fraction = clamped - low
    is_free = inside & (clamped == position.value)
    index = np.array([low, np.minimum(low + 1, length - 1)]).astype(int)
    return _axis_cells(index, fraction, np.array([inside, inside]), np.array([is_free, is_free]), position.terms)


def zero_padded_cells(position: Coordinate, length: int) -> AxisCells:
    """Return the cells of an axis of `length` elements that continues with zeros on both sides."""
    inside = (position.value > -1) & (position.value < length)
    low = np.floor(position.value)
    index = np.array([low, low + 1])
    is_valid = inside & (index >= 0) & (index < length)
    return _axis_cells(
        np.clip(index, 0, length - 1).astype(int), position.value - low, is_valid, is_valid, position.terms
    )


def _axis_cells(index: Array, fraction: Array, is_valid: Array, is_free: Array, terms: Array) -> AxisCells:
    """Return the two cells around each position, with the weights 1 − fraction and fraction.

    Args:
        index: The index of each cell, (2, …).
        fraction: The distance of the position from the lower cell.
        is_valid: Which cells are elements of the axis, (2, …).
        is_free: Which weights depend on the position, so that they have a slope, (2, …).
        terms: The terms of the positions.
    """
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
    """The four cells around each sample of a plane. Arrays have shape (4, S…), where S… is the shape of the samples.

    Attributes:
        index: The indices of the cells in the flattened plane; −1 for a cell that counts as zero.
        weight: The weights of the cells in the sample.
        slope_y: The derivatives of the weights with respect to y.
        slope_x: The derivatives of the weights with respect to x.
    """

    index: Array
    weight: WithTerms
    slope_y: WithTerms
    slope_x: WithTerms


def bilinear_samples(y: AxisCells, x: AxisCells, width: int) -> BilinearSamples:
    """Return the cells of samples from their cells along y and along x, for planes that are `width` elements wide."""

    def cross(along_y: WithTerms, along_x: WithTerms) -> WithTerms:
        """Return the products of weights along y and along x, with their terms."""
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
    """Return the bilinear function of weights (4, S…) and planes (…, H·W) that computes samples (…, S…).

    Args:
        index: The indices of the four cells of each sample, (4, S…) (`BilinearSamples.index`).
    """

    def sums(weights: Array, planes: Array) -> Array:
        """Return the weighted sums of four cells."""
        with_zero = np.concatenate([planes, np.zeros((*planes.shape[:-1], 1))], -1)
        return np.asanyarray(np.sum(with_zero[..., index] * weights, -index.ndim))

    return sums


def make_scatter(index: Array, size: int) -> BilinearFunction:
    """Return the gradient of `make_gather`: a function of weights (4, S…) and samples (C, S…) to planes (C, size).

    Args:
        index: The indices of the four cells of each sample, (4, S…).
        size: The number of elements of a plane.
    """

    def sums(weights: Array, values: Array) -> Array:
        """Return planes with each sample, times its weights, added to four cells."""
        planes = np.zeros_like(values, shape=(len(values), size + 1))
        summands = np.broadcast_to(values[:, np.newaxis] * weights, (len(values), *index.shape))
        selection: Any = (slice(None), index)
        np.add.at(planes, selection, summands)
        return planes[:, :size]

    return sums
