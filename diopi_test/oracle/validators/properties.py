"""Checks of properties that several valid results have in common: order, distinct positions, elements of a set.

Each function `check_…` takes the name of a result for messages, and yields a description of each problem.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.validators import Array, Problems

Mask = NDArray[np.bool_]
"""An array that is true for the elements that have a property."""


def is_identical(x: Array, y: Array) -> Mask:
    """Return a mask of the elements that are the same number.

    Zeros must have the same sign, NaNs are the same, and both parts of complex numbers must be the same.
    """
    if np.iscomplexobj(x):
        return is_identical(x.real, y.real) & is_identical(x.imag, y.imag)
    signs: Mask = np.signbit(x) == np.signbit(y)
    return (is_equal(x, y) & signs) | _are_both_nan(x, y)


def is_equal(x: Array, y: Array) -> Mask:
    """Return a mask of the elements that are equal; zeros of both signs are equal, and so are NaNs."""
    equals: Mask = x == y
    return equals | _are_both_nan(x, y)


def _are_both_nan(x: Array, y: Array) -> Mask:
    """Return a mask of the elements that are NaN in both arrays."""
    is_nan: Mask = (x != x) & (y != y)
    return is_nan


def check_distinct_positions(name: str, positions: Array, length: int, axis: int) -> Problems:
    """Check that all `positions` are in [0, length), and that the positions of each slice along `axis` are distinct."""
    is_outside = (positions < 0) | (positions >= length)
    if is_outside.any():
        actual = positions[is_outside][0]
        yield f"{name}: {_describe_first(is_outside)}: {actual}, expected a position from 0 to {length - 1}"
    ranked = np.sort(positions, axis)
    repeated = np.diff(ranked, axis=axis) == 0
    if repeated.any():
        value = np.delete(ranked, 0, axis)[repeated][0]
        yield f"{name}: position {value} occurs more than once along axis {axis}"


def check_elements(name: str, is_valid: Mask, actual: Array, description: str) -> Problems:
    """Check that every element of a result is valid.

    Args:
        name: the name of the result.
        is_valid: a mask of the valid elements.
        actual: the result, of the same shape.
        description: a noun phrase for valid elements, which completes the message "… are not …".

    Yields:
        A description of the invalid elements.
    """
    if not is_valid.all():
        count = f"{int((~is_valid).sum())} of {is_valid.size} elements"
        yield f"{name}: {count} are not {description}, {_describe_first(~is_valid)}: {actual[~is_valid][0]}"


def check_order(name: str, values: Array, axis: int, descending: bool) -> Problems:
    """Check that values ascend along `axis`, or descend if `descending`; NaN counts as the largest value."""
    rows = np.moveaxis(values, axis, -1)
    before, after = rows[..., :-1], rows[..., 1:]
    if descending:
        before, after = after, before
    is_wrong = _is_less(after, before)
    if is_wrong.any():
        count = int(is_wrong.sum())
        yield f"{name}: {count} neighbors along axis {axis} are not in order, {_describe_first(is_wrong)}"


def _is_less(x: Array, y: Array) -> Mask:
    """Return a mask of the elements for which x is less than y; NaN is greater than every number."""
    less: Mask = (x < y) | ((y != y) & (x == x))
    return less


def check_same_elements(name: str, values: Array, expected: Array, axis: int) -> Problems:
    """Check that each slice of `values` along `axis` has the elements of the slice of `expected`, in any order.

    Zeros of both signs are equal.

    Yields:
        A description of the problem.
    """
    is_valid = is_equal(np.sort(values, axis), np.sort(expected, axis))
    if not is_valid.all():
        yield f"{name}: the elements along axis {axis} differ from the expected elements, in any order"


def check_written_values(name: str, actual: Array, before: Array, places: Array, values: Array) -> Problems:
    """Check that each element is one of the values that are written to it, or unchanged if none is written to it.

    Args:
        name: the name of the result.
        actual: the result.
        before: the array before the writes, of the same shape.
        places: the row-major number of the destination of each value.
        values: the values, of the shape of `places`.

    Yields:
        A description of invalid elements.
    """
    flat, written = actual.reshape(-1), np.zeros(actual.size, bool)
    is_valid = is_identical(flat, before.reshape(-1))
    written[places] = True
    is_valid[written] = False
    np.logical_or.at(is_valid, places, is_identical(flat[places], values))
    yield from check_elements(name, is_valid.reshape(actual.shape), actual, "one of the values written there")


def check_rows_come_from(name: str, rows: Array, candidates: Array) -> Problems:
    """Check that each row of `rows` is identical to a row of `candidates`; rows are entries along the first axis."""
    pairs = is_identical(rows[:, np.newaxis], candidates[np.newaxis]).reshape(len(rows), len(candidates), -1)
    is_valid: Mask = np.asarray(np.any(np.all(pairs, -1), -1))
    yield from check_elements(name, is_valid, rows, "elements of the input")


def _describe_first(is_wrong: Mask) -> str:
    """Return the text "the first at (i, j, …)" for the first true element."""
    position: Any = tuple(int(i) for i in np.argwhere(is_wrong)[0])
    return f"the first at {position}"
