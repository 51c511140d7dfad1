"""Sorting, selection of the largest or smallest, and distinct values.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.

Source: PyTorch's functions of the same names.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import AnyOf, reference

Array = NDArray[Any]


def _sort_order(rows: Array, descending: bool) -> Array:
    """Return the positions that sort the last axis stably; NaN is larger than every number."""
    if not descending:
        return np.argsort(rows, -1, kind="stable")
    last = rows.shape[-1] - 1
    return last - np.flip(np.argsort(np.flip(rows, -1), -1, kind="stable"), -1)


def _sort_rows(input: Array, dim: int, descending: bool) -> tuple[Array, Array]:
    """Return the sorted values and their positions, with the axis `dim` moved to the end."""
    rows = np.moveaxis(np.atleast_1d(input), dim, -1)
    order = _sort_order(rows, descending)
    return np.take_along_axis(rows, order, -1), order


def _has_ties(ranked: Array) -> bool:
    """Return whether neighbors along the last axis are equal; NaNs count as equal."""
    before, after = ranked[..., :-1], ranked[..., 1:]
    return bool(((before == after) | ((before != before) & (after != after))).any())


def _restore_axis(rows: Array, dim: int, input: Array) -> Array:
    """Return `rows` with the last axis moved back to `dim`; a 0-d array for 0-d input."""
    return np.moveaxis(rows, -1, dim) if input.ndim else rows[..., 0]


@reference("diopiSort")
def sort(input, dim, descending, pStable):
    """Return the sorted values along an axis and their positions; one of several valid results if values are equal."""
    values, order = _sort_rows(input, dim, descending)
    results = _restore_axis(values, dim, input), _restore_axis(order, dim, input)
    return results if pStable or not _has_ties(values) else (AnyOf(results[0]), AnyOf(results[1]))


@reference("diopiArgsort")
def argsort(input, stable, dim, descending):
    """Return the positions that sort an axis, as in `sort`; without `dim`, the last axis."""
    return sort(input, -1 if dim is None else dim, descending, stable)[1]


@reference("diopiTopk")
def topk(input, k, dim, largest, sorted):
    """Return the k largest or smallest elements along an axis and their positions."""
    ranked, order = _sort_rows(input, dim, largest)
    if k > ranked.shape[-1]:
        raise ValueError(f"k is {k}, expected at most {ranked.shape[-1]}, the length of axis {dim}")
    if input.ndim == 0:
        return _restore_axis(ranked, dim, input), _restore_axis(order, dim, input)  # also if k is 0
    results = _restore_axis(ranked[..., :k], dim, input), _restore_axis(order[..., :k], dim, input)
    is_free = k > 0 and (_has_ties(ranked[..., : k + 1]) or (k > 1 and not sorted))
    return (AnyOf(results[0]), AnyOf(results[1])) if is_free else results


@reference("diopiSortBackward")
def sort_backward(grad_output, dim, indices, sizes, keepdim):
    """Return zeros with grad_output at the positions `indices` along an axis."""
    if not sizes:
        return grad_output
    if not keepdim:
        grad_output, indices = np.expand_dims(grad_output, dim), np.expand_dims(indices, dim)
    grad_input = np.zeros_like(grad_output, shape=sizes)
    np.put_along_axis(grad_input, indices, grad_output, dim)
    return grad_input


@reference("diopiUnique")
def unique(input, dim, return_counts):
    """Return the distinct elements, or slices along `dim`, in order, with inverse indices and counts."""
    if np.isnan(input).sum() > 1:
        raise ValueError(
            "input has several NaNs, expected at most 1: the standard does not define whether they are distinct"
        )
    if dim is None:
        out, inverse, counts = _distinct_rows(input.reshape(input.size, 1))
        out, inverse = out[:, 0], inverse.reshape(input.shape)
    else:
        slices = np.moveaxis(input, dim, 0)
        length, *trailing = slices.shape
        out, inverse, counts = _distinct_rows(slices.reshape(length, int(np.prod(trailing))))
        out = np.moveaxis(out.reshape(len(out), *trailing), 0, dim)
    return AnyOf(out) if _has_both_zeros(input) else out, inverse, counts if return_counts else None


def _distinct_rows(rows: Array) -> tuple[Array, Array, Array]:
    """Return the distinct rows in lexicographic order, the index of each row among them, and their counts."""
    order = np.lexsort(rows.T[::-1])
    ranked = rows[order]
    differs = (ranked[1:] != ranked[:-1]).any(1)
    is_first = np.append(np.ones(min(len(rows), 1), bool), differs)
    inverse = np.empty(len(rows), np.int64)
    inverse[order] = np.cumsum(is_first) - 1
    return ranked[is_first], inverse, np.bincount(inverse)


def _has_both_zeros(input: Array) -> bool:
    """Return whether the input has zeros of both signs."""
    signs = np.signbit(input[input == 0])
    return bool(signs.any() and not signs.all())
