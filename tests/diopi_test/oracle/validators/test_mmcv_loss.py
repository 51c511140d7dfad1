"""Test the validator of nearest points: any of several equally near points passes, and no other point."""

from typing import Any

import numpy as np
import pytest

from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.oracle.validators import CompletedCall, find_validator

XYZ1 = np.array([[[0.0, 0], [3, 4]]])
XYZ2 = np.array([[[1.0, 0], [0, 1], [9, 9]]])
"""The first two points are equally near to the origin."""


def problems(first: Any, second: Any) -> list[str]:
    """Return the problems that the validator finds in the indices of nearest points."""
    results = {"idx1": np.array([first]), "idx2": np.array([second])}
    call = CompletedCall(
        arguments={"xyz1": XYZ1, "xyz2": XYZ2},
        results=results,
        expected=results,
        dtypes=dict.fromkeys(results, Dtype.int32),
    )
    return list(find_validator(lookup("diopiChamferDistanceMmcv"))(call))


@pytest.mark.parametrize("nearest", [0, 1])
def test_validator_accepts_any_of_equally_near_points(nearest: int) -> None:
    assert not problems([nearest, 1], [0, 0, 1])


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        ([2, 1], [0, 0, 1], "idx1: 1 of 2 elements are not positions of nearest points, the first at (0, 0): 2"),
        ([0, 0], [0, 0, 1], "idx1: 1 of 2 elements are not positions of nearest points, the first at (0, 1): 0"),
        ([0, 1], [0, 0, 0], "idx2: 1 of 3 elements are not positions of nearest points"),
        ([3, 1], [0, 0, 1], "idx1: 1 of 2 elements are not positions from 0 to 2"),
        ([0, 1], [0, -1, 1], "idx2: 1 of 3 elements are not positions from 0 to 1"),
    ],
)
def test_validator_rejects_points_that_are_not_nearest(first: list[int], second: list[int], text: str) -> None:
    (problem,) = problems(first, second)
    assert problem.startswith(text)


def test_validator_accepts_nearest_points_that_rounding_can_exchange() -> None:
    near = XYZ2.copy()
    near[0, 0] *= 1 + 2.0**-24
    results = {"idx1": np.array([[0, 1]]), "idx2": np.array([[0, 0, 1]])}
    call = CompletedCall(
        arguments={"xyz1": XYZ1, "xyz2": near},
        results=results,
        expected=results,
        dtypes=dict.fromkeys(results, Dtype.int32),
    )
    assert not list(find_validator(lookup("diopiChamferDistanceMmcv"))(call))
