"""Reductions along axes, and the running sum."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.cases.model import ResultOverride
from diopi_test.oracle.reference import WithTerms, reference
from diopi_test.oracle.reference.products import in_any_order
from diopi_test.oracle.reference.sums import Axes, accumulated, equal_pairs, length, repetition, sum_terms

Array = NDArray[Any]


def _axes(input: Array, dim: tuple[int, ...] | int | None) -> Axes:
    """The axes to reduce as NumPy takes them: None for all."""
    if input.ndim == 0 or dim is None or dim == ():
        return None
    return (dim,) if isinstance(dim, int) else tuple(dim)


def _keeps(input: Array, out: ResultOverride) -> bool:
    """Whether the caller made the result with the reduced axes in it."""
    return out.shape is not None and len(out.shape) == input.ndim


@reference("diopiSum")
def sum_(input: Array, dim: tuple[int, ...], *, out: ResultOverride) -> WithTerms:
    axes, keepdims = _axes(input, dim), _keeps(input, out)
    return WithTerms(np.sum(input, axis=axes, keepdims=keepdims), sum_terms(input, axes, keepdims))


@reference("diopiMean")
def mean(input: Array, dim: tuple[int, ...], *, out: ResultOverride) -> WithTerms:
    total = sum_(input, dim, out=out)
    n = length(input, _axes(input, dim))
    return WithTerms(np.divide(total.value, n), np.divide(total.terms, n))


@reference("diopiStd")
def std(input: Array, dim: tuple[int, ...], correction: float | None, *, out: ResultOverride) -> WithTerms:
    axes, keepdims = _axes(input, dim), _keeps(input, out)
    n = length(input, axes)
    squares = np.abs(input - np.divide(np.sum(input, axis=axes, keepdims=True), n)) ** 2
    total = np.sum(squares, axis=axes, keepdims=keepdims)
    deviation = np.sqrt(np.divide(total, max(n - (1 if correction is None else correction), 0)))
    # half the relative error of the sum under the root
    return WithTerms(deviation, deviation * sum_terms(squares, axes, keepdims) / total / 2)


@reference("diopiMax")
def max_(input: Array, dim: int, *, out: tuple[ResultOverride, ...]) -> tuple[Array, Array]:
    return _extreme(np.argmax, input, dim, _keeps(input, out[0]))


@reference("diopiMin")
def min_(input: Array, dim: int, *, out: tuple[ResultOverride, ...]) -> tuple[Array, Array]:
    return _extreme(np.argmin, input, dim, _keeps(input, out[0]))


def _extreme(position: Any, input: Array, dim: int, keepdims: bool) -> tuple[Array, Array]:
    """Return the elements at positions along an axis, and the positions; a number is a vector of one."""
    rows = np.atleast_1d(input)
    places = position(rows, axis=dim, keepdims=True)
    both = np.take_along_axis(rows, places, dim), places
    return both if keepdims and input.ndim else (both[0].squeeze(dim), both[1].squeeze(dim))


@reference("diopiMaxAll")
def max_all(input: Array) -> Array:
    return np.asarray(np.max(input))


@reference("diopiMinAll")
def min_all(input: Array) -> Array:
    return np.asarray(np.min(input))


@reference("diopiAmax")
def amax(self: Array, dim: tuple[int, ...], keepdim: bool) -> Array:
    return np.asarray(np.max(self, axis=_axes(self, dim), keepdims=keepdim))


@reference("diopiAny")
def any_(input: Array, dim: int | None, *, out: ResultOverride) -> Array:
    return np.asarray(np.any(input != 0, axis=_axes(input, dim), keepdims=_keeps(input, out)))


@reference("diopiAll")
def all_(input: Array, dim: int | None, *, out: ResultOverride) -> Array:
    return np.asarray(np.all(input != 0, axis=_axes(input, dim), keepdims=_keeps(input, out)))


@reference("diopiProd")
def prod(input: Array, dim: int | None, *, out: ResultOverride) -> Any:
    axes, keepdims = _axes(input, dim), _keeps(input, out)
    accumulator = Dtype.float32 if out.dtype is Dtype.float16 else out.dtype
    return in_any_order(lambda of: np.asarray(np.prod(of(input), axis=axes, keepdims=keepdims)), accumulator)


@reference("diopiArgmax")
def argmax(input: Array, dim: int | None, keepdim: bool, *, out: ResultOverride) -> Array:
    return _position(np.argmax, input, dim, keepdim, out)


@reference("diopiArgmin")
def argmin(input: Array, dim: int | None, keepdim: bool, *, out: ResultOverride) -> Array:
    return _position(np.argmin, input, dim, keepdim, out)


def _position(function: Any, input: Array, dim: int | None, keepdim: bool, out: ResultOverride) -> Array:
    found = np.asarray(function(input, axis=dim, keepdims=keepdim))
    return found if out.shape is None else found.reshape(out.shape)  # of all elements: 0-d or (1,), as the caller likes


@reference("diopiCumsum")
def cumsum(input: Array, dim: int) -> WithTerms:
    return _running_sum(input, dim)


@reference("diopiCumsumBackward")
def cumsum_backward(grad_output: Array, dim: int) -> WithTerms:
    if grad_output.ndim == 0:
        return _running_sum(grad_output, dim)
    reversed_sum = _running_sum(np.flip(grad_output, dim), dim)
    return WithTerms(np.flip(reversed_sum.value, dim), np.flip(reversed_sum.terms, dim))


def _running_sum(input: Array, dim: int) -> WithTerms:
    """Element i of the terms is that of a sum of i + 1 numbers."""
    rows = np.moveaxis(np.atleast_1d(input), dim, -1)
    magnitudes, sums = np.abs(rows), np.cumsum(rows, -1)
    counts = np.arange(1, rows.shape[-1] + 1)
    repeated = repetition(counts, equal_pairs(rows, -1)[..., None])
    squares = np.cumsum(magnitudes.astype(np.float64) ** 2, -1)
    terms = accumulated(counts, np.cumsum(magnitudes, -1), squares, sums, repeated)
    return WithTerms(_unmoved(sums, dim, input), _unmoved(terms, dim, input))


def _unmoved(rows: Array, dim: int, input: Array) -> Array:
    return np.moveaxis(rows, -1, dim).reshape(input.shape)
