"""Test the validator of voxels in any order: every valid result passes, and each kind of invalid result is named."""

from typing import Any

import numpy as np
import pytest

from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.oracle.validators import CompletedCall, find_validator

Array = np.ndarray[Any, Any]

POINTS = np.array([[0.5, 0.5, 0.5, 7], [1.5, 0.5, 0.5, np.nan], [0.5, 0.25, 0.5, 8], [0.5, 0.5, 0.25, 9], [5, 0, 0, 1]])
"""Three points of the cell (0, 0, 0), one of (0, 0, 1), one outside."""


def problems(voxels: Any, coors: Any, counts: Any, *, max_voxels: int = 3) -> list[str]:
    """Return the problems of voxels that have room for two points each."""
    arguments = {
        "points": POINTS,
        "voxel_size": np.ones(3),
        "coors_range": np.array([0.0, 0, 0, 2, 1, 1]),
        "max_points": 2,
        "max_voxels": max_voxels,
        "deterministic": False,
    }
    results = {
        "voxels": np.array(voxels),
        "coors": np.array(coors),
        "num_points_per_voxel": np.array(counts),
        "voxel_num": np.array(min(2, max_voxels)),
    }
    return list(
        find_validator(lookup("diopiHardVoxelizeMmcv"))(
            CompletedCall(
                arguments=arguments, results=results, expected=results, dtypes=dict.fromkeys(results, Dtype.float32)
            )
        )
    )


A, B, C, D, NONE = POINTS[0], POINTS[1], POINTS[2], POINTS[3], np.zeros(4)
NEAR, FAR, LEFT = (0, 0, 0), (0, 0, 1), (0, 0, 0)


@pytest.mark.parametrize("pair", [(A, C), (C, A), (A, D), (D, C)])
def test_validator_accepts_voxels_and_points_in_any_order(pair: tuple[Array, Array]) -> None:
    empty = (NONE, NONE)
    assert not problems([pair, (B, NONE), empty], [NEAR, FAR, LEFT], [2, 1, 0])
    assert not problems([(B, NONE), pair, empty], [FAR, NEAR, LEFT], [1, 2, 0])


@pytest.mark.parametrize(("voxel", "cell", "count"), [((B, NONE), FAR, 1), ((C, D), NEAR, 2)])
def test_validator_accepts_any_subset_of_voxels(voxel: tuple[Array, Array], cell: tuple[int, ...], count: int) -> None:
    assert not problems([voxel], [cell], [count], max_voxels=1)


@pytest.mark.parametrize(
    ("voxels", "coors", "counts", "text"),
    [
        ([(A, C), (A, C), (NONE, NONE)], [NEAR, NEAR, LEFT], [2, 2, 0], "row 1 is (0, 0, 0), which occurs twice"),
        ([(A, C), (B, NONE), (NONE, NONE)], [NEAR, (1, 0, 0), LEFT], [2, 1, 0], "(1, 0, 0), which has no points"),
        ([(A, NONE), (B, NONE), (NONE, NONE)], [NEAR, FAR, LEFT], [1, 1, 0], "voxel 0 has 1 points, expected 2"),
        ([(A, A), (B, NONE), (NONE, NONE)], [NEAR, FAR, LEFT], [2, 1, 0], "not in cell (0, 0, 0), or has a point"),
        ([(A, B), (B, NONE), (NONE, NONE)], [NEAR, FAR, LEFT], [2, 1, 0], "not in cell (0, 0, 0), or has a point"),
        ([(A, C), (B, B), (NONE, NONE)], [NEAR, FAR, LEFT], [2, 1, 0], "voxel 1 has more than its 1 points"),
        ([(A, C), (B, NONE), (A, NONE)], [NEAR, FAR, LEFT], [2, 1, 0], "voxels: there are 2 voxels"),
        ([(A, C), (B, NONE), (NONE, NONE)], [NEAR, FAR, (0, 0, 1)], [2, 1, 0], "coors: there are 2 voxels"),
        ([(A, C), (B, NONE), (NONE, NONE)], [NEAR, FAR, LEFT], [2, 1, 1], "num_points_per_voxel: there are 2 voxels"),
    ],
)
def test_validator_rejects_wrong_voxels(voxels: Any, coors: Any, counts: Any, text: str) -> None:
    found = problems(voxels, coors, counts)
    assert any(text in problem for problem in found), found
