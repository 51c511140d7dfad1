"""The references of box functions agree with samples of single points, known suppressions and finite differences."""

from collections.abc import Iterator
from itertools import product
from math import ceil
from typing import Any

import numpy as np
import pytest
from bilinear import bordered
from references import call_reference, numerical_gradient

from diopi_proto.interface import lookup
from diopi_test.cases.selection import select_cases
from diopi_test.oracle.evaluation import compute_baseline_case

Array = np.ndarray[Any, Any]


def _bin_samples(start: float, extent: float, bins: int, index: int, ratio: int) -> Iterator[float]:
    """Yield the sample positions of a bin along one axis."""
    count = ratio if ratio > 0 else ceil(extent / bins)
    return (start + index * extent / bins + (i + 0.5) * extent / bins / count for i in range(count))


def _point_by_point(
    features: Array, rois: Array, scale: float, bins: tuple[int, int], ratio: int, aligned: bool
) -> Array:
    """Compute region-of-interest alignment one sample at a time."""
    result = np.zeros((len(rois), features.shape[1], *bins))
    for k, c, p, q in np.ndindex(result.shape):
        sample, x1, y1, x2, y2 = rois[k]
        shift = 0.5 if aligned else 0.0
        height, width = (y2 - y1) * scale, (x2 - x1) * scale
        if not aligned:
            height, width = max(height, 1.0), max(width, 1.0)
        ys = list(_bin_samples(y1 * scale - shift, height, bins[0], p, ratio))
        xs = list(_bin_samples(x1 * scale - shift, width, bins[1], q, ratio))
        samples = [bordered(features[int(sample), c], y, x) for y, x in product(ys, xs)]
        result[k, c, p, q] = sum(samples) / max(len(samples), 1)
    return result


@pytest.fixture
def rois() -> Array:
    """Return four regions (image, x1, y1, x2, y2): inside, partly outside, small, and without width."""
    return np.array([[1, 0.3, 1.1, 3.8, 4.4], [0, -1.7, -2.3, 2.2, 7.9], [1, 2, 2, 2.1, 2.1], [0, 3, 1, 3, 1]])


@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize("ratio", [0, 2])
@pytest.mark.parametrize("scale", [1.0, 0.7])
def test_roi_align_is_the_mean_of_samples(rois: Array, aligned: bool, ratio: int, scale: float) -> None:
    features = np.random.default_rng(0).normal(size=(2, 2, 4, 5))
    actual = call_reference("diopiRoiAlign", features, rois, scale, 2, 3, ratio, aligned)
    np.testing.assert_allclose(actual, _point_by_point(features, rois, scale, (2, 3), ratio, aligned), atol=1e-13)


def test_roi_align_gradient_matches_finite_differences(rois: Array) -> None:
    rng = np.random.default_rng(1)
    features, grad = rng.normal(size=(2, 1, 4, 5)), rng.normal(size=(4, 1, 2, 3))
    expected = numerical_gradient(
        lambda x: call_reference("diopiRoiAlign", x, rois, 0.9, 2, 3, 0, False), features, grad
    )
    actual = call_reference("diopiRoiAlignBackward", grad, rois, 0.9, 2, 3, 2, 1, 4, 5, 0, False)
    np.testing.assert_allclose(actual, expected, atol=1e-9)


def test_roi_align_accepts_no_regions() -> None:
    assert call_reference("diopiRoiAlign", np.ones((1, 2, 3, 3)), np.zeros((0, 5)), 1.0, 2, 2, 2, True).shape == (
        0,
        2,
        2,
        2,
    )


BOXES = np.array([[0.0, 0, 2, 1], [0, 0, 1, 1], [5, 5, 6, 6], [0, 0, 2, 1.5]])


@pytest.mark.parametrize(
    ("threshold", "expected"), [(0.5, [1, 2, 0]), (0.49, [1, 2, 3]), (0.7, [1, 2, 0, 3]), (0.3, [1, 2])]
)
def test_nms_keeps_boxes_below_the_threshold(threshold: float, expected: list[int]) -> None:
    assert call_reference("diopiNms", BOXES, np.array([0.5, 0.9, 0.6, 0.4]), threshold).tolist() == expected


def test_nms_ignores_boxes_without_area_and_keeps_the_first_of_equals() -> None:
    points = np.array([[1.0, 1, 1, 1]] * 3)
    assert call_reference("diopiNms", points, np.array([0.5, 0.5, 0.75]), 0.0).tolist() == [2, 0, 1]


def test_no_nms_case_is_within_rounding_of_its_threshold() -> None:
    for case in select_cases("diopiNms", "full"):
        arguments = compute_baseline_case(lookup("diopiNms"), case).arguments
        boxes, threshold = arguments["boxes"].values.astype(float), arguments["iou_threshold"]
        low = np.maximum(boxes[:, np.newaxis, :2], boxes[:, :2])
        high = np.minimum(boxes[:, np.newaxis, 2:], boxes[:, 2:])
        common = np.prod(np.maximum(high - low, 0), -1)
        areas = np.prod(boxes[:, 2:] - boxes[:, :2], -1)
        with np.errstate(invalid="ignore"):
            distance = np.abs(common / (areas[:, np.newaxis] + areas - common) - threshold)
        assert not np.any((distance > 0) & (distance < 1e-4)), case.label
