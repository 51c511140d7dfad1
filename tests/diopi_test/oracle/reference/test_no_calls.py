"""References refuse what is no call where no relation between sizes shows it: the fuzzer takes their word for it."""

from typing import Any

import numpy as np
import pytest
from references import call

ONES = np.ones
CORRELATION = (1, 1, 2, 1, 0, 0, 1, 1, 1, 1, 1, 1)
"""Of a patch of two rows."""


def counts(*numbers: int) -> Any:
    return np.array(numbers)


@pytest.mark.parametrize(
    ("function", "arguments", "said"),
    [
        ("diopiUnfoldBackward", (ONES((5, 2)), (6,), 0, 2, 2), "windows"),
        ("diopiTinShiftMmcv", (ONES((1, 2, 3, 1)), ONES((1, 2, 3, 1)), counts(1, 1).reshape(1, 2)), "groups"),
        ("diopiCorrelationMmcv", (ONES((1, 1, 3, 3)), ONES((1, 1, 3, 3)), *CORRELATION), "odd"),
        ("diopiNLLLoss", (ONES((2, 3)), counts(0, 3), None, 0, -100), "classes"),
        ("diopiBoxIouQuadriMmcv", (counts(0, 0, 1, 1, 1, 0, 0, 1)[np.newaxis] * 1.0, ONES((0, 8)), 0, False), "convex"),
        (
            "diopiStackGroupPointsMmcv",
            (ONES((3, 1, 1)), ONES((4, 1)), counts(4), np.zeros((3, 1), int), counts(2), 1, 1, 3, 1),
            "make up",
        ),
    ],
)
def test_what_is_no_call_is_refused(function: str, arguments: tuple[Any, ...], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        call(function, *arguments)


def test_an_infinite_element_without_weight_has_no_part_in_a_sample() -> None:
    row, middle_of_first = np.array([[[[2.0, 1.0, np.inf]]]]), np.array([[[[-2 / 3, 0.0]]]])
    assert call("diopiGridSample", row, middle_of_first, "bilinear").item() == 2


def test_a_logistic_function_far_to_the_left_is_open_where_its_exponential_overflows() -> None:
    assert call("diopiSigmoid", np.array([-1000 - 3j, 0j])).tolist() == [0, 0.5]
