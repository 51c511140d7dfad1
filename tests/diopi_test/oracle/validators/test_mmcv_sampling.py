"""Test the validator of a temporal shift's gradient: either direction passes, a mixture or anything else does not."""

from typing import Any

import numpy as np

from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.oracle.validators import CompletedCall, find_validator

Array = np.ndarray[Any, Any]

GRAD = np.arange(1.0, 9).reshape(1, 4, 2, 1)
"""Four frames of two channels: 1, 3, 5, 7 and 2, 4, 6, 8."""


def problems(first_channel: list[int], second_channel: list[int]) -> list[str]:
    """Return the problems of a result with these channels, whose shifts are 1 and −2."""
    result = np.array([first_channel, second_channel], float).T.reshape(GRAD.shape)
    arguments = {"grad_output": GRAD, "shift": np.array([[1, -2]])}
    call = CompletedCall(
        arguments=arguments,
        results={"grad_input": result},
        expected={"grad_input": result},
        dtypes={"grad_input": Dtype.float32},
    )
    return list(find_validator(lookup("diopiTinShiftBackwardMmcv"))(call))


def test_validator_accepts_both_directions() -> None:
    assert not problems([0, 1, 3, 5], [6, 8, 0, 0])
    assert not problems([3, 5, 7, 0], [0, 0, 2, 4])


def test_validator_rejects_a_mixture_of_directions() -> None:
    assert problems([0, 1, 3, 5], [0, 0, 2, 4])
    assert problems([3, 5, 7, 0], [6, 8, 0, 0])


def test_validator_rejects_nonzero_frames_at_the_border() -> None:
    assert problems([1, 1, 3, 5], [6, 8, 0, 0])


def test_message_names_the_position_of_a_foreign_number() -> None:
    (problem,) = problems([0, 1, 3, 9], [6, 8, 0, 0])
    assert "[0, 3, 0, 0]" in problem
