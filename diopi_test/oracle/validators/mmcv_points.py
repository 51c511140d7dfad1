"""Points chosen by distance: any of those that are equally far."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from diopi_proto.types import Dtype
from diopi_test.cases.formats import format_of
from diopi_test.oracle.budget import K
from diopi_test.oracle.validators import Answer, Array, Problems, validates
from diopi_test.oracle.validators.kinds import all_where, distinct_positions

FAR = 1e10
"""What a squared distance counts as that is not known."""


def _distances(one: Array, other: Array) -> Array:
    """Squared distances of (…, 3) from (…, 3), which broadcast."""
    return np.asarray(np.square(one - other).sum(-1))


def _slack(dtype: Dtype) -> float:
    """By how much, relative to it, a squared distance may be mistaken: its few operations are well-conditioned."""
    return K * format_of(dtype).epsilon


# Furthest point sampling


def _furthest(name: str, chosen: Array, distances_from: Callable[[int], Array], points: int, slack: float) -> Problems:
    """Each point but the first, which is 0, is as far from those before it as any."""
    outside = (chosen < 0) | (chosen >= points)
    if outside.any():
        yield f"{name}: index {chosen[outside][0]}, expected one from 0 to {points - 1}"
        return
    if chosen.size and chosen[0] != 0:
        yield f"{name}: the first index is {chosen[0]}, expected 0"
    nearest = np.full(points, FAR)
    for step, (before, index) in enumerate(pairwise(chosen), 1):
        nearest = np.minimum(nearest, distances_from(int(before)))
        if nearest[index] < nearest.max() * (1 - slack):
            yield f"{name}: point {index} of step {step} is {nearest[index]} from those before, others {nearest.max()}"
            return


@validates("diopiFurthestPointSamplingMmcv")
def furthest_point_sampling(answer: Answer) -> Problems:
    for batch, (chosen, points) in enumerate(zip(answer.result, answer.arguments["points_xyz"], strict=True)):

        def distances_from(index: int, points: Array = points) -> Array:
            return _distances(points, points[index])

        yield from _furthest(f"idx_tensor[{batch}]", chosen, distances_from, len(points), _slack(Dtype.float32))


@validates("diopiFurthestPointSamplingWithDistMmcv")
def furthest_point_sampling_with_dist(answer: Answer) -> Problems:
    """The distances are compared as they are given: nothing is rounded."""
    for batch, (chosen, distances) in enumerate(zip(answer.result, answer.arguments["points_dist"], strict=True)):
        yield from _furthest(f"idx_tensor[{batch}]", chosen, distances.__getitem__, len(distances), 0.0)


# Nearest neighbours


@validates("diopiKnnMmcv")
def knn(answer: Answer) -> Problems:
    """The points named are at the distances of the nearest ones, and no point is named twice; slots left over are 0."""
    points, centers = answer.arguments["xyz_tensor"], answer.arguments["new_xyz_tensor"]
    indices: Array = answer.results["idx_tensor"]
    there = min(points.shape[1], indices.shape[-1])
    named = indices[..., :there]
    problems = list(distinct_positions("idx_tensor", named, points.shape[1], -1))
    if not problems:
        batches = np.arange(len(points))[:, np.newaxis, np.newaxis]
        given = _distances(points[batches, named], centers[:, :, np.newaxis])
        everything: Any = _distances(points[:, np.newaxis], centers[:, :, np.newaxis])
        wanted = np.sort(everything, -1)[..., :there]
        right = np.abs(given - wanted) <= _slack(answer.dtypes["dist2_tensor"]) * wanted
        problems = list(all_where("idx_tensor", right, named, "at the distance of the point of that rank"))
    yield from problems
    left = indices[..., there:]
    yield from all_where("idx_tensor", left == 0, left, "0 where there are no more points")
