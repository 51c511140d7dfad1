"""A picture of the errors in one slice of a tensor, small enough for a record."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.cases.formats import FloatArray
from diopi_test.checks.pattern import Mask
from diopi_test.execution.difference import ErrorMap

CELLS = 32
"""Cells along an axis, at most."""

BOUNDS = (0, 1 / 8, 1 / 4, 1 / 2, 1, 2, 8, 64, 1024)
"""Error / budget of a cell: its digit is the number of these that are less."""


@np.errstate(all="ignore")  # what is not finite
def error_map(wrong: Mask, errors: FloatArray, budget: FloatArray | None, worst: tuple[int, ...]) -> ErrorMap | None:
    """The slice of `errors` with the element at `worst`; None for a single element.

    Args:
        wrong, errors, budget: arrays of one shape; without `budget`, or where that is no number above 0, what is wrong
            is as wrong as can be. An element that is right counts as within its budget, whatever it is off.
    """
    axes = tuple(axis for axis, size in enumerate(wrong.shape) if size > 1)[-2:]
    if not axes:
        return None
    at = tuple(slice(None) if axis in axes else index for axis, index in enumerate(worst))
    ratios = _ratios(wrong[at], errors[at], None if budget is None else budget[at])
    cells = _shrunk(ratios.reshape((1, -1)) if len(axes) == 1 else ratios)
    digits = np.searchsorted(BOUNDS, cells)
    return ErrorMap(axes, ratios.shape, tuple("".join(map(str, row)) for row in digits))


def _ratios(wrong: Mask, errors: FloatArray, budget: FloatArray | None) -> FloatArray:
    """Error / budget of each element; at most 1 of those that are right."""
    ratios = np.where(wrong, np.inf, 0.0)
    if budget is not None:
        measured = (budget > 0) & np.isfinite(errors)
        ratios = np.where(measured, errors / np.where(measured, budget, 1), ratios)
    return np.where(wrong, ratios, np.minimum(ratios, 1))


def _shrunk(slice_: NDArray[Any]) -> NDArray[Any]:
    """The largest values of blocks that are as small as can be, if there are to be at most `CELLS` along an axis."""
    for axis, size in enumerate(slice_.shape):
        slice_ = np.maximum.reduceat(slice_, np.arange(0, size, -(-size // CELLS)), axis)
    return slice_
