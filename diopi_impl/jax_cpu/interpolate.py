"""Resampling of regular grids: resizing, and sampling at points, with gradients."""

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
"""One number per spatial axis, or the shape of a tensor."""

Taps = tuple[NDArray[Any], NDArray[Any]]
"""For each index of a result axis, the indices of the input elements and their weights: both (taps, size)."""

RANKS = {"linear": 3, "bilinear": 4, "bicubic": 4, "trilinear": 5}
"""The number of axes of the input, by the mode of resizing."""


def _check_size(input_shape: Sizes, size: Sizes) -> None:
    """Raise ValueError unless `size` has a positive number for each spatial axis."""
    if len(size) != len(input_shape) - 2 or min(size) < 1:
        raise ValueError(f"size {size} does not fit an input of shape {input_shape}")


@vendor.implements("diopiUpsampleNearest")
def upsample_nearest(input, size):
    """Return the input element ⌊i · d / size⌋ along each axis, for result index i and axis length d."""
    _check_size(input.shape, size)
    for axis, length in enumerate(size, 2):
        input = jnp.take(input, np.arange(length) * input.shape[axis] // length, axis)
    return input


def _positions(d: int, size: int, align_corners: bool) -> NDArray[Any]:
    """Return the positions of the result's indices along an axis of size d, in float64."""
    if align_corners:
        return np.arange(size) * ((d - 1) / max(size - 1, 1))
    return (np.arange(size) + 0.5) * (d / size) - 0.5


def _linear_taps(x: NDArray[Any]) -> Taps:
    """Return the two elements around each position and their weights."""
    x = np.maximum(x, 0)
    first = np.floor(x)
    return np.stack([first, first + 1]).astype(int), np.stack([1 - (x - first), x - first])


def _cubic_taps(x: NDArray[Any]) -> Taps:
    """Return the four elements around each position and their weights, by cubic convolution with a = −0.75."""
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
    """Return the input with an axis resized to weighted sums of the elements in `taps`."""
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
    """Return linear or bicubic resizing of the spatial axes."""
    _check_size(input.shape, size)
    if RANKS.get(mode) != input.ndim:
        raise ValueError(f"mode is {mode!r} for an input of shape {input.shape}, expected one of {RANKS} (mode: rank)")
    taps = _cubic_taps if mode == "bicubic" else _linear_taps
    for axis, length in enumerate(size, 2):
        input = _resize_axis(input, axis, taps(_positions(input.shape[axis], length, align_corners)))
    return input


def _gather_points(input: Array, indices: Sequence[Array]) -> Array:
    """Return input[n, :, indices[n, p]…] as (N, C, points), with 0 where an index is outside."""
    sizes = input.shape[2:]
    inside = prod(((index >= 0) & (index < d) for index, d in zip(indices, sizes, strict=True)), start=jnp.array(True))
    flat = jnp.zeros(indices[0].shape, int)
    for index, d in zip(indices, sizes, strict=True):
        flat = flat * d + jnp.clip(index, 0, d - 1).astype(int)
    elements = input.reshape(*input.shape[:2], prod(sizes))
    return jnp.where(inside[:, np.newaxis], jnp.take_along_axis(elements, flat[:, np.newaxis], 2), 0)


def _bilinear(input: Array, positions: Sequence[Array]) -> Array:
    """Return the linear interpolation of the input at positions along each spatial axis: (N, C, points)."""
    floors = [jnp.floor(x) for x in positions]
    result: Any = 0
    for corner in product((0, 1), repeat=len(positions)):
        weights = [x - low if far else low + 1 - x for x, low, far in zip(positions, floors, corner, strict=True)]
        indices = [low + far for low, far in zip(floors, corner, strict=True)]
        result += prod(weights[1:], start=weights[0])[:, np.newaxis] * _gather_points(input, indices)
    return jnp.asarray(result)


@vendor.implements("diopiGridSample")
def grid_sample(input, grid, mode):
    """Return samples of input at the points of a grid in [−1, 1], nearest or linear, with zeros outside."""
    axes = input.ndim - 2
    if axes not in (2, 3) or grid.ndim != input.ndim or grid.shape[-1] != axes or len(grid) != len(input):
        raise ValueError(f"a grid of shape {grid.shape} does not fit an input of shape {input.shape}")
    points = grid.reshape(grid.shape[0], prod(grid.shape[1:-1]), axes)
    positions = [((points[..., axes - 1 - k] + 1) * d - 1) / 2 for k, d in enumerate(input.shape[2:])]
    if mode == "nearest":
        samples = _gather_points(input, [jnp.round(x) for x in positions])
    elif mode == "bilinear":
        samples = _bilinear(input, positions)
    else:
        raise ValueError(f"mode is {mode!r}, expected bilinear or nearest")
    return samples.reshape(*input.shape[:2], *grid.shape[1:-1])
