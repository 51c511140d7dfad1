"""Validators of functions that select points by distance: any of several points at the same distance is valid.

Distances are squared Euclidean distances.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from diopi_proto.types import Dtype
from diopi_test.oracle.budget import K
from diopi_test.oracle.validators import Array, CompletedCall, Problems, validates
from diopi_test.oracle.validators.properties import check_distinct_positions, check_elements
from lib_rt.formats import format_of

INITIAL_DISTANCE = 1e10
"""The distance of each point from the selected points before a point is selected; the value is that of MMCV."""


def _distances(x: Array, y: Array) -> Array:
    """Return the distances between the points x and y, both (…, 3), which broadcast."""
    return np.asarray(np.square(x - y).sum(-1))


def _distance_tolerance(dtype: Dtype) -> float:
    """Return the accepted relative error of a distance in `dtype`: K eps."""
    return K * format_of(dtype).epsilon


# Furthest point sampling


def _check_furthest(
    name: str, chosen: Array, distances_from: Callable[[int], Array], points: int, slack: float
) -> Problems:
    """Check that point 0 is selected first, and then always a point that is furthest from the selected points."""
    is_outside = (chosen < 0) | (chosen >= points)
    if is_outside.any():
        yield f"{name}: index {chosen[is_outside][0]}, expected one from 0 to {points - 1}"
        return
    if chosen.size and chosen[0] != 0:
        yield f"{name}: the first index is {chosen[0]}, expected 0"
    nearest = np.full(points, INITIAL_DISTANCE)
    for step, (before, index) in enumerate(pairwise(chosen), 1):
        nearest = np.minimum(nearest, distances_from(int(before)))
        if nearest[index] < nearest.max() * (1 - slack):
            yield f"{name}: step {step} selects point {index} at distance {nearest[index]}, expected {nearest.max()}"
            return


@validates("diopiFurthestPointSamplingMmcv")
def furthest_point_sampling(call: CompletedCall) -> Problems:
    """Check that each selected point is furthest from all points selected before it."""
    for batch, (chosen, points) in enumerate(zip(call.result, call.arguments["points_xyz"], strict=True)):

        def distances_from(index: int, points: Array = points) -> Array:
            """Return the squared distances of all points from the point `index`."""
            return _distances(points, points[index])

        yield from _check_furthest(
            f"idx_tensor[{batch}]", chosen, distances_from, len(points), _distance_tolerance(Dtype.float32)
        )


@validates("diopiFurthestPointSamplingWithDistMmcv")
def furthest_point_sampling_with_dist(call: CompletedCall) -> Problems:
    """Check that each selected point is furthest from the points before it, by the distances `points_dist`."""
    for batch, (chosen, distances) in enumerate(zip(call.result, call.arguments["points_dist"], strict=True)):
        yield from _check_furthest(f"idx_tensor[{batch}]", chosen, distances.__getitem__, len(distances), 0.0)


# Nearest neighbors


@validates("diopiKnnMmcv")
def knn(call: CompletedCall) -> Problems:
    """Check that the k points of each center are distinct and as near as its k nearest points.

    If there are fewer than k points, the unused elements of the result must be 0.
    """
    points, centers = call.arguments["xyz_tensor"], call.arguments["new_xyz_tensor"]
    indices: Array = call.results["idx_tensor"]
    neighbor_count = min(points.shape[1], indices.shape[-1])
    named = indices[..., :neighbor_count]
    problems = list(check_distinct_positions("idx_tensor", named, points.shape[1], -1))
    if not problems:
        batches = np.arange(len(points))[:, np.newaxis, np.newaxis]
        distances = _distances(points[batches, named], centers[:, :, np.newaxis])
        all_distances: Any = _distances(points[:, np.newaxis], centers[:, :, np.newaxis])
        expected = np.sort(all_distances, -1)[..., :neighbor_count]
        is_valid = np.abs(distances - expected) <= _distance_tolerance(call.dtypes["dist2_tensor"]) * expected
        problems = list(check_elements("idx_tensor", is_valid, named, "as near as the neighbor of this rank"))
    yield from problems
    unused = indices[..., neighbor_count:]
    yield from check_elements("idx_tensor", unused == 0, unused, "0 where there are no more points")
