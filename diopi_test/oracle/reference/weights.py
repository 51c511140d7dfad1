"""Sums of elements with weights along each axis, for resizing and for pooling of regions.

The *terms* of a result (`WithTerms`) are sizes of intermediate values. The error budget of an element allows an error
of eps times its terms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import PartlySpecified, WithTerms

Array = NDArray[Any]


@final
@dataclass(frozen=True)
class AxisWeights:
    """The weight of each input element (column) in each result element (row) of an axis.

    Attributes:
        matrix: The weights, (size of the result, size of the input).
        terms: The size of the terms that cancel when a weight is computed.
    """

    matrix: Array
    terms: Array

    @property
    def transposed(self) -> AxisWeights:
        """Return the weights for the gradient: the transposed matrices."""
        return AxisWeights(self.matrix.T, self.terms.T)


def multiply_axes(matrices: Sequence[Array], array: Array) -> Array:
    """Return `array` with each of its last axes multiplied by a matrix."""
    for axis, matrix in enumerate(matrices, array.ndim - len(matrices)):
        array = np.moveaxis(np.tensordot(matrix, array, (1, axis)), 0, axis)
    return array


def weighted_sum(weights: Sequence[AxisWeights], array: Array) -> WithTerms:
    """Return sums of weight · element with their terms, which include the terms of the weights.

    A weight of 0 may be as large as its error in float32. This error matters where the weights of all axes are 0.

    Args:
        weights: The weights of each of the last axes.
        array: The elements.

    Returns:
        The sums.
    """
    sizes = [np.abs(axis.matrix) + 2.0**-23 * axis.terms for axis in weights]
    terms = multiply_axes(sizes, np.abs(array))
    for k, axis in enumerate(weights):
        terms = terms + multiply_axes([*sizes[:k], axis.terms, *sizes[k + 1 :]], np.abs(array))
    return WithTerms(multiply_axes([axis.matrix for axis in weights], array), terms)


def sum_with_nonfinite(sums: Callable[..., Array], array: Array, *weights: Array) -> Array:
    """Return `sums(array, *weights)`; infinities and NaN contribute only where their weight is not 0."""
    total = sums(np.where(np.isfinite(array), array, 0), *weights)
    if not np.isfinite(array).all():
        for value, is_value in ((np.inf, array == np.inf), (-np.inf, array == -np.inf), (np.nan, np.isnan(array))):
            total = np.where(sums(is_value.astype(np.float64), *map(np.abs, weights)) > 0, total + value, total)
    return total


def replace_nonfinite(array: Array) -> Array:
    """Return `array` with zeros in place of infinities and NaN."""
    return np.where(np.isfinite(array), array, 0)


def add_nonfinite(weights: Sequence[AxisWeights], array: Array, finite_sums: WithTerms) -> WithTerms | PartlySpecified:
    """Return sums of weight · element for arrays with infinities and NaN.

    A NaN with a nonzero weight makes the sum NaN. A sum near other infinities or NaN is unspecified: implementations
    differ in whether a weight of 0, or weights of both signs for one element, make it NaN.

    Args:
        weights: The weights of each of the last axes.
        array: The elements.
        finite_sums: The sums of the finite elements only.

    Returns:
        `finite_sums` if all elements are finite, else the partly specified sums.
    """
    if np.isfinite(array).all():
        return finite_sums
    has_nan = multiply_axes([(axis.matrix != 0) * 1.0 for axis in weights], np.isnan(array) * 1.0) > 0
    reach = [((axis.matrix != 0) | (axis.terms > 0)) * 1.0 for axis in weights]
    in_reach = multiply_axes(reach, ~np.isfinite(array) * 1.0) > 0
    return PartlySpecified(
        WithTerms(np.where(has_nan, np.nan, finite_sums.value), finite_sums.terms), has_nan | ~in_reach
    )
