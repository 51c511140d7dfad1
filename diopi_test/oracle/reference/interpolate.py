"""Resampling of regular grids: resizing, and sampling at arbitrary points, with gradients.

Resizing processes the spatial axes one after the other. Along an axis, each result element is a weighted sum of input
elements, so that a matrix of weights (size, d) describes it. In this module, d is the size of the input along an axis,
and `size` is the size of the result.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.

Source: R. Keys, "Cubic convolution interpolation for digital image processing", IEEE Transactions on Acoustics, Speech,
and Signal Processing 29, 1981; PyTorch for the positions of samples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from math import gcd, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import Exact, PartlySpecified, WithTerms, reference
from diopi_test.oracle.reference.sampling import POSITION_ERROR
from diopi_test.oracle.reference.sums import scale_sum_terms
from diopi_test.oracle.reference.weights import (
    AxisWeights,
    add_nonfinite,
    multiply_axes,
    replace_nonfinite,
    sum_with_nonfinite,
    weighted_sum,
)

Array = NDArray[Any]


def _gather_gradient(weights: Sequence[AxisWeights], grad: Array) -> WithTerms | PartlySpecified:
    """Return the gradient of the input of resizing, from the gradient of the result.

    Args:
        weights: The weights of resizing along each spatial axis.
        grad: The gradient of the result.

    Returns:
        Weighted sums of `grad`. Their terms assume that rounding errors add up like a random walk.
    """
    transposed = [axis.transposed for axis in weights]
    summed = weighted_sum(transposed, replace_nonfinite(grad))
    n = multiply_axes([(axis.matrix != 0) * 1.0 for axis in transposed], np.ones(grad.shape))
    of_finite = WithTerms(summed.value, summed.terms / np.sqrt(np.maximum(n, 1)))
    return add_nonfinite(transposed, grad, of_finite)


def _nearest_indices(d: int, size: int) -> Array:
    """Return the input index ⌊i · d / size⌋ of each result index i."""
    return np.arange(size) * d // size


def _nearest_weights(d: int, size: int) -> AxisWeights:
    """Return the weights of nearest-neighbor resizing from d to `size` elements."""
    places = _nearest_indices(d, size)[:, np.newaxis]
    return AxisWeights(_place_in_rows(np.ones(places.shape), places, d), np.zeros((size, d)))


def _is_decided_by_rounding(d: int, size: int) -> Array:
    """Return a mask of the result indices i whose input index ⌊i · d / size⌋ depends on rounding.

    This is so if i · d / size is an integer and d / size is not a binary fraction: if an implementation multiplies i by
    the rounded quotient d / size, the product may be less than the integer.
    """
    denominator = size // gcd(d, size)
    i = np.arange(size)
    return (i > 0) & (i % denominator == 0) & (denominator & (denominator - 1) != 0)


def _is_marked_on_any_axis(axes: Sequence[Array], shape: tuple[int, ...]) -> Array:
    """Return a mask of the shape `shape`, true for elements at a marked position of at least one spatial axis.

    Args:
        axes: A mask of the marked positions along each of the last axes.
        shape: The shape of the result.
    """
    return np.broadcast_to(reduce(np.logical_or.outer, axes), shape)


@reference("diopiUpsampleNearest")
def upsample_nearest(input, size):
    """Return nearest-neighbor resizing: element ⌊i · d / size⌋ along each axis, unspecified if rounding decides."""
    undecided = [_is_decided_by_rounding(d, length) for d, length in zip(input.shape[2:], size, strict=True)]
    for axis, length in enumerate(size, 2):
        input = np.take(input, _nearest_indices(input.shape[axis], length), axis)
    return PartlySpecified(input, ~_is_marked_on_any_axis(undecided, input.shape))


@reference("diopiUpsampleNearestBackward")
def upsample_nearest_backward(grad_output, out_size, in_size):
    """Return the gradient of nearest-neighbor resizing, unspecified where rounding decides."""
    sizes = list(zip(in_size[2:], out_size, strict=True))
    gathered = _gather_gradient([_nearest_weights(d, size) for d, size in sizes], grad_output)
    specified = gathered.specified if isinstance(gathered, PartlySpecified) else True
    gradient = gathered.value if isinstance(gathered, PartlySpecified) else gathered
    return PartlySpecified(
        gradient, specified & ~_is_marked_on_any_axis([_undecided_sources(*axis) for axis in sizes], in_size)
    )


def _undecided_sources(d: int, size: int) -> Array:
    """Return a mask of the input elements that get or lose a result element if a position is rounded differently."""
    sources = _nearest_indices(d, size)[_is_decided_by_rounding(d, size)]
    return np.isin(np.arange(d), [sources, sources - 1])


def _coordinates(d: int, size: int, align_corners: bool) -> tuple[Array, Array]:
    """Return the position in the input of each index of the result, and the terms of the position."""
    i = np.arange(size)
    if align_corners:
        x = i * (d - 1) / max(size - 1, 1)
        return x, x
    product = (i + 0.5) * d / size
    return product - 0.5, product


INTEGER_TOLERANCE = 2.0**-20
"""The distance from an integer below which a computed position may be that integer, for axes below 2^20 elements."""

Kernel = Callable[[Array], tuple[Array, Array, Array]]
"""An interpolation kernel: a function that returns weights, slopes and terms for an array of distances.

The weight is the weight of an element at this distance in a sample. The slope is the magnitude of the derivative of the
weight with respect to the distance. The terms are the largest intermediate values. Slopes and terms are also nonzero at
the distance at which the weight becomes 0, because rounding may reduce the distance.
"""


def _linear_kernel(x: Array) -> tuple[Array, Array, Array]:
    """Evaluate max(1 − |x|, 0), the kernel of linear interpolation."""
    x = np.abs(x)
    reached = (x < 1 + INTEGER_TOLERANCE) * 1.0
    return np.maximum(1 - x, 0), reached, reached


def _cubic_kernel(x: Array) -> tuple[Array, Array, Array]:
    """Evaluate the kernel of cubic convolution with a = −0.75.

    The polynomials are (a + 2)x³ − (a + 3)x² + 1 up to 1, and a(x³ − 5x² + 8x − 4) from there to 2.

    Args:
        x: distances.

    Returns:
        Weights, absolute slopes and largest intermediate values, each of the shape of x.
    """
    a, reached = -0.75, np.abs(x) < 2 + INTEGER_TOLERANCE
    x = np.minimum(np.abs(x), 2)
    near = x <= 1
    weight = np.where(near, (x - 1) * ((a + 2) * x**2 - x - 1), a * (x - 1) * (x - 2) ** 2)
    slope = np.where(near, 3 * (a + 2) * x**2 - 2 * (a + 3) * x, a * (3 * x**2 - 10 * x + 8))
    return weight, np.abs(slope) * reached, np.where(near, 1, -4 * a) * reached


def _linear_weights(d: int, size: int, align_corners: bool, mode: str) -> AxisWeights:
    """Return the weights of linear or cubic resizing along an axis.

    Elements outside the input have the value of the element at the border.

    Args:
        d: The size of the input.
        size: The size of the result.
        align_corners: Whether the first and last elements of input and result have the same positions.
        mode: "bicubic" for cubic resizing; any other mode is linear.

    Returns:
        The weights, (size, d).
    """
    x, product = _coordinates(d, size, align_corners)
    kernel: Kernel = _cubic_kernel if mode == "bicubic" else _linear_kernel
    x = x if mode == "bicubic" else np.maximum(x, 0)
    near = np.floor(x)[:, np.newaxis] + np.arange(-2, 4)  # as far as the wider kernel reaches for any rounding of x
    weights, slopes, largest = kernel(x[:, np.newaxis] - near)
    places = np.clip(near, 0, d - 1).astype(int)
    return AxisWeights(
        _place_in_rows(weights, places, d), _place_in_rows(largest + slopes * product[:, np.newaxis], places, d)
    )


def _place_in_rows(values: Array, places: Array, d: int) -> Array:
    """Return a matrix (size, d) with values (size, n) at places of its rows; values at the same place are added."""
    matrix = np.zeros((len(values), d))
    np.add.at(matrix, (np.arange(len(values))[:, np.newaxis], places), values)
    return matrix


@reference("diopiUpsampleLinear")
def upsample_linear(input, size, align_corners, mode):
    """Return linear or bicubic resizing of the spatial axes."""
    axes = zip(input.shape[2:], size, strict=True)
    weights = [_linear_weights(d, n, align_corners, mode) for d, n in axes]
    return add_nonfinite(weights, input, weighted_sum(weights, replace_nonfinite(input)))


@reference("diopiUpsampleLinearBackward")
def upsample_linear_backward(grad_output, out_size, in_size, align_corners, mode):
    """Return the gradient of linear or bicubic resizing."""
    axes = zip(in_size[2:], out_size, strict=True)
    return _gather_gradient([_linear_weights(d, n, align_corners, mode) for d, n in axes], grad_output)


def _grid_indices(input: Array, grid: Array) -> list[Array]:
    """Return the positions of sampled points along each spatial axis, in elements: one array (N, points) per axis.

    The last axis of the grid has the coordinates in [−1, 1], in the reverse order of the spatial axes.
    """
    points = grid.reshape(grid.shape[0], prod(grid.shape[1:-1]), grid.shape[-1])
    return [((points[..., -1 - k] + 1) * d - 1) / 2 for k, d in enumerate(input.shape[2:])]


def _sample_nearest(input: Array, indices: Sequence[Array]) -> Array:
    """Return the elements nearest to positions along each axis, 0 outside the input: (N, points, C)."""
    sizes = input.shape[2:]
    nearest = [np.rint(index).astype(int) for index in indices]
    inside = np.all([(index >= 0) & (index < d) for index, d in zip(nearest, sizes, strict=True)], axis=0)
    samples = np.arange(input.shape[0])[:, np.newaxis]
    clipped = [np.clip(index, 0, d - 1) for index, d in zip(nearest, sizes, strict=True)]
    return np.where(inside[..., np.newaxis], np.moveaxis(input, 1, -1)[samples, *clipped], 0)


def _sample_linearly(input: Array, weights: Sequence[Array]) -> Array:
    """Return sums (N, points, C) of elements with weights (N, points, d) per axis; elements of weight 0 don't count."""
    subscripts = ",".join(f"np{axis}" for axis in "xyz"[: len(weights)])

    def sums(elements: Array, *weights: Array) -> Array:
        """Return the weighted sums of elements."""
        return np.asanyarray(np.einsum(f"nc{'xyz'[: len(weights)]},{subscripts}->npc", elements, *weights))

    return sum_with_nonfinite(sums, input, *weights)


def _has_certain_parts(input: Array, indices: Sequence[Array]) -> Array:
    """Return a mask of the samples, (N, points, C), whose infinities and NaNs do not depend on rounding.

    An infinity or NaN at the edge of the reach of a sample may get a small weight or none, as positions are rounded.
    """

    def parts(sign: int) -> Array:
        """Return the number of nonfinite elements in reach if the reach is enlarged (1) or reduced (−1)."""
        reach = [1 + sign * POSITION_ERROR * (np.abs(index[..., np.newaxis]) + 1) / 2 for index in indices]
        sizes = zip(indices, reach, input.shape[2:], strict=True)
        near = [np.abs(index[..., np.newaxis] - np.arange(d)) < radius for index, radius, d in sizes]
        return _sample_linearly((~np.isfinite(input)).astype(float), [weight.astype(float) for weight in near])

    return parts(1) == parts(-1)


@reference("diopiGridSample")
def grid_sample(input, grid, mode):
    """Return samples of input at the points of a grid in [−1, 1], nearest or linear, with zeros outside."""
    indices = _grid_indices(input, grid)

    def to_result_shape(samples: Array) -> Array:
        """Return samples (N, points, C) in the shape of the result."""
        return np.moveaxis(samples, -1, 1).reshape(*input.shape[:2], *grid.shape[1:-1])

    if mode == "nearest":
        return Exact(to_result_shape(_sample_nearest(input, indices)))
    sizes = zip(indices, input.shape[2:], strict=True)
    weights = [np.maximum(1 - np.abs(index[..., np.newaxis] - np.arange(d)), 0) for index, d in sizes]
    # the addends weight · element cancel if they differ in sign
    terms = scale_sum_terms(_sample_linearly(np.abs(input), weights))
    # an index is rounded in proportion to its size, however small the coordinate is
    for axis, (index, d) in enumerate(zip(indices, input.shape[2:], strict=True)):
        distances = np.arange(d) - index[..., np.newaxis]
        slopes = np.where(np.abs(distances) < 1, np.sign(distances), 0) * (np.abs(index[..., np.newaxis]) + 1) / 2
        terms = terms + np.abs(_sample_linearly(input, [*weights[:axis], slopes, *weights[axis + 1 :]]))
    result = WithTerms(to_result_shape(_sample_linearly(input, weights)), to_result_shape(terms))
    return PartlySpecified(result, to_result_shape(_has_certain_parts(input, indices)))
