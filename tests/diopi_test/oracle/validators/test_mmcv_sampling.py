"""The judge of a temporal shift's gradient: either direction passes, a mixture or anything else does not."""

from typing import Any

import numpy as np

from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.oracle.validators import Answer, find_validator

Array = np.ndarray[Any, Any]

GRAD = np.arange(1.0, 9).reshape(1, 4, 2, 1)
"""Four frames of two channels: 1, 3, 5, 7 and 2, 4, 6, 8."""


def problems(one: list[int], other: list[int]) -> list[str]:
    """Of an answer of these two channels, the first shifted by one place, the other by −2."""
    result = np.array([one, other], float).T.reshape(GRAD.shape)
    arguments = {"grad_output": GRAD, "shift": np.array([[1, -2]])}
    answer = Answer(arguments, {"grad_input": result}, {"grad_input": result}, {"grad_input": Dtype.float32})
    return list(find_validator(lookup("diopiTinShiftBackwardMmcv"))(answer))


def test_either_direction_is_right() -> None:
    assert not problems([0, 1, 3, 5], [6, 8, 0, 0])
    assert not problems([3, 5, 7, 0], [0, 0, 2, 4])


def test_a_mixture_is_wrong() -> None:
    assert problems([0, 1, 3, 5], [0, 0, 2, 4])
    assert problems([3, 5, 7, 0], [6, 8, 0, 0])


def test_what_comes_in_must_be_zero() -> None:
    assert problems([1, 1, 3, 5], [6, 8, 0, 0])


def test_foreign_numbers_are_named() -> None:
    (problem,) = problems([0, 1, 3, 9], [6, 8, 0, 0])
    assert "first at [0, 3, 0, 0]" in problem
