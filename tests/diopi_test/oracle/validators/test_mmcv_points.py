"""Test validators of points selected by distance: valid results pass, and messages describe invalid results."""

from typing import Any

import numpy as np
import pytest

from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.oracle.validators import CompletedCall, find_validator

Array = np.ndarray[Any, Any]

SQUARE = np.array([[[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]]])
"""Points, two of which are equally far from the first one."""


def problems(function: str, results: dict[str, Any], **arguments: Any) -> list[str]:
    """Return the problems that the validator of a function finds in these results."""
    arrays = {name: np.asarray(value) for name, value in results.items()}
    dtypes = dict.fromkeys(arrays, Dtype.float32)
    return list(
        find_validator(lookup(function))(
            CompletedCall(arguments=arguments, results=arrays, expected=arrays, dtypes=dtypes)
        )
    )


@pytest.mark.parametrize("chosen", [[0, 3, 1, 2], [0, 3, 2, 1]])
def test_validator_accepts_furthest_points_at_equal_distance_in_any_order(chosen: list[int]) -> None:
    distances = np.square(SQUARE[:, :, np.newaxis] - SQUARE[:, np.newaxis]).sum(-1)
    assert not problems("diopiFurthestPointSamplingMmcv", {"idx_tensor": [chosen]}, points_xyz=SQUARE)
    assert not problems("diopiFurthestPointSamplingWithDistMmcv", {"idx_tensor": [chosen]}, points_dist=distances)


@pytest.mark.parametrize(
    ("chosen", "text"),
    [
        ([3, 0, 1, 2], "the first index is 3"),
        ([0, 1, 3, 2], "step 1 selects point 1"),
        ([0, 3, 3, 1], "step 2 selects point 3"),
        ([0, 4, 1, 2], "index 4, expected one from 0 to 3"),
        ([0, -1, 1, 2], "index -1"),
    ],
)
def test_validator_rejects_points_that_are_not_furthest(chosen: list[int], text: str) -> None:
    (problem,) = problems("diopiFurthestPointSamplingMmcv", {"idx_tensor": [chosen]}, points_xyz=SQUARE)[:1]
    assert text in problem


@pytest.mark.parametrize("row", [[0, 1, 2], [0, 2, 1]])
def test_validator_accepts_neighbors_at_equal_distance_in_any_order(row: list[int]) -> None:
    results = {"idx_tensor": [[row]], "dist2_tensor": [[[0.0, 1, 1]]]}
    assert not problems("diopiKnnMmcv", results, xyz_tensor=SQUARE, new_xyz_tensor=SQUARE[:, :1])


@pytest.mark.parametrize(
    ("row", "text"),
    [([0, 3, 1], "as near as"), ([0, 1, 1], "more than once"), ([0, 1, 4], "a position from 0 to 3")],
)
def test_validator_rejects_points_that_are_not_nearest(row: list[int], text: str) -> None:
    results = {"idx_tensor": [[row]], "dist2_tensor": [[[0.0, 1, 1]]]}
    found = problems("diopiKnnMmcv", results, xyz_tensor=SQUARE, new_xyz_tensor=SQUARE[:, :1])
    assert any(text in problem for problem in found)


def test_validator_rejects_nonzero_unused_slots() -> None:
    results = {"idx_tensor": [[[0, 1, 2, 3, 1]]], "dist2_tensor": [[[0.0, 1, 1, 2, 1e10]]]}
    found = problems("diopiKnnMmcv", results, xyz_tensor=SQUARE, new_xyz_tensor=SQUARE[:, :1])
    assert any("0 where there are no more points" in problem for problem in found)
