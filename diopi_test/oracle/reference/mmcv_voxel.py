"""MMCV's voxels, reduction by voxel, and sparse convolution and pooling over pairs of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import AnyOf, Exact, PartlySpecified, Remark, WithTerms, reference
from diopi_test.oracle.reference.products import plus, with_terms

Array = NDArray[Any]

# Voxels


def _cells(points: Array, voxel_size: Array, coors_range: Array) -> tuple[Array, Array]:
    """Of each point the cell (z, y, x), and whether the grid has it."""
    low, high = coors_range[:3], coors_range[3:]
    cells = np.floor((points[:, :3] - low) / voxel_size)
    inside = (cells >= 0) & (cells < np.round((high - low) / voxel_size))
    return np.where(inside, cells, -1).astype(np.int64)[:, ::-1], np.asarray(inside.all(1))


@reference("diopiHardVoxelizeMmcv")
def hard_voxelize(
    voxels: Array,
    coors: Array,
    num_points_per_voxel: Array,
    points: Array,
    voxel_size: Array,
    coors_range: Array,
    max_points: int,
    max_voxels: int,
    NDim: int,
    deterministic: bool,
) -> tuple[Any, Any, Any, Array]:
    cells, inside = _cells(points, voxel_size, coors_range)
    cells, points = cells[inside], points[inside]
    first, cell_of_point, counts = np.unique(cells, axis=0, return_index=True, return_inverse=True, return_counts=True)[
        1:
    ]
    points_of_cell = np.split(np.argsort(cell_of_point.reshape(-1), kind="stable"), np.cumsum(counts)[:-1])
    collected, places, numbers = np.zeros_like(voxels), np.zeros_like(coors), np.zeros_like(num_points_per_voxel)
    in_order = np.argsort(first)[:max_voxels]
    for voxel, cell in enumerate(in_order):
        own = points_of_cell[cell][:max_points]
        collected[voxel, : len(own)], numbers[voxel] = points[own], len(own)
        places[voxel] = cells[first[cell]]
    told = (collected, places, numbers) if deterministic else map(AnyOf, (collected, places, numbers))
    return *told, np.asarray(len(in_order))


@reference("diopiDynamicVoxelizeMmcv")
def dynamic_voxelize(coors: Array, points: Array, voxel_size: Array, coors_range: Array, NDim: int) -> PartlySpecified:
    cells, inside = _cells(points, voxel_size, coors_range)
    specified = inside[:, np.newaxis] | (np.arange(3) == 0)
    return PartlySpecified(np.where(inside[:, np.newaxis], cells, -1), specified)


# Reduction by voxel

SUM, MEAN, MAXIMUM = range(3)


@reference("diopiDynamicPointToVoxelMmcv")
def dynamic_point_to_voxel(feats: Array, coors: Array, reduce_type: int) -> list[Any]:
    kept = (coors >= 0).all(1)
    rows, row_of_point, counts = np.unique(coors[kept], axis=0, return_inverse=True, return_counts=True)
    places = np.full(len(coors), -1)
    places[kept] = row_of_point.reshape(-1)
    return [_reduced(feats[kept], places[kept], counts, reduce_type), rows, places, counts]


def _reduced(feats: Array, places: Array, counts: Array, reduce_type: int) -> Remark:
    """The features of the points of each row in one, as rows are numbered by `places`."""
    if reduce_type == MAXIMUM:
        largest = np.full((len(counts), feats.shape[1]), -np.inf)
        np.maximum.at(largest, places, feats)
        return Exact(largest)

    def summed(values: Array, ones: Array) -> Array:
        sums = np.zeros((len(counts), feats.shape[1]))
        np.add.at(sums, places, values * ones)
        return sums

    total, divisors = with_terms(summed, feats, np.ones(1)), counts[:, np.newaxis]
    return total if reduce_type == SUM else WithTerms(total.value / divisors, total.terms / divisors)


@reference("diopiDynamicPointToVoxelBackwardMmcv")
def dynamic_point_to_voxel_backward(
    grad_reduced_feats: Array,
    feats: Array,
    reduced_feats: Array,
    coors_idx: Array,
    reduce_count: Array,
    reduce_type: int,
) -> Any:
    grad, kept = np.zeros(feats.shape), np.flatnonzero(coors_idx >= 0)
    rows = coors_idx[kept]
    if reduce_type == SUM:
        grad[kept] = grad_reduced_feats[rows]
        return Exact(grad)
    if reduce_type == MEAN:
        grad[kept] = grad_reduced_feats[rows] / reduce_count[rows, np.newaxis]
        return grad
    first = np.full(reduced_feats.shape, len(feats))
    attained = np.where(feats[kept] == reduced_feats[rows], kept[:, np.newaxis], len(feats))
    np.minimum.at(first, rows, attained)
    grad[kept] = np.where(first[rows] == kept[:, np.newaxis], grad_reduced_feats[rows], 0)
    return Exact(grad)


# Sparse convolution


def _pairs(indice_pairs: Array, indice_num: Array, inverse: int = 0) -> Iterator[tuple[Array, Array]]:
    """Of each position of the kernel, the input and the output rows that it joins."""
    for (inputs, outputs), count in zip(indice_pairs, indice_num, strict=True):
        joined = inputs[:count], outputs[:count]
        yield joined[::-1] if inverse else joined


def _joined(indice_pairs: Array, indice_num: Array, rows: int, inverse: int, submanifold: int) -> list[Any]:
    """As `_pairs`; in a submanifold the position of the most pairs joins each row to itself."""
    pairs: list[Any] = list(_pairs(indice_pairs, indice_num, inverse))
    if submanifold:
        pairs[int(np.argmax(indice_num))] = np.arange(rows), np.arange(rows)
    return pairs


@reference("diopiIndiceConvMmcv")
def indice_conv(
    features: Array,
    filters: Array,
    indicePairs: Array,
    indiceNum: Array,
    numActOut: int,
    _inverse: int,
    _subM: int,
) -> WithTerms:
    pairs = _joined(indicePairs, indiceNum, len(features), _inverse, _subM)

    def convolved(rows: Array, weights: Array) -> Array:
        sums = np.zeros((numActOut, filters.shape[-1]))
        for matrix, (inputs, outputs) in zip(weights, pairs, strict=True):
            np.add.at(sums, outputs, rows[inputs] @ matrix)
        return sums

    return with_terms(convolved, features, filters.reshape(-1, *filters.shape[-2:]))


@reference("diopiIndiceConvBackwardMmcv")
def indice_conv_backward(
    features: Array,
    filters: Array,
    outGrad: Array,
    indicePairs: Array,
    indiceNum: Array,
    _inverse: int,
    _subM: int,
) -> list[WithTerms]:
    pairs = _joined(indicePairs, indiceNum, len(features), _inverse, _subM)

    def to_features(given: Array, weights: Array) -> Array:
        sums = np.zeros(features.shape)
        for matrix, (inputs, outputs) in zip(weights, pairs, strict=True):
            np.add.at(sums, inputs, given[outputs] @ matrix.T)
        return sums

    def to_filters(rows: Array, given: Array) -> Array:
        products = [rows[inputs].T @ given[outputs] for inputs, outputs in pairs]
        return np.reshape(products, filters.shape)

    matrices = filters.reshape(-1, *filters.shape[-2:])
    return [with_terms(to_features, outGrad, matrices), with_terms(to_filters, features, outGrad)]


@reference("diopiFusedIndiceConvBatchnormMmcv")
def fused_indice_conv_batchnorm(
    features: Array,
    filters: Array,
    bias: Array,
    indicePairs: Array,
    indiceNum: Array,
    numActOut: int,
    _inverse: int,
    _subM: int,
) -> WithTerms:
    return plus(indice_conv(features, filters, indicePairs, indiceNum, numActOut, _inverse, _subM), bias)


@reference("diopiIndiceMaxpoolMmcv")
def indice_maxpool(features: Array, indicePairs: Array, indiceNum: Array, numAct: int) -> Array:
    largest = np.zeros((numAct, features.shape[1]))
    for inputs, outputs in _pairs(indicePairs, indiceNum):
        np.maximum.at(largest, outputs, features[inputs])
    return largest


@reference("diopiIndiceMaxpoolBackwardMmcv")
def indice_maxpool_backward(
    features: Array, outFeatures: Array, outGrad: Array, indicePairs: Array, indiceNum: Array
) -> WithTerms:
    def given_back(grad: Array, ones: Array) -> Array:
        sums = np.zeros(features.shape)
        for inputs, outputs in _pairs(indicePairs, indiceNum):
            np.add.at(sums, inputs, np.where(features[inputs] == outFeatures[outputs], grad[outputs] * ones, 0))
        return sums

    return with_terms(given_back, outGrad, np.ones(1))
