"""Test the validators of boxes: every valid result passes, and each kind of invalid result is named."""

from typing import Any

import numpy as np
import pytest

from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.oracle.validators import CompletedCall, find_validator

Array = np.ndarray[Any, Any]


def problems(function: str, name: str, result: Any, **arguments: Any) -> list[str]:
    """Return the problems that the validator of a function finds in a result."""
    results = {name: np.asarray(result)}
    return list(
        find_validator(lookup(function))(
            CompletedCall(arguments=arguments, results=results, expected=results, dtypes={name: Dtype.float32})
        )
    )


# Suppression: boxes 0 and 1 are alike and of one score, 2 overlaps both by half and has a lower one, 3 is alone.

BOXES = np.array([[0.0, 0, 4, 4], [0, 0, 4, 4], [0, 2, 4, 6], [8, 8, 9, 9]])
SCORES = np.array([0.5, 0.5, 0.25, 0.75])


def check_selection(*places: int, threshold: float = 0.3) -> list[str]:
    """Return the problems that the validator finds if these boxes are selected."""
    arguments = {"dets": BOXES, "scores": SCORES, "iou_threshold": threshold, "offset": 0}
    return problems("diopiNmsMmcv", "out", np.array(places, int), **arguments)


@pytest.mark.parametrize("first", [0, 1])
def test_nms_may_keep_any_of_two_boxes_of_equal_score(first: int) -> None:
    assert not check_selection(3, first)
    assert not check_selection(3, first, 2, threshold=0.5)


@pytest.mark.parametrize(
    ("places", "text"),
    [
        ((0, 3), "descending order"),
        ((3, 0, 1), "out: box 1 overlaps box 0, which is selected before it"),
        ((3,), "box 0 is missing"),
        ((3, 2), "box 0 is missing"),
        ((0,), "box 3 is missing"),
        ((3, 4), "a position from 0 to 3"),
        ((3, 0, 0), "occurs more than once"),
    ],
)
def test_validator_rejects_wrong_selection_of_boxes(places: tuple[int, ...], text: str) -> None:
    assert any(text in problem for problem in check_selection(*places))


def test_overlap_equal_to_the_threshold_drops_no_box() -> None:
    """The overlap of box 2 with box 0 is a third of their union."""
    assert not check_selection(3, 0, 2, threshold=1 / 3)


def test_offset_widens_boxes() -> None:
    arguments = {"dets": BOXES[[0, 2]], "scores": SCORES[[0, 2]], "iou_threshold": 3 / 8}
    assert not problems("diopiNmsMmcv", "out", [0, 1], **arguments, offset=0)
    assert problems("diopiNmsMmcv", "out", [0, 1], **arguments, offset=1)
    assert not problems("diopiNmsMmcv", "out", [0], **arguments, offset=1)


# Smallest rectangles around nine points.

POINTS_OF_ROTATED_SQUARE = np.array([[1.0, 0], [0, 1], [-1, 0], [0, -1], *[(0, 0)] * 5]) * np.sqrt(2)
"""The corners of a square whose diagonals are parallel to the axes, and five times the center."""

POINTS_OF_UPRIGHT_RECTANGLE = np.array([[2.0, 1], [0, 1], [0, 0], [2, 0], *[(1, 0.5)] * 5])
"""The corners of a rectangle whose sides are parallel to the axes, and five times the center."""


def check_smallest_rectangle(points: Array, *corners: Any) -> list[str]:
    """Return the problems that the validator finds in this polygon as the smallest rectangle around the points."""
    polygons = np.array(corners).reshape(1, 8)
    return problems("diopiMinAreaPolygonsMmcv", "polygons", polygons, pointsets=points.reshape(1, 18))


SQUARE_CLOCKWISE = [(0, -np.sqrt(2)), (-np.sqrt(2), 0), (0, np.sqrt(2)), (np.sqrt(2), 0)]
"""The corners of the rotated square, clockwise, as the function returns them."""


@pytest.mark.parametrize("first", range(4))
def test_rectangle_may_begin_with_any_corner(first: int) -> None:
    assert not check_smallest_rectangle(POINTS_OF_ROTATED_SQUARE, *SQUARE_CLOCKWISE[first:], *SQUARE_CLOCKWISE[:first])


def test_validator_accepts_the_rectangle_around_the_points() -> None:
    assert not check_smallest_rectangle(POINTS_OF_UPRIGHT_RECTANGLE, (2, 1), (2, 0), (0, 0), (0, 1))


@pytest.mark.parametrize(
    "corners",
    [
        pytest.param([(0, 1), (0, 0), (2, 0), (2, 1)], id="counter-clockwise"),
        pytest.param([(3, 1), (3, 0), (0, 0), (0, 1)], id="too large"),
        pytest.param([(1.5, 4 / 3), (1.5, 0), (0, 0), (0, 4 / 3)], id="not around a point"),
        pytest.param([(3, 1), (2, 0), (0, 0), (1, 1)], id="not right-angled"),
        pytest.param([(2, 1), (2, 0), (0, 0), (1, 1)], id="no parallelogram"),
        pytest.param([(2, 1), (2, np.nan), (0, 0), (0, 1)], id="no number"),
    ],
)
def test_validator_rejects_other_polygons(corners: list[tuple[float, float]]) -> None:
    (problem,) = check_smallest_rectangle(POINTS_OF_UPRIGHT_RECTANGLE, *corners)
    assert "1 of 1 elements are not corners of a smallest rectangle around the points" in problem


def test_validator_limits_the_mean_error_of_many_corners() -> None:
    """The corners of one of nine polygons may have this error, but not the corners of all nine."""
    pointsets = np.tile(POINTS_OF_ROTATED_SQUARE.reshape(1, 18), (9, 1))
    exact = np.tile(np.reshape(SQUARE_CLOCKWISE, (1, 8)), (9, 1))
    all_off = exact * (1 + 14 * np.finfo(np.float32).eps)
    one_off = np.concatenate([all_off[:1], exact[1:]])
    assert not problems("diopiMinAreaPolygonsMmcv", "polygons", one_off, pointsets=pointsets)
    (problem,) = problems("diopiMinAreaPolygonsMmcv", "polygons", all_off, pointsets=pointsets)
    assert "root mean square" in problem


def test_validator_accepts_any_of_several_smallest_rectangles() -> None:
    """The rectangles along the legs and along the hypotenuse of a right-angled triangle have the same area."""
    triangle = np.array([[0.0, 0], [4, 0], [0, 3], *[(1, 1)] * 6])
    assert not check_smallest_rectangle(triangle, (4, 3), (4, 0), (0, 0), (0, 3))
    hypotenuse, height = np.array([[0.0, 3], [4, 0]]), np.array([-1.44, -1.92])
    assert not check_smallest_rectangle(triangle, *hypotenuse, *(hypotenuse[::-1] + height))
