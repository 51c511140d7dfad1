"""Nearest points: of several that are equally near, any."""

from __future__ import annotations

import numpy as np

from diopi_test.oracle.budget import NEAR
from diopi_test.oracle.validators import Answer, Array, Problems, validates
from diopi_test.oracle.validators.kinds import all_where


@validates("diopiChamferDistanceMmcv")
def chamfer_distance(answer: Answer) -> Problems:
    one, other = answer.arguments["xyz1"], answer.arguments["xyz2"]
    yield from _nearest("idx1", answer.results["idx1"], one, other)
    yield from _nearest("idx2", answer.results["idx2"], other, one)


def _nearest(name: str, positions: Array, points: Array, others: Array) -> Problems:
    """Each position is of a point as near as any, but for rounding."""
    outside = (positions < 0) | (positions >= others.shape[1])
    yield from all_where(name, ~outside, positions, f"positions from 0 to {others.shape[1] - 1}")
    if not outside.any():
        distances = np.square(points[:, :, np.newaxis] - others[:, np.newaxis]).sum(-1)
        given = np.take_along_axis(distances, positions[..., np.newaxis], -1)[..., 0]
        yield from all_where(name, given <= distances.min(-1) * (1 + NEAR), positions, "positions of nearest points")
