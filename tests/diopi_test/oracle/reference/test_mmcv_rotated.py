"""The references of oriented pooling agree with single samples, rotated inputs and finite differences."""

from math import ceil, cos, pi, sin
from typing import Any

import numpy as np
import pytest
from bilinear import bordered
from references import call_reference, numerical_gradient

Array = np.ndarray[Any, Any]

BINS = (2, 3)
"""The number of bins of a region along y and x."""
ROIS = np.array([[1, 2.3, 2.1, 3.8, 2.4, 0.4], [0, 1.7, 2.3, 5.2, 0.9, -2.5], [1, 2, 2, 0.1, 0.2, 5.0]])
"""Rotated regions: the index of the sample, the center, the width, the height and the angle."""


def random_maps(*shape: int) -> Array:
    """Return random feature maps; two maps with two channels by default."""
    return np.random.default_rng(1).normal(size=shape or (2, 2, 5, 5))


def pool_rotated(features: Array, rois: Array, ratio: int, scale: float, aligned: bool, clockwise: bool) -> Array:
    """Return the means of the samples in the bins of rotated regions."""
    return np.asarray(
        call_reference("diopiRoiAlignRotatedMmcv", features, rois, *BINS, ratio, scale, aligned, clockwise)
    )


def sample_positions(
    roi: Array, ratio: int, scale: float, aligned: bool, theta: float, position: tuple[int, int]
) -> list[Any]:
    """Return the positions (y, x) of the samples of one bin."""
    shift, least = (0.5, -np.inf) if aligned else (0.0, 1.0)
    cx, cy = roi[1] * scale - shift, roi[2] * scale - shift
    w, h = max(roi[3] * scale, least), max(roi[4] * scale, least)
    gh, gw = (ratio, ratio) if ratio > 0 else (ceil(h / BINS[0]), ceil(w / BINS[1]))
    result = []
    for iy, ix in np.ndindex(gh, gw):
        v = -h / 2 + (position[0] + (iy + 0.5) / gh) * h / BINS[0]
        u = -w / 2 + (position[1] + (ix + 0.5) / gw) * w / BINS[1]
        result.append((v * cos(theta) - u * sin(theta) + cy, v * sin(theta) + u * cos(theta) + cx))
    return result


@pytest.mark.parametrize("ratio", [0, 2])
@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize("clockwise", [True, False])
def test_rotated_pooling_returns_means_of_samples(ratio: int, aligned: bool, clockwise: bool) -> None:
    features = random_maps()
    actual = pool_rotated(features, ROIS, ratio, 0.8, aligned, clockwise)
    for k, c, i, j in np.ndindex(actual.shape):
        theta = -ROIS[k, 5] if clockwise else ROIS[k, 5]
        points = sample_positions(ROIS[k], ratio, 0.8, aligned, theta, (i, j))
        values = [bordered(features[int(ROIS[k, 0]), c], *point) for point in points]
        assert actual[k, c, i, j] == pytest.approx(np.mean(values))


def test_rotating_map_and_regions_by_a_right_angle_changes_nothing() -> None:
    """Rotating both leaves the pooled values unchanged: rows become columns, and (y, x) becomes (x, 4 − y)."""
    features = random_maps()
    regions = np.array([[0, 2.0, 2.2, 2.5, 1.5, 0.3], [1, 1.8, 2.1, 1.0, 2.0, -0.8]])
    rotated_map = np.rot90(features, 1, (2, 3)).copy()  # element (y, x) goes to (4 − x, y)
    moved = regions.copy()
    moved[:, 1], moved[:, 2] = regions[:, 2], 4 - regions[:, 1]
    moved[:, 5] = regions[:, 5] + pi / 2
    quarter_turn = pool_rotated(rotated_map, moved, 2, 1.0, False, False)
    np.testing.assert_allclose(quarter_turn, pool_rotated(features, regions, 2, 1.0, False, False), atol=1e-12)


def test_a_rotation_by_a_full_circle_changes_nothing() -> None:
    features, once = random_maps(), ROIS.copy()
    once[:, 5] += 2 * pi
    np.testing.assert_allclose(
        pool_rotated(features, once, 2, 1.0, True, False), pool_rotated(features, ROIS, 2, 1.0, True, False), atol=1e-12
    )


def test_gradient_of_rotated_pooling_matches_finite_differences() -> None:
    features, grad = random_maps(), np.random.default_rng(2).normal(size=(3, 2, *BINS))
    back = call_reference(
        "diopiRoiAlignRotatedBackwardMmcv", np.zeros_like(features), grad, ROIS, *BINS, 0, 0.8, True, True
    )
    expected = numerical_gradient(lambda x: pool_rotated(x, ROIS, 0, 0.8, True, True), features, grad)
    np.testing.assert_allclose(back, expected, atol=1e-9)


def pool_with_orientations(features: Array, rois: Array, orientations: int, clockwise: bool = False) -> Array:
    """Return rotation-invariant means: the orientation channels of a region are shifted by the angle of the region."""
    attributes = *BINS, 2, orientations, 0.8, clockwise
    return np.asarray(call_reference("diopiRiroiAlignRotatedMmcv", features, rois, *attributes))


@pytest.mark.parametrize("clockwise", [True, False])
def test_orientations_are_shifted_by_the_angle(clockwise: bool) -> None:
    features, o = random_maps(2, 8, 5, 5), 4
    actual = pool_with_orientations(features, ROIS, o, clockwise)
    for k, c, i, j in np.ndindex(actual.shape):
        turn = ROIS[k, 5] * o / (2 * pi)
        whole = int(np.floor(turn))
        blended = (c % o - whole) % o
        planes = features[int(ROIS[k, 0]), c - c % o : c - c % o + o]
        theta = -ROIS[k, 5] if clockwise else ROIS[k, 5]
        points = sample_positions(ROIS[k], 2, 0.8, False, theta, (i, j))
        low, high = (np.mean([bordered(planes[n % o], *point) for point in points]) for n in (blended, blended + 1))
        assert actual[k, c, i, j] == pytest.approx((1 - turn + whole) * low + (turn - whole) * high)


def test_a_nan_affects_only_results_that_use_its_orientation() -> None:
    features, regions = (
        random_maps(2, 8, 5, 5),
        np.array([[0, 2.0, 2.2, 2.5, 1.5, 0.3]]),
    )  # between orientations 0 and 1 of 4
    features[0, 2] = np.nan
    whole = np.isnan(
        np.asarray(call_reference("diopiRiroiAlignRotatedMmcv", features, regions, *BINS, 2, 4, 0.8, False))
    )
    assert whole[0].any((1, 2)).tolist() == [False, True, True, False, *[False] * 4]


def test_pooling_with_one_orientation_equals_rotated_pooling() -> None:
    features = random_maps()
    np.testing.assert_allclose(
        pool_with_orientations(features, ROIS, 1), pool_rotated(features, ROIS, 2, 0.8, False, False), atol=1e-12
    )


def test_gradient_of_invariant_pooling_matches_finite_differences() -> None:
    features, grad = random_maps(2, 4, 5, 5), np.random.default_rng(3).normal(size=(3, 4, *BINS))
    attributes = *BINS, 2, 4, 0.8, True
    back = call_reference("diopiRiroiAlignRotatedBackwardMmcv", np.zeros_like(features), grad, ROIS, *attributes)
    np.testing.assert_allclose(
        back, numerical_gradient(lambda x: pool_with_orientations(x, ROIS, 4, True), features, grad), atol=1e-9
    )


BOXES = np.random.default_rng(4).uniform([0, 0, 0.5, 0.5, -3], [8, 8, 6, 6, 3], (2, 3, 4, 5))


@pytest.mark.parametrize("points", [1, 5])
def test_alignment_adds_samples_of_rotated_boxes(points: int) -> None:
    features = random_maps(2, 2, 3, 4)
    actual = call_reference("diopiRotatedFeatureAlignMmcv", features, BOXES, 0.5, points)
    for n, c, i, j in np.ndindex(actual.shape):
        y, x, w, h = BOXES[n, i, j, :4] * 0.5
        a = BOXES[n, i, j, 4]
        wx, wy, hx, hy = cos(a) * w / 2, sin(a) * w / 2, -sin(a) * h / 2, cos(a) * h / 2
        corners = [(y + s * wy + t * hy, x + s * wx + t * hx) for s in (1, -1) for t in (1, -1)]
        positions = [(y, x), *corners][:points]
        expected = features[n, c, i, j] + sum(bordered(features[n, c], *position) for position in positions)
        assert actual[n, c, i, j] == pytest.approx(expected)


@pytest.mark.parametrize("points", [1, 5])
def test_gradient_of_alignment_matches_finite_differences(points: int) -> None:
    features, grad = random_maps(2, 1, 3, 4), np.random.default_rng(5).normal(size=(2, 1, 3, 4))
    back = call_reference("diopiRotatedFeatureAlignBackwardMmcv", np.zeros_like(features), grad, BOXES, 0.5, points)
    expected = numerical_gradient(
        lambda x: call_reference("diopiRotatedFeatureAlignMmcv", x, BOXES, 0.5, points), features, grad
    )
    np.testing.assert_allclose(back, expected, atol=1e-9)


def test_rotated_filters_have_permuted_entries_and_the_expected_gradient() -> None:
    rng = np.random.default_rng(6)
    filters, rotations = rng.normal(size=(2, 3, 2, 2, 2)), 3
    indices = np.array([rng.permutation(8) + 1 for _ in range(rotations)]).T.reshape(2, 2, 2, rotations)
    actual = call_reference("diopiActiveRotatedFilterMmcv", filters, indices)
    assert actual.shape == (6, 6, 2, 2)
    flat = actual.reshape(2, rotations, 3, 8)
    for p, q, *entry in np.ndindex(filters.shape):
        for r in range(rotations):
            assert flat[p, r, q, indices[(*entry, r)] - 1] == filters[(p, q, *entry)]
    grad = rng.normal(size=actual.shape)
    expected = numerical_gradient(lambda x: call_reference("diopiActiveRotatedFilterMmcv", x, indices), filters, grad)
    np.testing.assert_allclose(
        call_reference("diopiActiveRotatedFilterBackwardMmcv", grad, indices), expected, atol=1e-9
    )
