"""MMCV's operators on point sets: neighbors, sampling, gathering and grouping, interpolation, PAConv scores.

Points are (x, y, z). The functions whose names contain `stack` take several sets of different sizes that are
concatenated, and the number of rows of each set.

Functions with the decorator `reference` take the arguments of the named prototypes by name and return the results in
the prototypes' order.

The *terms* of a result (`WithTerms`) are the sizes of rounding errors of intermediate values, in units of eps. The unit
of an element's error budget includes eps times its terms.

Sources: MMCV's operators; C. Qi et al., "PointNet++", 2017 (ball query, furthest-point sampling, interpolation); M. Xu
et al., "PAConv", 2021.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import AnyOf, WithTerms, reference
from diopi_test.oracle.reference.products import sum_products

Array = NDArray[Any]

UNKNOWN_DISTANCE = 1e10
"""The squared distance to the selected points before any point is selected, and to a missing neighbor."""


def _squared_distances(points_a: Array, points_b: Array) -> Array:
    """Return the squared distances between points (…, n, 3) and points (…, m, 3): (…, n, m)."""
    return np.asanyarray(np.sum((points_a[..., :, np.newaxis, :] - points_b[..., np.newaxis, :, :]) ** 2, -1))


# Neighbors within a radius


def _fill_row(row: Array, hits: Array) -> None:
    """Fill a row with the indices of the first hits; repeat the first index in unused slots."""
    hit_indices = np.flatnonzero(hits)[: row.size]
    row[:] = hit_indices[0]
    row[: hit_indices.size] = hit_indices


@reference("diopiBallQueryMmcv")
def ball_query(idx, center_xyz, xyz, min_radius, max_radius):
    """Return the indices of the first points around each center; a row of zeros if there are none.

    A point counts if its distance is at least min_radius and less than max_radius, or 0. If there are fewer points than
    columns, the first index is repeated.
    """
    distances = _squared_distances(center_xyz, xyz)
    hits = (distances == 0) | ((distances >= min_radius**2) & (distances < max_radius**2))
    result = np.zeros_like(idx)
    for position in np.argwhere(hits.any(-1)):
        _fill_row(result[tuple(position)], hits[tuple(position)])
    return result


def _set_slices(counts: Array, rows: Array) -> Iterator[slice]:
    """Return the slice of each of several concatenated sets.

    Args:
        counts: The number of rows of each set.
        rows: The concatenated sets.

    Raises:
        ValueError: The sets do not cover all rows.
    """
    if counts.sum() != len(rows) or (counts < 0).any():
        raise ValueError(
            f"the sets have {counts.tolist()} rows, expected sizes of at least 0 that add up to {len(rows)}"
        )
    ends = np.cumsum(counts)
    return (slice(end - count, end) for end, count in zip(ends, counts, strict=True))


@reference("diopiStackBallQueryMmcv")
def stack_ball_query(idx, center_xyz, center_xyz_batch_cnt, xyz, xyz_batch_cnt, max_radius):
    """Return the indices of the first points within the radius of each center, for concatenated sets.

    A row without such points begins with −1. If there are fewer points than columns, the first index is repeated.
    """
    result = np.zeros_like(idx)
    for rows, points in zip(
        _set_slices(center_xyz_batch_cnt, center_xyz), _set_slices(xyz_batch_cnt, xyz), strict=True
    ):
        hits = _squared_distances(center_xyz[rows], xyz[points]) < max_radius**2
        for row, row_hits in zip(result[rows], hits, strict=True):
            if row_hits.any():
                _fill_row(row, row_hits)
            else:
                row[0] = -1
    return result


# Furthest-point sampling


def _furthest_points(distances_from: Callable[[int], Array], points: int, count: int) -> Array:
    """Return the indices of furthest-point sampling: point 0, then always the point furthest from all selected ones.

    Args:
        distances_from: Returns the squared distances of all points from the point with an index.
        points: The number of points.
        count: The number of points to select.
    """
    chosen, nearest = np.zeros(count, np.int64), np.full(points, UNKNOWN_DISTANCE)
    for step in range(1, count):
        nearest = np.minimum(nearest, distances_from(chosen[step - 1]))
        chosen[step] = np.argmax(nearest)
    return chosen


@reference("diopiFurthestPointSamplingMmcv")
def furthest_point_sampling(points_xyz, num_points):
    """Return the indices of furthest points of each set."""

    def choose(points: Array) -> Array:
        """Return the furthest points of a set."""
        return _furthest_points(lambda i: _squared_distances(points[i : i + 1], points)[0], len(points), num_points)

    return AnyOf(np.reshape([choose(points) for points in points_xyz], (len(points_xyz), num_points)))


@reference("diopiFurthestPointSamplingWithDistMmcv")
def furthest_point_sampling_with_dist(points_dist, num_points):
    """Return the indices of furthest points for matrices of distances."""
    rows = [_furthest_points(distances.__getitem__, distances.shape[0], num_points) for distances in points_dist]
    return AnyOf(np.reshape(rows, (points_dist.shape[0], num_points)))


# Nearest points


def _nearest_points(centers: Array, points: Array, count: int, missing: float) -> tuple[Array, Array]:
    """Return the squared distances and indices of the `count` nearest points of each center.

    Among points at the same distance, the lower index comes first. If there are too few points, the distances are
    padded with `missing`, and the indices with 0.
    """
    distances = _squared_distances(centers, points)
    order = np.argsort(distances, -1, kind="stable")[..., :count]
    neighbor_count = order.shape[-1]
    indices, nearest = np.zeros((*order.shape[:-1], count), np.int64), np.full((*order.shape[:-1], count), missing)
    indices[..., :neighbor_count], nearest[..., :neighbor_count] = order, np.take_along_axis(distances, order, -1)
    return nearest, indices


@reference("diopiKnnMmcv")
def knn(xyz_tensor, new_xyz_tensor, nsample):
    """Return the indices and squared distances of the k nearest points of each center."""
    nearest, indices = _nearest_points(new_xyz_tensor, xyz_tensor, nsample, UNKNOWN_DISTANCE)
    return AnyOf(indices), WithTerms(nearest, 0.0)


@reference("diopiThreeNnMmcv")
def three_nn(unknown, known):
    """Return the squared distances and indices of the three nearest known points."""
    return _nearest_points(unknown, known, 3, np.inf)


# Features at indices


def _flatten_trailing(array: Array, axes: int) -> Array:
    """Return an array with all axes after the first `axes` flattened into one."""
    return array.reshape(*array.shape[:axes], prod(array.shape[axes:]))


def _gather(features: Array, indices: Array) -> Array:
    """Return features[b, c, indices[b, …]]: (B, C, …)."""
    flat = np.take_along_axis(features, _flatten_trailing(indices, 1)[:, np.newaxis], 2)
    return flat.reshape(*features.shape[:2], *indices.shape[1:])


def _scatter_add(values: Array, indices: Array, length: int) -> Array:
    """Return the adjoint of `_gather`: the sums of values (B, C, …) at their indices, (B, C, length)."""
    sums = np.zeros_like(values, shape=(*values.shape[:2], length))
    flat = _flatten_trailing(values, 2)
    for batch, batch_indices in enumerate(_flatten_trailing(indices, 1)):
        selection: Any = (slice(None), batch_indices)
        np.add.at(sums[batch], selection, flat[batch])
    return sums


def _scatter_products(values: Array, weights: Array, indices: Array, length: int) -> WithTerms:
    """Return the sums of value · weight at the indices."""
    return sum_products(lambda value, weight: _scatter_add(value * weight, indices, length), values, weights)


@reference("diopiGatherPointsMmcv")
def gather_points(points, idx):
    """Return the features of the points `idx`: (B, C, points)."""
    return _gather(points, idx)


@reference("diopiGatherPointsBackwardMmcv")
def gather_points_backward(grad_points, grad_out, idx):
    """Return the gradient of the features."""
    return _scatter_products(grad_out, np.ones(1), idx, grad_points.shape[2])


@reference("diopiGroupPointsMmcv")
def group_points(points, idx):
    """Return the features of the points in each group: (B, C, groups, group size)."""
    return _gather(points, idx)


@reference("diopiGroupPointsBackwardMmcv")
def group_points_backward(grad_points, grad_out, idx):
    """Return the gradient of the features."""
    return _scatter_products(grad_out, np.ones(1), idx, grad_points.shape[2])


@reference("diopiThreeInterpolateMmcv")
def three_interpolate(points, idx, weight):
    """Return the weighted sum of the features of three points."""
    return sum_products(lambda value, w: np.sum(_gather(value, idx) * w, -1), points, weight[:, np.newaxis])


@reference("diopiThreeInterpolateBackwardMmcv")
def three_interpolate_backward(grad_points, grad_out, idx, weight):
    """Return the gradient of the features."""
    return _scatter_products(grad_out[..., np.newaxis], weight[:, np.newaxis], idx, grad_points.shape[2])


# Groups of concatenated sets


def _stacked_rows(idx: Array, idx_counts: Array, features: Array, feature_counts: Array) -> tuple[Array, Array]:
    """Return the row of the concatenated features for each index, and whether it is inside the set of the index.

    Args:
        idx: Indices within the sets, (rows, group size).
        idx_counts: The number of rows of `idx` for each set.
        features: The concatenated features of all sets.
        feature_counts: The number of rows of `features` for each set.
    """
    starts, lengths = np.zeros(len(idx), np.int64), np.zeros(len(idx), np.int64)
    for rows, feature_rows in zip(_set_slices(idx_counts, idx), _set_slices(feature_counts, features), strict=True):
        starts[rows], lengths[rows] = feature_rows.start, feature_rows.stop - feature_rows.start
    inside = (idx >= 0) & (idx < lengths[:, np.newaxis])
    return np.where(inside, starts[:, np.newaxis] + idx, 0), inside


@reference("diopiStackGroupPointsMmcv")
def stack_group_points(features_tensor, features_batch_cnt_tensor, idx_tensor, idx_batch_cnt_tensor):
    """Return the features of the points in each group, for concatenated sets; 0 for indices outside a set."""
    positions, inside = _stacked_rows(idx_tensor, idx_batch_cnt_tensor, features_tensor, features_batch_cnt_tensor)
    result = np.zeros((len(idx_tensor), features_tensor.shape[1], idx_tensor.shape[1]))
    for row, slot in np.argwhere(inside):
        result[row, :, slot] = features_tensor[positions[row, slot]]
    return result


@reference("diopiStackGroupPointsBackwardMmcv")
def stack_group_points_backward(
    grad_features_tensor, grad_out_tensor, idx_tensor, idx_batch_cnt_tensor, features_batch_cnt_tensor
):
    """Return the gradient of the concatenated features."""
    positions, inside = _stacked_rows(idx_tensor, idx_batch_cnt_tensor, grad_features_tensor, features_batch_cnt_tensor)
    grads = np.moveaxis(grad_out_tensor, 1, 0)[:, inside]
    summed = _scatter_products(grads[np.newaxis], np.ones(1), positions[inside][np.newaxis], len(grad_features_tensor))
    return WithTerms(summed.value[0].T, summed.terms[0].T)


# PAConv


def _gather_neighbors(features: Array, idx: Array) -> Array:
    """Return features[b, idx[b, …]] for features (B, N, M, O): (B, …, M, O)."""
    return features[np.arange(len(features)).reshape(-1, *[1] * (idx.ndim - 1)), idx]


def _neighbors(knn_idx: Array, points: Array, centers: Array) -> tuple[Array, Array]:
    """Return the features of the neighbors and the negative features of their centers, and which neighbors are valid.

    Args:
        knn_idx: The indices of K neighbors of each point, (B, n, K); the first one is the center.
        points: The features of points for each of M score matrices, (B, N, M, O).
        centers: The features of centers, in the same shape.

    Returns:
        The features, (2, B, n, K, M, O), which are 0 for invalid indices; and a mask of the valid indices, (B, n, K).
    """
    is_valid = (knn_idx >= 0) & (knn_idx < points.shape[1])
    center_idx = np.broadcast_to(knn_idx[..., :1], knn_idx.shape)
    terms = [_gather_neighbors(points, np.where(is_valid, knn_idx, 0)), -_gather_neighbors(centers, center_idx)]
    return np.array(terms) * is_valid[..., np.newaxis, np.newaxis], is_valid


@reference("diopiAssignScoreWithkMmcv")
def assign_score_withk(points, centers, scores, knn_idx):
    """Return Σ score · (point − center) over the M score matrices: (B, O, n, K)."""
    features, _ = _neighbors(knn_idx, points, centers)
    return sum_products(lambda values, mix: np.einsum("tbnkmo,bnkm->bonk", values, mix), features, scores)


@reference("diopiAssignScoreWithkBackwardMmcv")
def assign_score_withk_backward(grad_out, points, centers, scores, knn_idx):
    """Return the gradients of points, centers and scores."""
    features, is_valid = _neighbors(knn_idx, points, centers)
    center_idx = np.broadcast_to(knn_idx[..., :1], knn_idx.shape)

    def scatter(mix: Array, grad: Array, idx: Array) -> Array:
        """Return the sums of mix · grad at the valid indices."""
        sums = np.zeros_like(mix, shape=points.shape)
        batches = np.nonzero(is_valid)[0]
        np.add.at(sums, (batches, idx[is_valid]), np.einsum("bnkm,bonk->bnkmo", mix, grad)[is_valid])
        return sums

    points_gradient = sum_products(lambda mix, grad: scatter(mix, grad, knn_idx), scores, grad_out)
    centers_gradient = sum_products(lambda mix, grad: scatter(mix, grad, center_idx), -scores, grad_out)
    scores_gradient = sum_products(
        lambda values, grad: np.einsum("tbnkmo,bonk->bnkm", values, grad), features, grad_out
    )
    return points_gradient, centers_gradient, scores_gradient
