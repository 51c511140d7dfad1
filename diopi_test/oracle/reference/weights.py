"""Weighted sums along each axis, for references that resize tensors or pool regions.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import PartlySpecified, WithTerms
from diopi_test.oracle.reference.sums import scale_sum_terms

Array = NDArray[Any]


@final
@dataclass(frozen=True)
class AxisWeights:
    """The weight of each input element (column) for each result element (row) along an axis.

    Attributes:
        matrix: The weights, with shape (size of the result, size of the input).
        terms: The terms of the weights, with the same shape.
    """

    matrix: Array
    terms: Array

    @property
    def transposed(self) -> AxisWeights:
        """Return the weights with transposed matrices, which the gradient needs."""
        return AxisWeights(self.matrix.T, self.terms.T)


def multiply_axes(matrices: Sequence[Array], array: Array) -> Array:
    """Return `array` with its last axes multiplied by one matrix each.

    Args:
        matrices: The matrices of the last axes, in order: (size of the result, size of the input) each.
        array: The array; its last axes have the input sizes.
    """
    for axis, matrix in enumerate(matrices, array.ndim - len(matrices)):
        array = np.moveaxis(np.tensordot(matrix, array, (1, axis)), 0, axis)
    return array


def weighted_sum(weights: Sequence[AxisWeights], array: Array) -> WithTerms:
    """Return weighted sums of the elements, with their terms, which include the terms of the weights.

    A float32 implementation may compute a small nonzero number instead of a weight of 0. Where terms are multiplied by
    |weight|, the eps of float32 times the terms of the weight is therefore added to |weight|. This matters if the
    weights of several axes are 0.

    Args:
        weights: The weights of each of the last axes.
        array: The elements.

    Returns:
        The sums with their terms.
    """
    sizes = [np.abs(axis.matrix) + 2.0**-23 * axis.terms for axis in weights]
    terms = scale_sum_terms(multiply_axes(sizes, np.abs(array)))
    for k, axis in enumerate(weights):
        terms = terms + multiply_axes([*sizes[:k], axis.terms, *sizes[k + 1 :]], np.abs(array))
    return WithTerms(multiply_axes([axis.matrix for axis in weights], array), terms)


def sum_with_nonfinite(sums: Callable[..., Array], array: Array, *weights: Array) -> Array:
    """Return `sums(array, *weights)`. An infinity or NaN contributes only to sums in which its weight is not 0.

    An infinity contributes itself, also if its weight is negative.
    """
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
