"""A map of the errors in one slice of a tensor, small enough for a report."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.checks.pattern import Mask
from diopi_test.execution.difference import ErrorMap
from lib_rt.formats import FloatArray

MAX_CELLS = 32
"""The maximum number of cells along an axis."""

BOUNDS = (0, 1 / 8, 1 / 4, 1 / 2, 1, 2, 8, 64, 1024)
"""Bounds of error / budget. The digit of a cell is the number of bounds below the largest ratio in the cell."""


@np.errstate(all="ignore")  # infinite errors and NaN
def make_error_map(
    is_wrong: Mask, errors: FloatArray, budget: FloatArray | None, worst: tuple[int, ...]
) -> ErrorMap | None:
    """Return a map of the errors in the slice that contains the worst element.

    Args:
        is_wrong: which elements are wrong.
        errors: the error of each element, in the shape of `is_wrong`.
        budget: the error budgets in this shape. A wrong element without a positive budget has an infinite ratio; a
            correct element has a ratio of at most 1, whatever its error.
        worst: the index of the worst element.

    Returns:
        The map; None for a tensor with a single element.
    """
    axes = tuple(axis for axis, size in enumerate(is_wrong.shape) if size > 1)[-2:]
    if not axes:
        return None
    slices = tuple(slice(None) if axis in axes else index for axis, index in enumerate(worst))
    ratios = _budget_ratios(is_wrong[slices], errors[slices], None if budget is None else budget[slices])
    cells = _shrink(ratios.reshape((1, -1)) if len(axes) == 1 else ratios)
    digits = np.searchsorted(BOUNDS, cells)
    return ErrorMap(axes, ratios.shape, tuple("".join(map(str, row)) for row in digits))


def _budget_ratios(is_wrong: Mask, errors: FloatArray, budget: FloatArray | None) -> FloatArray:
    """Return error / budget of each element, limited to 1 for correct elements."""
    ratios = np.where(is_wrong, np.inf, 0.0)
    if budget is not None:
        measured = (budget > 0) & np.isfinite(errors)
        ratios = np.where(measured, errors / np.where(measured, budget, 1), ratios)
    return np.where(is_wrong, ratios, np.minimum(ratios, 1))


def _shrink(slice_: NDArray[Any]) -> NDArray[Any]:
    """Return the maximum of each block of a slice, which is divided into at most `MAX_CELLS` blocks along each axis."""
    for axis, size in enumerate(slice_.shape):
        slice_ = np.maximum.reduceat(slice_, np.arange(0, size, -(-size // MAX_CELLS)), axis)
    return slice_
