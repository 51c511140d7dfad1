"""The validator of the nearest points in the Chamfer distance: any of several points at the same distance is valid."""

from __future__ import annotations

import numpy as np

from diopi_test.oracle.budget import NEAR
from diopi_test.oracle.validators import Array, CompletedCall, Problems, validates
from diopi_test.oracle.validators.properties import check_elements


@validates("diopiChamferDistanceMmcv")
def chamfer_distance(call: CompletedCall) -> Problems:
    """Check that `idx1` and `idx2` refer to nearest points of the opposite set."""
    xyz1, xyz2 = call.arguments["xyz1"], call.arguments["xyz2"]
    yield from _check_nearest("idx1", call.results["idx1"], xyz1, xyz2)
    yield from _check_nearest("idx2", call.results["idx2"], xyz2, xyz1)


def _check_nearest(name: str, positions: Array, points: Array, candidates: Array) -> Problems:
    """Check that each position refers to a candidate at the smallest distance; rounding may decide between candidates.

    Args:
        name: The name of the result.
        positions: The position of the nearest candidate of each point, [batch, points].
        points: The points, [batch, points, coordinates].
        candidates: The points of the opposite set, [batch, candidates, coordinates].

    Yields:
        A description of each problem.
    """
    is_outside = (positions < 0) | (positions >= candidates.shape[1])
    yield from check_elements(name, ~is_outside, positions, f"positions from 0 to {candidates.shape[1] - 1}")
    if not is_outside.any():
        distances = np.square(points[:, :, np.newaxis] - candidates[:, np.newaxis]).sum(-1)
        actual = np.take_along_axis(distances, positions[..., np.newaxis], -1)[..., 0]
        yield from check_elements(
            name, actual <= distances.min(-1) * (1 + NEAR), positions, "positions of nearest points"
        )
