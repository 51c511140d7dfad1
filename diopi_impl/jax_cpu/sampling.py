"""Bilinear samples of planes: the four cells around each position, gathered and weighted.

The cells of all planes are the rows of a matrix (cells, channels), so that each cell is read once for all channels.
Samples can be differentiated by the rows and by the positions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

Size = int | Array
"""The length of an axis; arrays broadcast with the positions."""

Cells = list[tuple[Array, Array, Array]]
"""The index and weight of each of the two cells along an axis, and whether the cell exists; if not, it counts as 0."""

Axis = Callable[[Array, Size], Cells]
"""Returns the cells of positions on an axis of a length: `border_cells` or `zero_padded_cells`."""


def border_cells(position: Array, length: Size) -> Cells:
    """Return the cells of positions on an axis that repeats its first and last element once.

    Positions below −1 or above `length` have no cell.
    """
    inside = (position >= -1) & (position <= length)
    place = jnp.clip(position, 0, length - 1)
    low = jnp.floor(place)
    part = place - low
    high = jnp.minimum(low + 1, length - 1)
    return [(low.astype(int), 1 - part, inside), (high.astype(int), part, inside)]


def zero_padded_cells(position: Array, length: Size) -> Cells:
    """Return the cells of positions on an axis that continues with zeros on both sides."""
    inside = (position > -1) & (position < length)
    low = jnp.floor(jnp.clip(position, -2, length + 1))

    def cell(index: Array, weight: Array) -> tuple[Array, Array, Array]:
        """Return a cell; it exists if its index is on the axis."""
        is_inside = inside & (index >= 0) & (index < length)
        return jnp.clip(index, 0, length - 1).astype(int), weight, is_inside

    return [cell(low, 1 - (position - low)), cell(low + 1, position - low)]


def sample_bilinear(rows: Array, row_index: Callable[[Array, Array], Array], y: Cells, x: Cells) -> Array:
    """Return the bilinear samples at positions: (positions…, channels).

    Args:
        rows: the cells of all planes, (cells, channels).
        row_index: returns the rows of cells from their indices along y and along x, both (positions…).
        y: the cells of the positions along y.
        x: the cells of the positions along x.
    """
    total: Any = 0
    for row, row_weight, has_row in y:
        for column, column_weight, has_column in x:
            cells = jnp.where((has_row & has_column)[..., jnp.newaxis], rows[row_index(row, column)], 0)
            total += (row_weight * column_weight)[..., jnp.newaxis] * cells
    return jnp.asarray(total)


def planes_to_rows(planes: Array) -> Array:
    """Return planes (N, C, H, W) as a matrix (N·H·W, C)."""
    n, c, h, w = planes.shape
    return jnp.moveaxis(planes, 1, -1).reshape(n * h * w, c)


def rows_to_planes(rows: Array, shape: tuple[int, ...]) -> Array:
    """Return a matrix (N·H·W, C) as planes (N, C, H, W): the inverse of `planes_to_rows`."""
    n, c, h, w = shape
    return jnp.moveaxis(rows.reshape(n, h, w, c), -1, 1)


def adjoint(function: Callable[[Array], Array], rows: Array, grad: Array) -> Array:
    """Return the gradient of `rows` for the gradient `grad` of the result of `function`, which is linear in `rows`."""
    (summed,) = jax.vjp(function, rows)[1](grad)
    return jnp.asarray(summed)
