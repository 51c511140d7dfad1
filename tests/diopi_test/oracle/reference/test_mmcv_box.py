"""The references of boxes and polygons agree with Shapely, plain loops and finite differences, in any position."""

from itertools import pairwise, product
from math import atan2, cos, pi, sin
from typing import Any

import numpy as np
import pytest
from references import STEP, call_reference
from shapely import MultiPoint, Point, Polygon, affinity, box

from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.oracle.validators import CompletedCall, find_validator

Array = np.ndarray[Any, np.dtype[np.float64]]


@pytest.fixture
def rng() -> np.random.Generator:
    """Return a generator of random numbers with a fixed seed."""
    return np.random.default_rng(0)


def _rotated_boxes(rng: np.random.Generator, n: int) -> Array:
    """Return n random rows of center, size and angle."""
    return np.concatenate([rng.uniform(0, 5, (n, 2)), rng.uniform(1, 6, (n, 2)), rng.uniform(-4, 4, (n, 1))], 1)


def _rotated_polygon(row: Array) -> Polygon:
    """Return the polygon of a rotated box."""
    x, y, w, h, angle = row[:5]
    return affinity.rotate(box(x - w / 2, y - h / 2, x + w / 2, y + h / 2), angle, use_radians=True)


def _quadrilaterals(rng: np.random.Generator, n: int) -> Array:
    """Return n random convex quadrilaterals, in alternating directions of rotation."""
    angles = np.sort(rng.uniform(0, 2 * np.pi, (n, 4)))
    corners = rng.uniform(0, 3, (n, 1, 2)) + 3 * np.stack([np.cos(angles), np.sin(angles)], -1)
    corners[::2] = corners[::2, ::-1]
    return corners.reshape(n, 8)


def _polygon(row: Array) -> Polygon:
    """Return the polygon with these corners."""
    return Polygon(row.reshape(-1, 2))


def _hull(row: Array) -> Any:
    """Return the convex hull of these points."""
    return MultiPoint(row.reshape(-1, 2)).convex_hull


def _ratio(polygon_a: Any, polygon_b: Any, mode: int = 0) -> float:
    """Return the intersection over union; in mode 1, the intersection over the first area."""
    common = polygon_a.intersection(polygon_b).area
    return common / (polygon_a.area + polygon_b.area - common if mode == 0 else polygon_a.area)


def _ratios(ones: Any, polygons_b: Any, mode: int = 0) -> Array:
    """Return the ratio of each pair of polygons."""
    return np.array([[_ratio(a, b, mode) for b in polygons_b] for a in ones])


# Overlaps


@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("offset", [0, 1])
def test_overlaps_of_upright_boxes_match_shapely(rng: np.random.Generator, mode: int, offset: int) -> None:
    low = rng.uniform(0, 4, (12, 2))
    boxes = np.concatenate([low, low + rng.uniform(1, 5, (12, 2))], 1)
    longer = [box(x1, y1, x2 + offset, y2 + offset) for x1, y1, x2, y2 in boxes]
    actual = call_reference("diopiBboxOverlapsMmcv", boxes[:7], boxes[5:], mode, offset, False)
    np.testing.assert_allclose(actual, _ratios(longer[:7], longer[5:], mode), atol=1e-14)
    aligned = call_reference("diopiBboxOverlapsMmcv", boxes[:5], boxes[5:10], mode, offset, True)
    np.testing.assert_allclose(aligned, np.diag(_ratios(longer[:5], longer[5:10], mode)), atol=1e-14)


@pytest.mark.parametrize("mode", [0, 1])
def test_overlaps_of_rotated_boxes_match_shapely(rng: np.random.Generator, mode: int) -> None:
    ones, boxes_b = _rotated_boxes(rng, 15), _rotated_boxes(rng, 12)
    actual = call_reference("diopiBoxIouRotatedMmcv", ones, boxes_b, mode, False)
    np.testing.assert_allclose(
        actual, _ratios(map(_rotated_polygon, ones), [*map(_rotated_polygon, boxes_b)], mode), atol=1e-13
    )
    aligned = call_reference("diopiBoxIouRotatedMmcv", ones[:12], boxes_b, mode, True)
    np.testing.assert_array_equal(aligned, np.diag(actual[:12]))


@pytest.mark.parametrize("mode", [0, 1])
def test_overlaps_of_quadrilaterals_match_shapely(rng: np.random.Generator, mode: int) -> None:
    ones, boxes_b = _quadrilaterals(rng, 15), _quadrilaterals(rng, 12)
    actual = call_reference("diopiBoxIouQuadriMmcv", ones, boxes_b, mode, False)
    np.testing.assert_allclose(actual, _ratios(map(_polygon, ones), [*map(_polygon, boxes_b)], mode), atol=1e-13)


def test_overlaps_of_rotated_boxes_do_not_depend_on_the_frame(rng: np.random.Generator) -> None:
    ones, boxes_b = _rotated_boxes(rng, 9), _rotated_boxes(rng, 7)
    actual = call_reference("diopiBoxIouRotatedMmcv", ones, boxes_b, 0, False)

    def quarter_turned(boxes: Array) -> Array:
        x, y, w, h, angle = boxes.T
        return np.stack([-y, x, w, h, angle + pi / 2], -1)

    def moved(boxes: Array) -> Array:
        return boxes + np.array([3, -7, 0, 0, 0])

    for change in (quarter_turned, moved):
        rotated = call_reference("diopiBoxIouRotatedMmcv", change(ones), change(boxes_b), 0, False)
        np.testing.assert_allclose(rotated, actual, atol=1e-12)
    x, y, w, h, angle = ones.T
    sides_exchanged = np.stack([x, y, h, w, angle + pi / 2], -1)
    np.testing.assert_allclose(
        call_reference("diopiBoxIouRotatedMmcv", sides_exchanged, boxes_b, 0, False), actual, atol=1e-12
    )
    order = rng.permutation(7)
    np.testing.assert_array_equal(
        call_reference("diopiBoxIouRotatedMmcv", ones, boxes_b[order], 0, False), actual[:, order]
    )
    np.testing.assert_allclose(call_reference("diopiBoxIouRotatedMmcv", boxes_b, ones, 0, False), actual.T, atol=1e-13)


def test_overlap_of_a_box_with_itself_is_1_and_with_an_empty_box_0(rng: np.random.Generator) -> None:
    boxes = _rotated_boxes(rng, 6)
    np.testing.assert_allclose(np.diag(call_reference("diopiBoxIouRotatedMmcv", boxes, boxes, 0, False)), 1, atol=1e-12)
    flat = boxes * [1, 1, 0, 1, 1]
    np.testing.assert_array_equal(call_reference("diopiBoxIouRotatedMmcv", flat, boxes, 0, False), 0)


# Suppression


def _kept_one_by_one(shapes: list[Any], order: Any, threshold: float) -> list[int]:
    """Return the boxes that non-maximum suppression keeps, found with polygons of shapely."""
    survivors: list[int] = []
    for a in order:
        if all(_ratio(shapes[a], shapes[b]) <= threshold for b in survivors):
            survivors.append(int(a))
    return survivors


@pytest.mark.parametrize("threshold", [0.1, 0.3, 0.6])
def test_suppression_keeps_the_upright_boxes_that_shapely_keeps(rng: np.random.Generator, threshold: float) -> None:
    low = rng.uniform(0, 8, (40, 2))
    boxes, scores = np.concatenate([low, low + rng.uniform(2, 6, (40, 2))], 1), rng.permutation(40) / 8
    expected = _kept_one_by_one([box(*row) for row in boxes], np.argsort(-scores), threshold)
    np.testing.assert_array_equal(call_reference("diopiNmsMmcv", boxes, scores, threshold, 0), expected)


@pytest.mark.parametrize("threshold", [0.1, 0.3, 0.6])
def test_suppression_keeps_the_rotated_boxes_that_shapely_keeps(rng: np.random.Generator, threshold: float) -> None:
    boxes, scores = _rotated_boxes(rng, 40), rng.permutation(40) / 8
    order = np.argsort(-scores)
    expected = _kept_one_by_one([*map(_rotated_polygon, boxes)], order, threshold)
    actual = call_reference(
        "diopiNmsRotatedMmcv", boxes, scores, order, boxes[order], np.zeros(0, int), threshold, False
    )
    np.testing.assert_array_equal(actual, expected)


def find_problems(name: str, arguments: dict[str, Any], result: Any, output: str, dtype: Dtype) -> list[str]:
    """Return the problems that the validator of a function finds in a result."""
    completed = CompletedCall(
        arguments=arguments, results={output: np.asarray(result)}, expected={}, dtypes={output: dtype}
    )
    return list(find_validator(lookup(name))(completed))


def test_validator_accepts_boxes_of_equal_score_in_any_order() -> None:
    boxes = np.array([[0.0, 0, 4, 4], [0, 0, 4, 3], [0, 0, 3, 4], [9, 9, 10, 10]])
    arguments = {"dets": boxes, "scores": np.array([0.5, 0.5, 0.5, 0.75]), "iou_threshold": 0.7, "offset": 0}

    def problems(survivors: list[int]) -> list[str]:
        return find_problems("diopiNmsMmcv", arguments, survivors, "out", Dtype.int64)

    for valid in ([3, 0], [3, 1, 2], [3, 2, 1]):
        assert not problems(valid)
    assert "descending order" in problems([0, 3])[0]
    assert "overlaps box" in problems([3, 0, 1])[0]
    assert "is missing" in problems([3, 1])[0]
    assert "more than once" in problems([3, 3, 0])[0]


# Points and polygons


def test_points_in_polygons_match_shapely(rng: np.random.Generator) -> None:
    points, polygons = rng.uniform(-3, 6, (60, 2)), _quadrilaterals(rng, 9)
    expected = [[_polygon(row).contains(Point(point)) for row in polygons] for point in points]
    np.testing.assert_array_equal(call_reference("diopiPointsInPolygonsMmcv", points, polygons), expected)


def test_rectangles_have_the_smallest_area_around_their_points(rng: np.random.Generator) -> None:
    sets = rng.normal(size=(20, 18)) * rng.uniform(0.2, 4, (20, 1))
    for row, rectangle in zip(sets, call_reference("diopiMinAreaPolygonsMmcv", sets), strict=True):
        hull, found = _hull(row), _polygon(rectangle)
        corners = hull.exterior.coords
        angles = [atan2(v - y, u - x) for (x, y), (u, v) in pairwise(corners)]
        smallest = min(affinity.rotate(hull, -angle, use_radians=True).envelope.area for angle in angles)
        assert found.area == pytest.approx(smallest)
        assert found.buffer(1e-9).contains(hull)


def test_validator_rejects_rectangles_that_are_not_smallest(rng: np.random.Generator) -> None:
    sets = rng.normal(size=(5, 18))
    valid = call_reference("diopiMinAreaPolygonsMmcv", sets)

    def problems(result: Array) -> list[str]:
        return find_problems("diopiMinAreaPolygonsMmcv", {"pointsets": sets}, result, "polygons", Dtype.float32)

    assert not problems(valid) and not problems(np.roll(valid, 2, 1)) and not problems(valid + 1e-7)
    corners = valid.reshape(5, 4, 2)
    low, high = sets.reshape(5, 9, 2).min(1), sets.reshape(5, 9, 2).max(1)
    upright = np.stack([high[:, 0], low[:, 1], low[:, 0], low[:, 1], low[:, 0], high[:, 1], high[:, 0], high[:, 1]], 1)
    invalid = [valid + 1e-3, valid * 1.01, corners[:, ::-1].reshape(5, 8), upright, np.full((5, 8), np.nan)]
    assert all(map(problems, invalid))


# Hulls of nine points


def test_overlaps_of_hulls_match_shapely(rng: np.random.Generator) -> None:
    sets, polygons = rng.uniform(-3, 5, (12, 18)), _quadrilaterals(rng, 8)
    actual = call_reference("diopiConvexIouMmcv", sets, polygons)
    np.testing.assert_allclose(actual, _ratios(map(_hull, sets), [*map(_polygon, polygons)]), atol=1e-13)


def _giou(row: Array, polygon: Array) -> float:
    """Return the generalized intersection over union of a hull and a polygon."""
    a, b = _hull(row), _polygon(polygon)
    common = a.intersection(b).area
    union, whole = a.area + b.area - common, a.union(b).convex_hull.area
    return common / union - (whole - union) / whole


@pytest.mark.parametrize("far", [0.0, 9.0])
def test_generalised_overlaps_and_their_gradients(rng: np.random.Generator, far: float) -> None:
    sets, polygons = rng.uniform(-3, 5, (12, 18)), _quadrilaterals(rng, 12) + far
    actual = call_reference("diopiConvexGiouMmcv", sets, polygons)
    for row, polygon, result in zip(sets, polygons, actual, strict=True):
        assert result[18] == pytest.approx(_giou(row, polygon), abs=1e-12)
        steps = STEP * np.eye(18)
        slopes = [(_giou(row + step, polygon) - _giou(row - step, polygon)) / (2 * STEP) for step in steps]
        np.testing.assert_allclose(result[:18], slopes, atol=1e-7)


# Corners in order


def test_corners_come_counter_clockwise(rng: np.random.Generator) -> None:
    vertices, mask = rng.normal(size=(3, 4, 24, 2)), np.zeros((3, 4, 24), bool)
    counts = rng.integers(0, 9, (3, 4))
    for b, n in product(range(3), range(4)):
        mask[b, n, rng.permutation(24)[: counts[b, n]]] = True
    actual = call_reference("diopiDiffIouRotatedSortVerticesMmcv", vertices, mask, counts)
    for b, n in product(range(3), range(4)):
        padding = next(j for j in range(8, 24) if not mask[b, n, j])
        corners = [j for j in range(24) if mask[b, n, j]] if counts[b, n] >= 3 else []
        corners.sort(key=lambda j: atan2(vertices[b, n, j, 1], vertices[b, n, j, 0]) % (2 * pi))
        expected = [*corners, *corners[:1], *[padding] * 9][:9]
        np.testing.assert_array_equal(actual[b, n], expected)


def test_corners_in_order_give_the_area_of_a_rectangle() -> None:
    angles = [0.3, 1.9, 3.5, 5.1]
    vertices = np.zeros((1, 1, 24, 2))
    vertices[0, 0, [5, 0, 9, 2]] = [(2 * cos(angle), 2 * sin(angle)) for angle in angles]
    mask = np.isin(np.arange(24), [5, 0, 9, 2]).reshape(1, 1, 24)
    order = call_reference("diopiDiffIouRotatedSortVerticesMmcv", vertices, mask, np.array([[4]]))[0, 0]
    np.testing.assert_array_equal(order, [5, 0, 9, 2, 5, 8, 8, 8, 8])
    x, y = vertices[0, 0, order].T
    area = (x[:-1] * y[1:] - y[:-1] * x[1:]).sum() / 2
    assert area == pytest.approx(_polygon(vertices[0, 0, order[:4]]).area)
