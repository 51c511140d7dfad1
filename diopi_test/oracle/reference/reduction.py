"""Reductions along axes, and cumulative sums.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.cases.case import ResultOverride
from diopi_test.oracle.reference import WithTerms, reference
from diopi_test.oracle.reference.products import multiply_in_any_order
from diopi_test.oracle.reference.sums import (
    Axes,
    accumulation_terms,
    equal_pair_share,
    mean_repetition,
    slice_size,
    sum_terms,
)

Array = NDArray[Any]


def _reduced_axes(input: Array, dim: tuple[int, ...] | int | None) -> Axes:
    """Return the axes to reduce in NumPy's form; None stands for all axes, as do None and () in `dim`."""
    if input.ndim == 0 or dim is None or dim == ():
        return None
    return (dim,) if isinstance(dim, int) else tuple(dim)


def _has_keepdims(input: Array, out: ResultOverride) -> bool:
    """Return whether the result that the caller allocated has the reduced axes, with size 1."""
    return out.shape is not None and len(out.shape) == input.ndim


@reference("diopiSum")
def sum_(input, dim, *, out):
    """Return the sum along the axes."""
    axes, keepdims = _reduced_axes(input, dim), _has_keepdims(input, out)
    return WithTerms(np.sum(input, axis=axes, keepdims=keepdims), sum_terms(input, axes, keepdims))


@reference("diopiMean")
def mean(input, dim, *, out):
    """Return the mean along the axes."""
    total = sum_(input, dim, out=out)
    n = slice_size(input, _reduced_axes(input, dim))
    return WithTerms(np.divide(total.value, n), np.divide(total.terms, n))


@reference("diopiStd")
def std(input, dim, correction, *, out):
    """Return the standard deviation √(Σ |x − mean|² / (n − correction)) along the axes."""
    axes, keepdims = _reduced_axes(input, dim), _has_keepdims(input, out)
    n = slice_size(input, axes)
    squares = np.abs(input - np.divide(np.sum(input, axis=axes, keepdims=True), n)) ** 2
    total = np.sum(squares, axis=axes, keepdims=keepdims)
    deviation = np.sqrt(np.divide(total, max(n - (1 if correction is None else correction), 0)))
    # half the relative error of the sum under the root
    return WithTerms(deviation, deviation * sum_terms(squares, axes, keepdims) / total / 2)


@reference("diopiMax")
def max_(input, dim, *, out):
    """Return the maxima along an axis and their positions."""
    return _select_extremes(np.argmax, input, dim, _has_keepdims(input, out[0]))


@reference("diopiMin")
def min_(input, dim, *, out):
    """Return the minima along an axis and their positions."""
    return _select_extremes(np.argmin, input, dim, _has_keepdims(input, out[0]))


def _select_extremes(position: Any, input: Array, dim: int, keepdims: bool) -> tuple[Array, Array]:
    """Return the extreme elements along an axis and their positions; `position` is np.argmax or np.argmin."""
    rows = np.atleast_1d(input)
    positions = position(rows, axis=dim, keepdims=True)
    values = np.take_along_axis(rows, positions, dim)
    return (values, positions) if keepdims and input.ndim else (values.squeeze(dim), positions.squeeze(dim))


@reference("diopiMaxAll")
def max_all(input):
    """Return the maximum of all elements."""
    return np.asanyarray(np.max(input))


@reference("diopiMinAll")
def min_all(input):
    """Return the minimum of all elements."""
    return np.asanyarray(np.min(input))


@reference("diopiAmax")
def amax(self, dim, keepdim):
    """Return the maximum along the axes."""
    return np.asanyarray(np.max(self, axis=_reduced_axes(self, dim), keepdims=keepdim))


@reference("diopiAny")
def any_(input, dim, *, out):
    """Return whether any element along the axes is not 0."""
    return np.asanyarray(np.any(input != 0, axis=_reduced_axes(input, dim), keepdims=_has_keepdims(input, out)))


@reference("diopiAll")
def all_(input, dim, *, out):
    """Return whether all elements along the axes are not 0."""
    return np.asanyarray(np.all(input != 0, axis=_reduced_axes(input, dim), keepdims=_has_keepdims(input, out)))


@reference("diopiProd")
def prod(input, dim, *, out):
    """Return the product along the axes; unspecified where the order of multiplication decides about overflow."""
    axes, keepdims = _reduced_axes(input, dim), _has_keepdims(input, out)
    accumulator = Dtype.float32 if out.dtype is Dtype.float16 else out.dtype
    return multiply_in_any_order(
        lambda transform: np.asanyarray(np.prod(transform(input), axis=axes, keepdims=keepdims)), accumulator
    )


@reference("diopiArgmax")
def argmax(input, dim, keepdim, *, out):
    """Return the position of the first maximum along an axis, or in the flattened input."""
    return _extreme_position(np.argmax, input, dim, keepdim, out)


@reference("diopiArgmin")
def argmin(input, dim, keepdim, *, out):
    """Return the position of the first minimum along an axis, or in the flattened input."""
    return _extreme_position(np.argmin, input, dim, keepdim, out)


def _extreme_position(function: Any, input: Array, dim: int | None, keepdim: bool, out: ResultOverride) -> Array:
    """Return the positions that `function` (np.argmax or np.argmin) finds, in the shape that the caller allocated."""
    positions = np.asanyarray(function(input, axis=dim, keepdims=keepdim))
    return (
        positions if out.shape is None else positions.reshape(out.shape)
    )  # without dim, the caller allocates a result of shape () or (1,)


@reference("diopiCumsum")
def cumsum(input, dim):
    """Return the cumulative sums along an axis."""
    return _running_sum(input, dim)


@reference("diopiCumsumBackward")
def cumsum_backward(grad_output, dim):
    """Return the cumulative sums of grad_output from the end of the axis."""
    if grad_output.ndim == 0:
        return _running_sum(grad_output, dim)
    reversed_sum = _running_sum(np.flip(grad_output, dim), dim)
    return WithTerms(np.flip(reversed_sum.value, dim), np.flip(reversed_sum.terms, dim))


def _running_sum(input: Array, dim: int) -> WithTerms:
    """Return cumulative sums; element i has the terms of a sum of i + 1 addends."""
    rows = np.moveaxis(np.atleast_1d(input), dim, -1)
    magnitudes, sums = np.abs(rows), np.cumsum(rows, -1)
    counts = np.arange(1, rows.shape[-1] + 1)
    repeated = mean_repetition(counts, equal_pair_share(rows, -1)[..., None])
    squares = np.cumsum(magnitudes.astype(np.float64) ** 2, -1)
    terms = accumulation_terms(counts, np.cumsum(magnitudes, -1), squares, sums, repeated)
    return WithTerms(_restore_axis(sums, dim, input), _restore_axis(terms, dim, input))


def _restore_axis(rows: Array, dim: int, input: Array) -> Array:
    """Return `rows` with the last axis moved back to `dim`, in the shape of the input."""
    return np.moveaxis(rows, -1, dim).reshape(input.shape)
