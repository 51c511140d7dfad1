"""MMCV's operators on point sets: neighbors, sampling, gathering and grouping, interpolation, PAConv scores.

Distances are computed center by center, so that no call needs memory for the distances of all pairs.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as JAX arrays and Python values, with None for an
omitted argument. It returns the results.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from diopi_impl.jax_cpu import vendor

UNKNOWN_DISTANCE = 1e10
"""The initial value of squared distances."""

MAX_NEIGHBORS = 100
"""The maximum number of neighbors per point in `knn`."""

CENTERS_PER_STEP = 8
"""The number of centers whose distances are computed together."""


def _squared_distances(points: Array, center: Array) -> Array:
    """Return the squared distances of points (…, N, 3) from a center (…, 3)."""
    return jnp.square(points - center[..., jnp.newaxis, :]).sum(-1)


def _map_centers(function: Callable[[Array, Array], Any], points: Array, centers: Array) -> Any:
    """Return `function(points, center)` for each center (B, n, 3) and the points (B, N, 3) of its set."""

    def map_set(pair: tuple[Array, Array]) -> Any:
        """Return the results for the centers of a set."""
        points, centers = pair
        return lax.map(lambda center: function(points, center), centers, batch_size=CENTERS_PER_STEP)

    return lax.map(map_set, (points, centers))


def _first_hits(hits: Array, count: int) -> tuple[Array, Array]:
    """Return the indices of the first `count` hits, padded with the first index, and whether there is any hit."""
    if not hits.size:
        return jnp.zeros(count, int), jnp.array(False)
    hit_counts = jnp.cumsum(hits, dtype=jnp.int32)
    number = jnp.arange(1, count + 1)
    return jnp.searchsorted(hit_counts, jnp.where(number <= hit_counts[-1], number, 1)), hit_counts[-1] > 0


@vendor.implements("diopiBallQueryMmcv")
def ball_query(center_xyz, xyz, sample_num, min_radius, max_radius):
    """Return the indices of the first points within the radii of each center; zeros if there is none."""

    def row(points: Array, center: Array) -> Array:
        """Return the indices of the first `sample_num` points within the radii of a center."""
        distances = _squared_distances(points, center)
        hits = (distances == 0) | ((distances >= min_radius**2) & (distances < max_radius**2))
        indices, has_hit = _first_hits(hits, sample_num)
        return jnp.where(has_hit, indices, 0)

    return jnp.asarray(_map_centers(row, xyz, center_xyz))


def _set_of_rows(counts: Array, rows: int) -> Array:
    """Return the index of the stacked set that each row belongs to."""
    return jnp.searchsorted(jnp.cumsum(counts), jnp.arange(rows), side="right")


@vendor.implements("diopiStackBallQueryMmcv")
def stack_ball_query(idx, center_xyz, center_xyz_batch_cnt, xyz, xyz_batch_cnt, max_radius, sample_num):
    """Return the indices of the first points within the radius of each center, for concatenated sets.

    The indices are those in the set of the center. If there is no such point, they are −1, 0, 0, …
    """
    if not center_xyz.size:
        return jnp.zeros(idx.shape, int)
    set_of_point = _set_of_rows(xyz_batch_cnt, len(xyz))
    starts = jnp.cumsum(xyz_batch_cnt) - xyz_batch_cnt
    none = jnp.zeros(sample_num, int).at[0].set(-1)

    def row(inputs: tuple[Array, Array]) -> Array:
        """Return the indices, in its set, of the first `sample_num` points within the radius of a center."""
        center, set_index = inputs
        hits = (_squared_distances(xyz, center) < max_radius**2) & (set_of_point == set_index)
        indices, has_hit = _first_hits(hits, sample_num)
        return jnp.where(has_hit, indices - starts[set_index], none)

    return lax.map(row, (center_xyz, _set_of_rows(center_xyz_batch_cnt, len(center_xyz))), batch_size=CENTERS_PER_STEP)


def _furthest_points(distances_from: Callable[[Array], Array], points: int, count: int, dtype: Any) -> Array:
    """Return the indices of the points that furthest-point sampling chooses, the first of which is 0.

    Args:
        distances_from: returns the distances of all points from the point with an index.
        points: the number of points.
        count: the number of points to choose.
        dtype: the type of the distances.
    """

    def choose(step: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        """Choose the point with the largest distance to its nearest chosen point."""
        chosen, nearest = state
        nearest = jnp.minimum(nearest, distances_from(chosen[step - 1]))
        return chosen.at[step].set(jnp.argmax(nearest)), nearest

    start = jnp.zeros(count, int), jnp.full(points, UNKNOWN_DISTANCE, dtype)
    return lax.fori_loop(1, count, choose, start)[0] if points else start[0]


@vendor.implements("diopiFurthestPointSamplingMmcv")
def furthest_point_sampling(points_xyz, num_points):
    """Return the indices of the points that furthest-point sampling chooses from each set."""

    def sample_set(points: Array) -> Array:
        """Return the indices of the points that are chosen from a set."""
        return _furthest_points(lambda i: _squared_distances(points, points[i]), len(points), num_points, points.dtype)

    return lax.map(sample_set, points_xyz)


@vendor.implements("diopiFurthestPointSamplingWithDistMmcv")
def furthest_point_sampling_with_dist(points_dist, num_points):
    """Return the indices of the points that furthest-point sampling chooses, given the distances of all pairs."""
    return lax.map(
        lambda distances: _furthest_points(lambda i: distances[i], len(distances), num_points, distances.dtype),
        points_dist,
    )


def _nearest_points(points: Array, centers: Array, count: int, missing: float) -> tuple[Array, Array]:
    """Return the squared distances and the indices of the `count` nearest points of each center: (B, n, count).

    Points at the same distance are sorted by index. If there are too few points, the distances are padded with
    `missing`, and the indices with 0.
    """
    missing_count = max(count - points.shape[1], 0)

    def row(points: Array, center: Array) -> tuple[Array, Array]:
        """Return the distances and indices for a center."""
        negative, indices = lax.top_k(-_squared_distances(points, center), count - missing_count)
        return jnp.pad(-negative, (0, missing_count), constant_values=missing), jnp.pad(indices, (0, missing_count))

    distances, indices = _map_centers(row, points, centers)
    return distances, indices


@vendor.implements("diopiKnnMmcv")
def knn(xyz_tensor, new_xyz_tensor, nsample):
    """Return the indices and squared distances of the k nearest points of each center."""
    if not 1 <= nsample <= MAX_NEIGHBORS:
        raise ValueError(f"nsample is {nsample}, expected 1 to {MAX_NEIGHBORS}")
    distances, indices = _nearest_points(xyz_tensor, new_xyz_tensor, nsample, UNKNOWN_DISTANCE)
    return indices, distances


@vendor.implements("diopiThreeNnMmcv")
def three_nn(unknown, known):
    """Return the squared distances and indices of the three nearest known points."""
    return _nearest_points(known, unknown, 3, jnp.inf)


def _gather(features: Array, indices: Array) -> Array:
    """Return features[b, c, indices[b, …]] as (B, C, …)."""
    flat = jnp.take_along_axis(features, indices.reshape(indices.shape[0], 1, prod(indices.shape[1:])), 2)
    return flat.reshape(*features.shape[:2], *indices.shape[1:])


def _gather_adjoint(values: Array, indices: Array, length: int) -> Array:
    """Return sums of values (B, C, …) at the indices: the adjoint of `_gather`."""
    zeros = jnp.zeros((*values.shape[:2], length), values.dtype)
    (sums,) = jax.vjp(lambda features: _gather(features, indices), zeros)[1](values)
    return jnp.asarray(sums)


@vendor.implements("diopiGatherPointsMmcv")
def gather_points(points, idx):
    """Return the features of the points `idx`: (B, C, points)."""
    return _gather(points, idx)


@vendor.implements("diopiGroupPointsMmcv")
def group_points(points, idx):
    """Return the features of the points `idx` in each group: (B, C, groups, group size)."""
    return _gather(points, idx)


@vendor.implements("diopiThreeInterpolateMmcv")
def three_interpolate(points, idx, weight):
    """Return the sum of the features of the three points `idx`, weighted with `weight`."""
    return jnp.sum(_gather(points, idx) * weight[:, jnp.newaxis], -1)


@vendor.implements("diopiThreeInterpolateBackwardMmcv")
def three_interpolate_backward(grad_out, idx, weight, m):
    """Return the gradient of the features of the `m` points."""
    return _gather_adjoint(grad_out[..., jnp.newaxis] * weight[:, jnp.newaxis], idx, m)


def _stacked_rows(idx: Array, idx_counts: Array, feature_counts: Array) -> tuple[Array, Array]:
    """Return the row of the stacked features for each index, and whether it is inside the set of the index."""
    set_index = _set_of_rows(idx_counts, len(idx))
    starts = jnp.cumsum(feature_counts) - feature_counts
    inside = (idx >= 0) & (idx < feature_counts[set_index][:, jnp.newaxis])
    return jnp.where(inside, starts[set_index][:, jnp.newaxis] + idx, 0), inside


@vendor.implements("diopiStackGroupPointsMmcv")
def stack_group_points(out_tensor, features_tensor, features_batch_cnt_tensor, idx_tensor, idx_batch_cnt_tensor):
    """Return the features of the points in each group, for concatenated sets; 0 for indices outside a set."""
    if not features_tensor.size:
        return jnp.zeros(out_tensor.shape)
    places, inside = _stacked_rows(idx_tensor, idx_batch_cnt_tensor, features_batch_cnt_tensor)
    return jnp.moveaxis(jnp.where(inside[..., jnp.newaxis], features_tensor[places], 0), 2, 1)


@vendor.implements("diopiStackGroupPointsBackwardMmcv")
def stack_group_points_backward(
    grad_features_tensor, grad_out_tensor, idx_tensor, idx_batch_cnt_tensor, features_batch_cnt_tensor, n
):
    """Return the gradient of the concatenated features."""
    places, inside = _stacked_rows(idx_tensor, idx_batch_cnt_tensor, features_batch_cnt_tensor)
    grad = jnp.moveaxis(grad_out_tensor, 1, 2)
    zeros = jnp.zeros(grad_features_tensor.shape, grad.dtype)
    return zeros.at[jnp.where(inside, places, n)].add(grad, mode="drop")


def _assign_scores(points: Array, centers: Array, scores: Array, knn_idx: Array) -> Array:
    """Return Σ score · (neighbor − center) over the score matrices: (B, O, n, K)."""
    is_valid = (knn_idx >= 0) & (knn_idx < points.shape[1])
    batches = jnp.arange(len(points))[:, jnp.newaxis, jnp.newaxis]
    neighbors = jnp.where(is_valid, knn_idx, 0)
    center_index = jnp.broadcast_to(knn_idx[..., :1], knn_idx.shape)
    weights = jnp.where(is_valid[..., jnp.newaxis], scores, 0)

    def add(total: Array, step_inputs: tuple[Array, Array, Array]) -> tuple[Array, None]:
        """Add the products for a score matrix to the result."""
        step_points, step_centers, weight = step_inputs
        relative = step_points[batches, neighbors] - step_centers[batches, center_index]
        return total + jnp.einsum("bnko,bnk->bonk", relative, weight), None

    zeros = jnp.zeros((len(points), points.shape[3], *knn_idx.shape[1:]), points.dtype)
    parts = jnp.moveaxis(points, 2, 0), jnp.moveaxis(centers, 2, 0), jnp.moveaxis(weights, 3, 0)
    return lax.scan(add, zeros, parts)[0]


@vendor.implements("diopiAssignScoreWithkMmcv")
def assign_score_withk(output, points, centers, scores, knn_idx, K):
    """Return Σ score · (point − center) over the score matrices (Xu et al., "PAConv")."""
    return _assign_scores(points, centers, scores, knn_idx) if points.size and K else jnp.zeros(output.shape)


@vendor.implements("diopiAssignScoreWithkBackwardMmcv")
def assign_score_withk_backward(grad_out, points, centers, scores, knn_idx, K):
    """Return the gradients of points, centers and scores."""
    if not (points.size and K):
        return jnp.zeros(points.shape), jnp.zeros(centers.shape), jnp.zeros(scores.shape)

    def assign_scores(points: Array, centers: Array, scores: Array) -> Array:
        """Return the result for points, centers and scores."""
        return _assign_scores(points, centers, scores, knn_idx)

    return jax.vjp(assign_scores, points, centers, scores)[1](grad_out)
