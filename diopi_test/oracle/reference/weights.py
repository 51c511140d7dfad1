"""Sums of elements with weights along each axis, as resizing and pooling of regions make them."""

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
class Weights:
    """The weight of each input element (column) in each result element (row) of an axis.

    Attributes:
        matrix: (size, d).
        terms: how large the terms are that cancel when a weight is computed.
    """

    matrix: Array
    terms: Array

    @property
    def transposed(self) -> Weights:
        """Those of the gradient."""
        return Weights(self.matrix.T, self.terms.T)


def along_axes(matrices: Sequence[Array], array: Array) -> Array:
    """`array` with each of its last axes multiplied by a matrix."""
    for axis, matrix in enumerate(matrices, array.ndim - len(matrices)):
        array = np.moveaxis(np.tensordot(matrix, array, (1, axis)), 0, axis)
    return array


def weighted(weights: Sequence[Weights], array: Array) -> WithTerms:
    """Sums of weight · element, which cancel where they differ in sign, as do the terms of the weights themselves.

    A weight of 0 may be as large as its error in float32, which counts where those of all axes are 0.
    """
    sizes = [np.abs(axis.matrix) + 2.0**-23 * axis.terms for axis in weights]
    terms = along_axes(sizes, np.abs(array))
    for k, axis in enumerate(weights):
        terms = terms + along_axes([*sizes[:k], axis.terms, *sizes[k + 1 :]], np.abs(array))
    return WithTerms(along_axes([axis.matrix for axis in weights], array), terms)


def reached(sums: Callable[..., Array], array: Array, *weights: Array) -> Array:
    """`sums(array, *weights)`, of which an infinite element or a NaN is a part only where it has a weight."""
    total = sums(np.where(np.isfinite(array), array, 0), *weights)
    if not np.isfinite(array).all():
        for value, places in ((np.inf, array == np.inf), (-np.inf, array == -np.inf), (np.nan, np.isnan(array))):
            total = np.where(sums(places.astype(np.float64), *map(np.abs, weights)) > 0, total + value, total)
    return total


def finite(array: Array) -> Array:
    """`array` with zeros in place of infinities and NaN."""
    return np.where(np.isfinite(array), array, 0)


def with_infinite(weights: Sequence[Weights], array: Array, of_finite: WithTerms) -> WithTerms | PartlySpecified:
    """Sums of weight · element, `of_finite` being those of the finite elements.

    An element out of reach has no part in a sum, and a NaN that has a weight makes it NaN. Open is what else becomes of
    an infinity or NaN in reach: a weight of 0, and weights of either sign for one element, make a NaN of it, or do not.
    """
    if np.isfinite(array).all():
        return of_finite
    of_nan = along_axes([(axis.matrix != 0) * 1.0 for axis in weights], np.isnan(array) * 1.0) > 0
    reached = [((axis.matrix != 0) | (axis.terms > 0)) * 1.0 for axis in weights]
    nearby = along_axes(reached, ~np.isfinite(array) * 1.0) > 0
    return PartlySpecified(WithTerms(np.where(of_nan, np.nan, of_finite.value), of_finite.terms), of_nan | ~nearby)
