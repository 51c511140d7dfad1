"""Weighted sums along each axis, for references that resize tensors or pool regions.

`WithTerms` contains a result and its *terms*: magnitudes of intermediate values that may cancel. The error budget of an
element allows an error of eps times the terms.
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
    """The weight of each input element (column) for each result element (row) along an axis.

    Attributes:
        matrix: The weights, with shape (size of the result, size of the input).
        terms: The magnitudes of intermediate values that cancel when the weights are computed, with the same shape.
    """

    matrix: Array
    terms: Array

    @property
    def transposed(self) -> AxisWeights:
        """Return the weights with transposed matrices, which the gradient needs."""
        return AxisWeights(self.matrix.T, self.terms.T)


def multiply_axes(matrices: Sequence[Array], array: Array) -> Array:
    """Return `array` with each of the last axes multiplied by the matrix of this axis."""
    for axis, matrix in enumerate(matrices, array.ndim - len(matrices)):
        array = np.moveaxis(np.tensordot(matrix, array, (1, axis)), 0, axis)
    return array


def weighted_sum(weights: Sequence[AxisWeights], array: Array) -> WithTerms:
    """Return weighted sums of the elements, with their terms, which include the terms of the weights.

    A float32 implementation may compute a small nonzero number instead of a weight of 0. The terms therefore count each
    weight with the float32 rounding error of its terms. This matters if the weights of several axes are 0.

    Args:
        weights: The weights of each of the last axes.
        array: The elements.

    Returns:
        The sums with their terms.
    """
    sizes = [np.abs(axis.matrix) + 2.0**-23 * axis.terms for axis in weights]
    terms = multiply_axes(sizes, np.abs(array))
    for k, axis in enumerate(weights):
        terms = terms + multiply_axes([*sizes[:k], axis.terms, *sizes[k + 1 :]], np.abs(array))
    return WithTerms(multiply_axes([axis.matrix for axis in weights], array), terms)


def sum_with_nonfinite(sums: Callable[..., Array], array: Array, *weights: Array) -> Array:
    """Return `sums(array, *weights)`. An infinity or NaN contributes only to sums in which its weight is not 0."""
    total = sums(np.where(np.isfinite(array), array, 0), *weights)
    if not np.isfinite(array).all():
        for value, is_value in ((np.inf, array == np.inf), (-np.inf, array == -np.inf), (np.nan, np.isnan(array))):
            total = np.where(sums(is_value.astype(np.float64), *map(np.abs, weights)) > 0, total + value, total)
    return total


def replace_nonfinite(array: Array) -> Array:
    """Return `array` with infinities and NaN replaced by zeros."""
    return np.where(np.isfinite(array), array, 0)


def add_nonfinite(weights: Sequence[AxisWeights], array: Array, finite_sums: WithTerms) -> WithTerms | PartlySpecified:
    """Return weighted sums of elements that may be infinite or NaN.

    A NaN with a nonzero weight makes the sum NaN. Other sums that an infinity or a NaN may affect are unspecified:
    implementations differ in whether they are NaN if the weight is 0, or is a sum of weights of both signs.

    Args:
        weights: The weights of each of the last axes.
        array: The elements.
        finite_sums: The weighted sums in which infinities and NaN are replaced by zeros.

    Returns:
        `finite_sums` if all elements are finite, else the partly specified sums.
    """
    if np.isfinite(array).all():
        return finite_sums
    has_nan = multiply_axes([(axis.matrix != 0) * 1.0 for axis in weights], np.isnan(array) * 1.0) > 0
    may_be_nonzero = [((axis.matrix != 0) | (axis.terms > 0)) * 1.0 for axis in weights]
    may_be_affected = multiply_axes(may_be_nonzero, ~np.isfinite(array) * 1.0) > 0
    return PartlySpecified(
        WithTerms(np.where(has_nan, np.nan, finite_sums.value), finite_sums.terms), has_nan | ~may_be_affected
    )
