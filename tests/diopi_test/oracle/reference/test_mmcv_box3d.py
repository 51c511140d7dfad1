"""The references of 3-d boxes agree with Shapely, single points, dictionaries of voxels and finite differences."""

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from references import call_reference, numerical_gradient
from shapely import Polygon, affinity, box

Array = np.ndarray[Any, np.dtype[np.float64]]

GRID = (2, 3, 2)


@pytest.fixture
def rng() -> np.random.Generator:
    """Return a generator of random numbers with a fixed seed."""
    return np.random.default_rng(0)


def _boxes(rng: np.random.Generator, n: int) -> Array:
    """Return n random boxes of center, size and heading."""
    places, sizes = rng.uniform(-3, 3, (n, 3)), rng.uniform(2, 6, (n, 3))
    return np.concatenate([places, sizes, rng.uniform(-4, 4, (n, 1))], 1)


def _from_above(row: Array, is_rotated: bool = True) -> Polygon:
    """Return the polygon of a box seen from above."""
    x, y, _, dx, dy, _, heading = row
    upright = box(x - dx / 2, y - dy / 2, x + dx / 2, y + dy / 2)
    return affinity.rotate(upright, heading if is_rotated else 0, use_radians=True)


def test_overlaps_of_boxes_from_above_match_shapely(rng: np.random.Generator) -> None:
    ones, boxes_b = _boxes(rng, 12), _boxes(rng, 9)
    expected = [[_from_above(a).intersection(_from_above(rotated)).area for rotated in boxes_b] for a in ones]
    np.testing.assert_allclose(call_reference("diopiIou3dBoxesOverlapBevMmcv", ones, boxes_b), expected, atol=1e-12)


@pytest.mark.parametrize("name", ["diopiIou3dNms3dMmcv", "diopiIou3dNms3dNormalMmcv"])
@pytest.mark.parametrize("threshold", [0.1, 0.4])
def test_suppression_from_above_keeps_boxes_without_large_overlap(
    rng: np.random.Generator, name: str, threshold: float
) -> None:
    boxes = _boxes(rng, 25)
    shapes = [_from_above(row, "Normal" not in name) for row in boxes]
    survivors: list[int] = []
    for i, shape in enumerate(shapes):
        common = [shape.intersection(shapes[j]).area for j in survivors]
        if all(
            area <= threshold * (shape.area + shapes[j].area - area) for j, area in zip(survivors, common, strict=True)
        ):
            survivors.append(i)
    indices, number = call_reference(name, boxes, threshold)
    assert number.tolist() == [len(survivors)]
    np.testing.assert_array_equal(indices[: len(survivors)], survivors)


def _place(point: Array, row: Array) -> Array | None:
    """Return the position of a point in a box relative to the box's sizes; None outside."""
    away = point - row[:3]
    turn = np.array([[np.cos(row[6]), np.sin(row[6])], [-np.sin(row[6]), np.cos(row[6])]])
    place = np.array([*(turn @ away[:2]), away[2]]) / row[3:6] + [0.5, 0.5, 0]
    return place if np.all((place >= 0) & (place <= 1)) else None


def _cloud(rng: np.random.Generator, *shape: int) -> Array:
    """Return random points."""
    return rng.uniform(-5, 7, (*shape, 3))


def test_points_in_boxes_are_found(rng: np.random.Generator) -> None:
    boxes, points = np.stack([_boxes(rng, 4), _boxes(rng, 4)]), _cloud(rng, 2, 40)
    expected = np.array(
        [[[_place(point, row) is not None for row in boxes[b]] for point in points[b]] for b in range(2)]
    )
    inside = call_reference("diopiPointsInBoxesAllMmcv", np.zeros((2, 40, 4), int), boxes, points)
    np.testing.assert_array_equal(inside, expected)
    first = np.where(expected.any(-1), expected.argmax(-1), -1)
    np.testing.assert_array_equal(
        call_reference("diopiPointsInBoxesPartMmcv", np.full((2, 40), -1), boxes, points), first
    )


def test_points_in_boxes_do_not_depend_on_the_frame(rng: np.random.Generator) -> None:
    boxes, points = _boxes(rng, 4)[np.newaxis], _cloud(rng, 1, 40)
    actual = call_reference("diopiPointsInBoxesAllMmcv", np.zeros((1, 40, 4), int), boxes, points)
    x, y, z, *sizes, heading = np.moveaxis(boxes, -1, 0)
    rotated_boxes = np.stack([-y, x, z, *sizes, heading + np.pi / 2], -1)
    rotated = np.stack([-points[..., 1], points[..., 0], points[..., 2]], -1)
    np.testing.assert_array_equal(
        call_reference("diopiPointsInBoxesAllMmcv", np.zeros((1, 40, 4), int), rotated_boxes, rotated), actual
    )


def _voxels(rois: Array, points: Array, capacity: int) -> dict[tuple[int, ...], list[int]]:
    """Return the points of each voxel that has points."""
    members: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for n, row in enumerate(rois):
        for k, point in enumerate(points):
            if (place := _place(point, row)) is not None:
                members[(n, *(min(int(p * size), size - 1) for p, size in zip(place, GRID, strict=True)))].append(k)
    return {voxel: listed[:capacity] for voxel, listed in members.items()}


def _pool_points(rois: Array, points: Array, features: Array, method: int) -> Any:
    """Return the result of the reference of `diopiRoiawarePool3dMmcv`."""
    shape = (len(rois), *GRID)
    zeros = (
        np.zeros((*shape, features.shape[1]), int),
        np.zeros((*shape, 4), int),
        np.zeros((*shape, features.shape[1])),
    )
    return call_reference("diopiRoiawarePool3dMmcv", *zeros, rois, points, features, method)


@pytest.mark.parametrize("method", [0, 1])
def test_pooling_of_voxels_matches_loops(rng: np.random.Generator, method: int) -> None:
    rois, points, features = _boxes(rng, 3), _cloud(rng, 900), rng.normal(size=(900, 2))
    argmax, lists, pooled = _pool_points(rois, points, features, method)
    members = _voxels(rois, points, 3)
    assert max(map(len, members.values())) == 3
    for voxel in np.ndindex(*lists.shape[:4]):
        listed = members.get(voxel, [])
        assert lists[voxel].tolist() == [len(listed), *listed, *[0] * (3 - len(listed))]
        expected = np.max if method == 0 else np.mean
        np.testing.assert_allclose(pooled[voxel], expected(features[listed], axis=0) if listed else 0)
        found = [listed[int(i)] for i in features[listed].argmax(0)] if listed else [-1, -1]
        assert argmax[voxel].tolist() == (found if method == 0 else [0, 0])


@pytest.mark.parametrize("method", [0, 1])
def test_gradient_of_pooling_of_voxels_matches_finite_differences(rng: np.random.Generator, method: int) -> None:
    rois, points, features = _boxes(rng, 2), _cloud(rng, 30), rng.normal(size=(30, 2))
    argmax, lists, pooled = _pool_points(rois, points, features, method)
    grad = rng.normal(size=pooled.shape)
    actual = call_reference("diopiRoiawarePool3dBackwardMmcv", np.zeros((30, 2)), lists, argmax, grad, method)
    expected = numerical_gradient(lambda x: _pool_points(rois, points, x, method)[2], features, grad)
    np.testing.assert_allclose(actual, expected, atol=1e-9)


@pytest.mark.parametrize("samples", [2, 20])
def test_pooling_of_points_matches_loops(rng: np.random.Generator, samples: int) -> None:
    boxes, points, features = _boxes(rng, 3)[np.newaxis], _cloud(rng, 1, 60), rng.normal(size=(1, 60, 2))
    boxes[0, 2, :3] = 40
    before = np.full((1, 3, samples, 5), 7.0)
    pooled, is_empty = call_reference("diopiRoipointPool3dMmcv", before, np.zeros((1, 3), int), points, boxes, features)
    assert is_empty.tolist() == [[0, 0, 1]]
    np.testing.assert_array_equal(pooled[0, 2], 7.0)
    for m in range(2):
        inside = [k for k in range(60) if _place(points[0, k], boxes[0, m]) is not None]
        for slot in range(samples):
            k = inside[slot % min(len(inside), samples)]
            np.testing.assert_array_equal(pooled[0, m, slot], [*points[0, k], *features[0, k]])
