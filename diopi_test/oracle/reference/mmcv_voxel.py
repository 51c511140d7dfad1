"""MMCV's voxels, reduction by voxel, and sparse convolution and pooling.

A voxel is a cell of a regular grid in space; its index has the order z, y, x. Sparse features have a row per voxel that
contains points. A sparse convolution lists, for each kernel position, the pairs of input and output rows that it
connects.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.

Sources: MMCV's operators; Y. Zhou, O. Tuzel, "VoxelNet", 2018; Y. Yan et al., "SECOND: Sparsely Embedded Convolutional
Detection", 2018 (sparse convolution).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import AnyOf, Exact, PartlySpecified, Remark, WithTerms, reference
from diopi_test.oracle.reference.products import add_rounded, sum_products

Array = NDArray[Any]

# Voxels


def _voxel_cells(points: Array, voxel_size: Array, coors_range: Array) -> tuple[Array, Array]:
    """Return the cell (z, y, x) of each point, and whether the cell is in the grid.

    Args:
        points: The points; the first three columns are x, y and z.
        voxel_size: The size of a cell along x, y and z.
        coors_range: The least x, y and z of the grid, then the largest ones.
    """
    low, high = coors_range[:3], coors_range[3:]
    cells = np.floor((points[:, :3] - low) / voxel_size)
    inside = (cells >= 0) & (cells < np.round((high - low) / voxel_size))
    return np.where(inside, cells, -1).astype(np.int64)[:, ::-1], np.asanyarray(inside.all(1))


@reference("diopiHardVoxelizeMmcv")
def hard_voxelize(
    voxels, coors, num_points_per_voxel, points, voxel_size, coors_range, max_points, max_voxels, deterministic
):
    """Return the points of each voxel, the cell of each voxel, the numbers of points, and the number of voxels.

    Unless the call is deterministic, the voxels may be in any order, and the first three results are `AnyOf`.
    """
    cells, inside = _voxel_cells(points, voxel_size, coors_range)
    cells, points = cells[inside], points[inside]
    first, cell_of_point, counts = np.unique(cells, axis=0, return_index=True, return_inverse=True, return_counts=True)[
        1:
    ]
    points_of_cell = np.split(np.argsort(cell_of_point.reshape(-1), kind="stable"), np.cumsum(counts)[:-1])
    collected, coordinates, numbers = np.zeros_like(voxels), np.zeros_like(coors), np.zeros_like(num_points_per_voxel)
    voxel_order = np.argsort(first)[:max_voxels]
    for voxel, cell in enumerate(voxel_order):
        members = points_of_cell[cell][:max_points]
        collected[voxel, : len(members)], numbers[voxel] = points[members], len(members)
        coordinates[voxel] = cells[first[cell]]
    results = (collected, coordinates, numbers) if deterministic else map(AnyOf, (collected, coordinates, numbers))
    return *results, np.asanyarray(len(voxel_order))


@reference("diopiDynamicVoxelizeMmcv")
def dynamic_voxelize(points, voxel_size, coors_range):
    """Return the cell (z, y, x) of each point; −1 outside the grid, where only the first number is specified."""
    cells, inside = _voxel_cells(points, voxel_size, coors_range)
    specified = inside[:, np.newaxis] | (np.arange(3) == 0)
    return PartlySpecified(np.where(inside[:, np.newaxis], cells, -1), specified)


# Reduction by voxel

SUM, MEAN, MAXIMUM = range(3)
"""The values of `reduce_type`."""


@reference("diopiDynamicPointToVoxelMmcv")
def dynamic_point_to_voxel(feats, coors, reduce_type):
    """Return the reduced features and the cell of each voxel, the voxel of each point, and the point counts."""
    is_valid = (coors >= 0).all(1)
    rows, row_of_point, counts = np.unique(coors[is_valid], axis=0, return_inverse=True, return_counts=True)
    voxel_of_point = np.full(len(coors), -1)
    voxel_of_point[is_valid] = row_of_point.reshape(-1)
    return [
        _reduce_by_voxel(feats[is_valid], voxel_of_point[is_valid], counts, reduce_type),
        rows,
        voxel_of_point,
        counts,
    ]


def _reduce_by_voxel(feats: Array, voxel_of_point: Array, counts: Array, reduce_type: int) -> Remark:
    """Return the sum, the mean or the maximum of the features of the points of each voxel: (voxels, features)."""
    if reduce_type == MAXIMUM:
        largest = np.full((len(counts), feats.shape[1]), -np.inf)
        np.maximum.at(largest, voxel_of_point, feats)
        return Exact(largest)

    def sum_points(values: Array, ones: Array) -> Array:
        """Return the sum of the features of the points in each voxel."""
        sums = np.zeros_like(values, shape=(len(counts), feats.shape[1]))
        np.add.at(sums, voxel_of_point, values * ones)
        return sums

    total, divisors = sum_products(sum_points, feats, np.ones(1)), counts[:, np.newaxis]
    return total if reduce_type == SUM else WithTerms(total.value / divisors, total.terms / divisors)


@reference("diopiDynamicPointToVoxelBackwardMmcv")
def dynamic_point_to_voxel_backward(grad_reduced_feats, feats, reduced_feats, coors_idx, reduce_count, reduce_type):
    """Return the gradient of the features; for a maximum, only the first point that attains it."""
    grad, valid_points = np.zeros(feats.shape), np.flatnonzero(coors_idx >= 0)
    rows = coors_idx[valid_points]
    if reduce_type == SUM:
        grad[valid_points] = grad_reduced_feats[rows]
        return Exact(grad)
    if reduce_type == MEAN:
        grad[valid_points] = grad_reduced_feats[rows] / reduce_count[rows, np.newaxis]
        return grad
    first = np.full(reduced_feats.shape, len(feats))
    attained = np.where(feats[valid_points] == reduced_feats[rows], valid_points[:, np.newaxis], len(feats))
    np.minimum.at(first, rows, attained)
    grad[valid_points] = np.where(first[rows] == valid_points[:, np.newaxis], grad_reduced_feats[rows], 0)
    return Exact(grad)


# Sparse convolution


def _row_pairs(indice_pairs: Array, indice_num: Array, inverse: int = 0) -> Iterator[tuple[Array, Array]]:
    """Yield, for each kernel position, the input rows and the output rows that it connects.

    Args:
        indice_pairs: The rows, (kernel positions, 2, rows).
        indice_num: The number of pairs of each kernel position.
        inverse: Whether input and output are exchanged, as in an inverse convolution.

    Yields:
        The input rows and the output rows.
    """
    for (inputs, outputs), count in zip(indice_pairs, indice_num, strict=True):
        pair = inputs[:count], outputs[:count]
        yield pair[::-1] if inverse else pair


def _convolution_pairs(indice_pairs: Array, indice_num: Array, rows: int, inverse: int, submanifold: int) -> list[Any]:
    """Return the pairs of each kernel position as `_row_pairs` yields them.

    In a submanifold convolution, input and output have the same rows. The center of the kernel, which is the position
    with the most pairs, connects each row to itself.
    """
    pairs: list[Any] = list(_row_pairs(indice_pairs, indice_num, inverse))
    if submanifold:
        pairs[int(np.argmax(indice_num))] = np.arange(rows), np.arange(rows)
    return pairs


@reference("diopiIndiceConvMmcv")
def indice_conv(features, filters, indicePairs, indiceNum, numActOut, _inverse, _subM):
    """Return the sparse convolution: each kernel position maps its input rows to output rows."""
    pairs = _convolution_pairs(indicePairs, indiceNum, len(features), _inverse, _subM)

    def convolve(rows: Array, weights: Array) -> Array:
        """Return the sums of products of connected rows and kernel matrices."""
        sums = np.zeros_like(rows, shape=(numActOut, filters.shape[-1]))
        for matrix, (inputs, outputs) in zip(weights, pairs, strict=True):
            np.add.at(sums, outputs, rows[inputs] @ matrix)
        return sums

    return sum_products(convolve, features, filters.reshape(-1, *filters.shape[-2:]))


@reference("diopiIndiceConvBackwardMmcv")
def indice_conv_backward(features, filters, outGrad, indicePairs, indiceNum, _inverse, _subM):
    """Return the gradients of features and filters."""
    pairs = _convolution_pairs(indicePairs, indiceNum, len(features), _inverse, _subM)

    def features_gradient(grad: Array, weights: Array) -> Array:
        """Return the sums of gradients of connected output rows times transposed matrices."""
        sums = np.zeros_like(grad, shape=features.shape)
        for matrix, (inputs, outputs) in zip(weights, pairs, strict=True):
            np.add.at(sums, inputs, grad[outputs] @ matrix.T)
        return sums

    def filters_gradient(rows: Array, grad: Array) -> Array:
        """Return the products of connected rows for each kernel position."""
        products = [rows[inputs].T @ grad[outputs] for inputs, outputs in pairs]
        return np.stack(products).reshape(filters.shape)

    matrices = filters.reshape(-1, *filters.shape[-2:])
    return [sum_products(features_gradient, outGrad, matrices), sum_products(filters_gradient, features, outGrad)]


@reference("diopiFusedIndiceConvBatchnormMmcv")
def fused_indice_conv_batchnorm(features, filters, bias, indicePairs, indiceNum, numActOut, _inverse, _subM):
    """Return the sparse convolution plus the bias."""
    return add_rounded(indice_conv(features, filters, indicePairs, indiceNum, numActOut, _inverse, _subM), bias)


@reference("diopiIndiceMaxpoolMmcv")
def indice_maxpool(features, indicePairs, indiceNum, numAct):
    """Return the maximum, at least 0, over the input rows connected to each output row."""
    largest = np.zeros((numAct, features.shape[1]))
    for inputs, outputs in _row_pairs(indicePairs, indiceNum):
        np.maximum.at(largest, outputs, features[inputs])
    return largest


@reference("diopiIndiceMaxpoolBackwardMmcv")
def indice_maxpool_backward(features, outFeatures, outGrad, indicePairs, indiceNum):
    """Return the gradient of the features: grad of each output row for all inputs equal to its maximum."""

    def scatter_gradient(grad: Array, unit: Array) -> Array:
        """Return the sums of the gradients at the maxima."""
        sums = np.zeros_like(grad, shape=features.shape)
        for inputs, outputs in _row_pairs(indicePairs, indiceNum):
            np.add.at(sums, inputs, np.where(features[inputs] == outFeatures[outputs], grad[outputs] * unit, 0))
        return sums

    return sum_products(scatter_gradient, outGrad, np.ones(1))
