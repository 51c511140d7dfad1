"""MMCV's operators on point sets: neighbours, sampling, gathering and grouping, interpolation, PAConv scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.reference import AnyOf, WithTerms, reference
from diopi_test.oracle.reference.products import with_terms

Array = NDArray[Any]

FAR = 1e10
"""What a squared distance counts as that is not known."""


def _squared_distances(one: Array, other: Array) -> Array:
    """From each point of (…, n, 3) to each of (…, m, 3): (…, n, m)."""
    return np.asarray(np.sum((one[..., :, np.newaxis, :] - other[..., np.newaxis, :, :]) ** 2, -1))


# Neighbours within a radius


def _fill(row: Array, hits: Array) -> None:
    """Put the first hits into a row, and the very first of them into what is left."""
    found = np.flatnonzero(hits)[: row.size]
    row[:] = found[0]
    row[: found.size] = found


@reference("diopiBallQueryMmcv")
def ball_query(
    idx: Array,
    center_xyz: Array,
    xyz: Array,
    B: int,
    N: int,
    npoint: int,
    sample_num: int,
    min_radius: float,
    max_radius: float,
) -> Array:
    distances = _squared_distances(center_xyz, xyz)
    hits = (distances == 0) | ((distances >= min_radius**2) & (distances < max_radius**2))
    result = np.zeros_like(idx)
    for place in np.argwhere(hits.any(-1)):
        _fill(result[tuple(place)], hits[tuple(place)])
    return result


def _parts(counts: Array, stacked: Array) -> Iterator[slice]:
    """Where each of several stacked sets lies; ValueError if they are not all that is stacked."""
    if counts.sum() != len(stacked) or (counts < 0).any():
        raise ValueError(f"sets of {counts.tolist()} rows do not make up {len(stacked)}")
    ends = np.cumsum(counts)
    return (slice(end - count, end) for end, count in zip(ends, counts, strict=True))


@reference("diopiStackBallQueryMmcv")
def stack_ball_query(
    idx: Array,
    center_xyz: Array,
    center_xyz_batch_cnt: Array,
    xyz: Array,
    xyz_batch_cnt: Array,
    max_radius: float,
    sample_num: int,
) -> Array:
    result = np.zeros_like(idx)
    for rows, points in zip(_parts(center_xyz_batch_cnt, center_xyz), _parts(xyz_batch_cnt, xyz), strict=True):
        hits = _squared_distances(center_xyz[rows], xyz[points]) < max_radius**2
        for row, its in zip(result[rows], hits, strict=True):
            if its.any():
                _fill(row, its)
            else:
                row[0] = -1
    return result


# Points far from each other


def _furthest(distances_from: Callable[[int], Array], points: int, count: int) -> Array:
    """Point 0, then again and again the one whose nearest point chosen before is furthest."""
    chosen, nearest = np.zeros(count, np.int64), np.full(points, FAR)
    for step in range(1, count):
        nearest = np.minimum(nearest, distances_from(chosen[step - 1]))
        chosen[step] = np.argmax(nearest)
    return chosen


@reference("diopiFurthestPointSamplingMmcv")
def furthest_point_sampling(temp_tensor: Array, points_xyz: Array, B: int, N: int, num_points: int) -> AnyOf:
    def chosen(points: Array) -> Array:
        return _furthest(lambda i: _squared_distances(points[i : i + 1], points)[0], len(points), num_points)

    return AnyOf(np.reshape([chosen(points) for points in points_xyz], (len(points_xyz), num_points)))


@reference("diopiFurthestPointSamplingWithDistMmcv")
def furthest_point_sampling_with_dist(temp_tensor: Array, points_dist: Array, B: int, N: int, num_points: int) -> AnyOf:
    rows = [_furthest(one.__getitem__, one.shape[0], num_points) for one in points_dist]
    return AnyOf(np.reshape(rows, (points_dist.shape[0], num_points)))


# Nearest points


def _nearest(centers: Array, points: Array, count: int, missing: float) -> tuple[Array, Array]:
    """Squared distances and indices of the nearest points, the lower index first; `missing` where there are too few."""
    distances = _squared_distances(centers, points)
    order = np.argsort(distances, -1, kind="stable")[..., :count]
    there = order.shape[-1]
    indices, nearest = np.zeros((*order.shape[:-1], count), np.int64), np.full((*order.shape[:-1], count), missing)
    indices[..., :there], nearest[..., :there] = order, np.take_along_axis(distances, order, -1)
    return nearest, indices


@reference("diopiKnnMmcv")
def knn(xyz_tensor: Array, new_xyz_tensor: Array, b: int, n: int, m: int, nsample: int) -> tuple[AnyOf, WithTerms]:
    nearest, indices = _nearest(new_xyz_tensor, xyz_tensor, nsample, FAR)
    return AnyOf(indices), WithTerms(nearest, 0.0)


@reference("diopiThreeNnMmcv")
def three_nn(unknown: Array, known: Array, b: int, n: int, m: int) -> tuple[Array, Array]:
    return _nearest(unknown, known, 3, np.inf)


# Features of chosen points


def _flat(array: Array, axes: int) -> Array:
    """An array with all axes but the first ones in one."""
    return array.reshape(*array.shape[:axes], prod(array.shape[axes:]))


def _taken(features: Array, indices: Array) -> Array:
    """features[b, c, indices[b, …]] as (B, C, …)."""
    flat = np.take_along_axis(features, _flat(indices, 1)[:, np.newaxis], 2)
    return flat.reshape(*features.shape[:2], *indices.shape[1:])


def _put(values: Array, indices: Array, length: int) -> Array:
    """The adjoint of `_taken`: sums of values (B, C, …) at the indices."""
    sums = np.zeros((*values.shape[:2], length))
    flat = _flat(values, 2)
    for batch, its in enumerate(_flat(indices, 1)):
        places: Any = (slice(None), its)
        np.add.at(sums[batch], places, flat[batch])
    return sums


def _put_with_terms(values: Array, weights: Array, indices: Array, length: int) -> WithTerms:
    """Sums of value · weight at the indices."""
    return with_terms(lambda value, weight: _put(value * weight, indices, length), values, weights)


@reference("diopiGatherPointsMmcv")
def gather_points(points: Array, idx: Array, b: int, c: int, n: int, npoints: int) -> Array:
    return _taken(points, idx)


@reference("diopiGatherPointsBackwardMmcv")
def gather_points_backward(
    grad_points: Array, grad_out: Array, idx: Array, b: int, c: int, n: int, npoints: int
) -> WithTerms:
    return _put_with_terms(grad_out, np.ones(1), idx, grad_points.shape[2])


@reference("diopiGroupPointsMmcv")
def group_points(points: Array, idx: Array, b: int, c: int, n: int, npoints: int, nsample: int) -> Array:
    return _taken(points, idx)


@reference("diopiGroupPointsBackwardMmcv")
def group_points_backward(
    grad_points: Array, grad_out: Array, idx: Array, b: int, c: int, n: int, npoints: int, nsample: int
) -> WithTerms:
    return _put_with_terms(grad_out, np.ones(1), idx, grad_points.shape[2])


@reference("diopiThreeInterpolateMmcv")
def three_interpolate(points: Array, idx: Array, weight: Array, b: int, c: int, m: int, n: int) -> WithTerms:
    return with_terms(lambda value, w: np.sum(_taken(value, idx) * w, -1), points, weight[:, np.newaxis])


@reference("diopiThreeInterpolateBackwardMmcv")
def three_interpolate_backward(
    grad_points: Array, grad_out: Array, idx: Array, weight: Array, b: int, c: int, n: int, m: int
) -> WithTerms:
    return _put_with_terms(grad_out[..., np.newaxis], weight[:, np.newaxis], idx, grad_points.shape[2])


# Groups of stacked sets


def _rows(idx: Array, idx_counts: Array, features: Array, feature_counts: Array) -> tuple[Array, Array]:
    """Where in the stacked features each index points, and whether that is inside the set of its row."""
    starts, lengths = np.zeros(len(idx), np.int64), np.zeros(len(idx), np.int64)
    for rows, its in zip(_parts(idx_counts, idx), _parts(feature_counts, features), strict=True):
        starts[rows], lengths[rows] = its.start, its.stop - its.start
    inside = (idx >= 0) & (idx < lengths[:, np.newaxis])
    return np.where(inside, starts[:, np.newaxis] + idx, 0), inside


@reference("diopiStackGroupPointsMmcv")
def stack_group_points(
    out_tensor: Array,
    features_tensor: Array,
    features_batch_cnt_tensor: Array,
    idx_tensor: Array,
    idx_batch_cnt_tensor: Array,
    b: int,
    c: int,
    m: int,
    nsample: int,
) -> Array:
    places, inside = _rows(idx_tensor, idx_batch_cnt_tensor, features_tensor, features_batch_cnt_tensor)
    result = np.zeros((len(idx_tensor), features_tensor.shape[1], idx_tensor.shape[1]))
    for row, slot in np.argwhere(inside):
        result[row, :, slot] = features_tensor[places[row, slot]]
    return result


@reference("diopiStackGroupPointsBackwardMmcv")
def stack_group_points_backward(
    grad_features_tensor: Array,
    grad_out_tensor: Array,
    idx_tensor: Array,
    idx_batch_cnt_tensor: Array,
    features_batch_cnt_tensor: Array,
    b: int,
    c: int,
    m: int,
    n: int,
    nsample: int,
) -> WithTerms:
    places, inside = _rows(idx_tensor, idx_batch_cnt_tensor, grad_features_tensor, features_batch_cnt_tensor)
    given = np.moveaxis(grad_out_tensor, 1, 0)[:, inside]
    summed = _put_with_terms(given[np.newaxis], np.ones(1), places[inside][np.newaxis], len(grad_features_tensor))
    return WithTerms(summed.value[0].T, summed.terms[0].T)


# PAConv


def _of_neighbours(features: Array, idx: Array) -> Array:
    """features[b, idx[b, …]] of (B, N, M, O) as (B, …, M, O)."""
    return features[np.arange(len(features)).reshape(-1, *[1] * (idx.ndim - 1)), idx]


def _neighbours(knn_idx: Array, points: Array, centers: Array) -> tuple[Array, Array]:
    """What is mixed, points − centers as two terms (2, B, n, K, M, O), and whether each neighbour is there."""
    there = (knn_idx >= 0) & (knn_idx < points.shape[1])
    own = np.broadcast_to(knn_idx[..., :1], knn_idx.shape)
    terms = [_of_neighbours(points, np.where(there, knn_idx, 0)), -_of_neighbours(centers, own)]
    return np.array(terms) * there[..., np.newaxis, np.newaxis], there


@reference("diopiAssignScoreWithkMmcv")
def assign_score_withk(
    output: Array,
    points: Array,
    centers: Array,
    scores: Array,
    knn_idx: Array,
    B: int,
    N: int,
    npoint: int,
    M: int,
    K: int,
    out_dim: int,
    aggregate: int,
) -> WithTerms:
    features, _ = _neighbours(knn_idx, points, centers)
    return with_terms(lambda values, mix: np.einsum("tbnkmo,bnkm->bonk", values, mix), features, scores)


@reference("diopiAssignScoreWithkBackwardMmcv")
def assign_score_withk_backward(
    grad_points: Array,
    grad_centers: Array,
    grad_scores: Array,
    grad_out: Array,
    points: Array,
    centers: Array,
    scores: Array,
    knn_idx: Array,
    B: int,
    N: int,
    npoint: int,
    M: int,
    K: int,
    out_dim: int,
    aggregate: int,
) -> tuple[WithTerms, WithTerms, WithTerms]:
    features, there = _neighbours(knn_idx, points, centers)
    own = np.broadcast_to(knn_idx[..., :1], knn_idx.shape)

    def scattered(mix: Array, given: Array, idx: Array) -> Array:
        sums = np.zeros(points.shape)
        batches = np.nonzero(there)[0]
        np.add.at(sums, (batches, idx[there]), np.einsum("bnkm,bonk->bnkmo", mix, given)[there])
        return sums

    to_points = with_terms(lambda mix, given: scattered(mix, given, knn_idx), scores, grad_out)
    to_centers = with_terms(lambda mix, given: scattered(mix, given, own), -scores, grad_out)
    to_scores = with_terms(lambda values, given: np.einsum("tbnkmo,bonk->bnkm", values, given), features, grad_out)
    return to_points, to_centers, to_scores
