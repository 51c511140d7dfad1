"""Resampling of regular grids: resizing, and sampling at points. `gradients` derives the gradients of resizing.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from diopi_impl.jax_cpu import vendor

Sizes = tuple[int, ...]
"""The sizes of the spatial axes (those after N and C), or of all axes of a tensor."""

Taps = tuple[NDArray[Any], NDArray[Any]]
"""The filter of one axis: for each index of the result, the input indices that contribute to it, and their weights.

Both arrays are [taps, size]; `size` is the size of the axis in the result, and the number of taps is 2 or 4.
"""

RANKS = {"linear": 3, "bilinear": 4, "bicubic": 4, "trilinear": 5}
"""The rank that the input must have, by the mode of resizing."""


def _check_size(input_shape: Sizes, size: Sizes) -> None:
    """Raise ValueError unless there are spatial axes, and `size` has a positive number for each of them."""
    if len(size) != len(input_shape) - 2 or min(size, default=0) < 1:
        raise ValueError(f"size {size} does not fit an input of shape {input_shape}")


@vendor.implements("diopiUpsampleNearest")
def upsample_nearest(input, size):
    """Resize the spatial axes: along each of them, index i of the result copies index ⌊i · d / size⌋ of the input.

    d is the size of the axis in the input.

    Returns:
        The result, (N, C, *size).
    """
    _check_size(input.shape, size)
    for axis, length in enumerate(size, 2):
        input = jnp.take(input, np.arange(length) * input.shape[axis] // length, axis)
    return input


def _positions(input_size: int, size: int, align_corners: bool) -> NDArray[Any]:
    """Return the position on an axis of the input that corresponds to each index of the resized axis.

    Args:
        input_size: the size of the axis in the input.
        size: the size of the axis in the result.
        align_corners: whether the first and last elements of both axes have the same centers; if not, the axes have the
            same edges.

    Returns:
        The positions in float64, in units of elements; they can be below 0 or above `input_size` − 1.
    """
    if align_corners:
        return np.arange(size) * ((input_size - 1) / max(size - 1, 1))
    return (np.arange(size) + 0.5) * (input_size / size) - 0.5


def _linear_taps(x: NDArray[Any]) -> Taps:
    """Return the indices of the two elements around each position x, and their weights; x < 0 counts as 0."""
    x = np.maximum(x, 0)
    first = np.floor(x)
    return np.stack([first, first + 1]).astype(int), np.stack([1 - (x - first), x - first])


def _cubic_taps(x: NDArray[Any]) -> Taps:
    """Return the indices of the four elements around each position, and their weights for cubic convolution."""
    first = np.floor(x)
    t, a = x - first, -0.75
    weights = [
        a * t * (1 - t) ** 2,
        1 + t * t * ((a + 2) * t - (a + 3)),
        1 + (1 - t) ** 2 * ((a + 2) * (1 - t) - (a + 3)),
        a * (1 - t) * t**2,
    ]
    return np.stack([first - 1, first, first + 1, first + 2]).astype(int), np.stack(weights)


def _resize_axis(input: Array, axis: int, taps: Taps) -> Array:
    """Return the input with an axis replaced by weighted sums: Σ over taps of weight · element.

    Indices before the first or after the last element select this element.
    """
    indices, weights = taps
    shape = [-1 if i == axis else 1 for i in range(input.ndim)]
    clipped = np.clip(indices, 0, input.shape[axis] - 1)
    terms = [
        jnp.take(input, index, axis) * weight.astype(input.dtype).reshape(shape)
        for index, weight in zip(clipped, weights, strict=True)
    ]
    return sum(terms[1:], start=terms[0])


@vendor.implements("diopiUpsampleLinear")
def upsample_linear(input, size, align_corners, mode):
    """Return the input with the spatial axes resized to `size`.

    Each axis is interpolated separately: cubically in the mode bicubic, and linearly in all others.
    """
    _check_size(input.shape, size)
    if RANKS.get(mode) != input.ndim:
        expected = ", ".join(f"{name} for {rank} axes" for name, rank in RANKS.items())
        raise ValueError(f"mode is {mode!r} for an input of shape {input.shape}, expected {expected}")
    taps = _cubic_taps if mode == "bicubic" else _linear_taps
    for axis, length in enumerate(size, 2):
        input = _resize_axis(input, axis, taps(_positions(input.shape[axis], length, align_corners)))
    return input


def _gather_points(input: Array, indices: Sequence[Array]) -> Array:
    """Return the elements of the input at integer indices.

    Args:
        input: the input, (N, C, spatial axes).
        indices: for each spatial axis, the indices of the points, (N, points).

    Returns:
        The elements, (N, C, points): input[n, :, indices[0][n, p], indices[1][n, p], …], or 0 if an index is not that
        of an element.
    """
    sizes = input.shape[2:]
    inside = prod(((index >= 0) & (index < d) for index, d in zip(indices, sizes, strict=True)), start=jnp.array(True))
    flat = jnp.zeros(indices[0].shape, int)
    for index, d in zip(indices, sizes, strict=True):
        flat = flat * d + jnp.clip(index, 0, d - 1).astype(int)
    elements = input.reshape(*input.shape[:2], prod(sizes))
    return jnp.where(inside[:, np.newaxis], jnp.take_along_axis(elements, flat[:, np.newaxis], 2), 0)


def _interpolate_points(input: Array, positions: Sequence[Array]) -> Array:
    """Return the input (N, C, spatial axes) interpolated linearly between the neighbors of points: (N, C, points).

    `positions` contains the fractional indices of the points, (N, points), for each of the two or three spatial axes.
    Neighbors outside the input count as 0.
    """
    floors = [jnp.floor(x) for x in positions]
    result: Any = 0
    for corner in product((0, 1), repeat=len(positions)):
        weights = [x - low if step else low + 1 - x for x, low, step in zip(positions, floors, corner, strict=True)]
        indices = [low + step for low, step in zip(floors, corner, strict=True)]
        result += prod(weights[1:], start=weights[0])[:, np.newaxis] * _gather_points(input, indices)
    return jnp.asarray(result)


@vendor.implements("diopiGridSample")
def grid_sample(input, grid, mode):
    """Return samples of the input at the points of a grid: (N, C, spatial axes of the grid).

    The coordinates −1 and 1 are the edges of the input (`align_corners` is false). Elements outside count as 0. The
    mode is nearest, or bilinear, which also means trilinear.
    """
    axes = input.ndim - 2
    if axes not in (2, 3) or grid.ndim != input.ndim or grid.shape[-1] != axes or len(grid) != len(input):
        raise ValueError(f"a grid of shape {grid.shape} does not fit an input of shape {input.shape}")
    points = grid.reshape(grid.shape[0], prod(grid.shape[1:-1]), axes)
    positions = [((points[..., axes - 1 - k] + 1) * d - 1) / 2 for k, d in enumerate(input.shape[2:])]
    if mode == "nearest":
        samples = _gather_points(input, [jnp.round(x) for x in positions])
    elif mode == "bilinear":
        samples = _interpolate_points(input, positions)
    else:
        raise ValueError(f"mode is {mode!r}, expected bilinear or nearest")
    return samples.reshape(*input.shape[:2], *grid.shape[1:-1])
