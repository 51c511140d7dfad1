"""Checkers for the kinds of guarantee that several results can satisfy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.validators import Array, Problems

Mask = NDArray[np.bool_]


def same(one: Array, other: Array) -> Mask:
    """Element by element the same number: zeros of one sign, or both NaN; both parts of complex numbers."""
    if np.iscomplexobj(one):
        return same(one.real, other.real) & same(one.imag, other.imag)
    signs: Mask = np.signbit(one) == np.signbit(other)
    return (equal(one, other) & signs) | _both_nan(one, other)


def equal(one: Array, other: Array) -> Mask:
    """Element by element equal as far as order goes: zeros of either sign, or both NaN."""
    equals: Mask = one == other
    return equals | _both_nan(one, other)


def _both_nan(one: Array, other: Array) -> Mask:
    """NaN is the only number that differs from itself."""
    both: Mask = (one != one) & (other != other)
    return both


def distinct_positions(name: str, positions: Array, length: int, axis: int) -> Problems:
    """Along `axis`, `positions` are in [0, length) and none occurs twice."""
    outside = (positions < 0) | (positions >= length)
    if outside.any():
        yield f"{name}: {_first(outside)}: {positions[outside][0]}, expected a position from 0 to {length - 1}"
    ranked = np.sort(positions, axis)
    repeated = np.diff(ranked, axis=axis) == 0
    if repeated.any():
        value = np.delete(ranked, 0, axis)[repeated][0]
        yield f"{name}: position {value} occurs more than once along axis {axis}"


def all_where(name: str, right: Mask, given: Array, meaning: str) -> Problems:
    """Every element of `given` is right; `meaning` says what that is."""
    if not right.all():
        count = f"{int((~right).sum())} of {right.size} elements"
        yield f"{name}: {count} are not {meaning}, {_first(~right)}: {given[~right][0]}"


def in_order(name: str, values: Array, axis: int, descending: bool) -> Problems:
    """Along `axis`, no value is followed by a smaller one, or a larger one if `descending`; NaN is the largest."""
    rows = np.moveaxis(values, axis, -1)
    before, after = rows[..., :-1], rows[..., 1:]
    if descending:
        before, after = after, before
    wrong = _less(after, before)
    if wrong.any():
        yield f"{name}: {int(wrong.sum())} neighbours along axis {axis} are not in order, {_first(wrong)}"


def _less(one: Array, other: Array) -> Mask:
    less: Mask = (one < other) | ((other != other) & (one == one))
    return less


def same_elements(name: str, values: Array, wanted: Array, axis: int) -> Problems:
    """Along `axis`, `values` are the elements of `wanted` in some order, zeros of either sign being one."""
    right = equal(np.sort(values, axis), np.sort(wanted, axis))
    if not right.all():
        yield f"{name}: the elements along axis {axis} are not those expected, whatever their order"


def one_of_those_written(name: str, given: Array, before: Array, places: Array, values: Array) -> Problems:
    """Each element is one of the `values` written to its place, or what it was `before` if none was.

    `places` are numbers of elements in row-major order, and `values` has their shape.
    """
    flat, written = given.reshape(-1), np.zeros(given.size, bool)
    right = same(flat, before.reshape(-1))
    written[places] = True
    right[written] = False
    np.logical_or.at(right, places, same(flat[places], values))
    yield from all_where(name, right.reshape(given.shape), given, "one of the values written there")


def taken_from(name: str, rows: Array, candidates: Array) -> Problems:
    """Every row (along the first axis) is the same as one of the `candidates`."""
    pairs = same(rows[:, np.newaxis], candidates[np.newaxis]).reshape(len(rows), len(candidates), -1)
    right: Mask = np.asarray(np.any(np.all(pairs, -1), -1))
    yield from all_where(name, right, rows, "elements of the input")


def _first(wrong: Mask) -> str:
    position: Any = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"the first at {position}"
