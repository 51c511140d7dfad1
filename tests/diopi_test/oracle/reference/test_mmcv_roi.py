"""The references of RoI pooling agree with samples of single points, numerical integrals and finite differences."""

from itertools import product
from math import ceil
from typing import Any

import numpy as np
import pytest
from bilinear import bordered
from references import call_reference, call_with_remarks, numerical_gradient

from diopi_proto.interface import lookup
from diopi_test.cases.case import ResultOverride
from diopi_test.cases.selection import select_cases
from diopi_test.oracle.evaluation import compute_baseline_case

Array = np.ndarray[Any, Any]

BINS = (2, 3)
ROIS = np.array([[1, 0.3, 1.1, 3.8, 4.4], [0, -1.7, -2.3, 2.2, 7.9], [1, 2, 2, 2.1, 2.1], [0, 1, 3, 3, 1]])
OUT = {"out": (ResultOverride(),) * 3}


def maps(*shape: int) -> Array:
    """Return random feature maps."""
    return np.random.default_rng(1).normal(size=shape or (2, 2, 4, 5))


def grid(roi: Array, scale: float, ratio: int, aligned: bool, i: int, j: int) -> list[tuple[float, float]]:
    """Return the samples of a bin, row by row."""
    shift = 0.5 if aligned else 0.0
    x1, y1, x2, y2 = roi[1:] * scale - shift
    h, w = (y2 - y1, x2 - x1) if aligned else (max(y2 - y1, 1), max(x2 - x1, 1))
    gh, gw = (ratio, ratio) if ratio > 0 else (ceil(h / BINS[0]), ceil(w / BINS[1]))
    rows = [y1 + (i + (k + 0.5) / gh) * h / BINS[0] for k in range(gh)]
    return list(product(rows, [x1 + (j + (k + 0.5) / gw) * w / BINS[1] for k in range(gw)]))


def align(features: Array, ratio: int, mode: int, scale: float, aligned: bool) -> Any:
    """Return the result of the reference of `diopiRoiAlignMmcv`."""
    return call_reference("diopiRoiAlignMmcv", features, ROIS, *BINS, ratio, mode, scale, aligned, **OUT)


@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize("ratio", [0, 2])
@pytest.mark.parametrize("scale", [1.0, 0.7])
def test_aligned_pooling_point_by_point(aligned: bool, ratio: int, scale: float) -> None:
    features = maps()
    means, _, _ = align(features, ratio, 1, scale, aligned)
    largest, rows, columns = align(features, ratio, 0, scale, aligned)
    for k, c, i, j in np.ndindex(means.shape):
        places = grid(ROIS[k], scale, ratio, aligned, i, j)
        values = [bordered(features[int(ROIS[k, 0]), c], y, x) for y, x in places]
        assert means[k, c, i, j] == pytest.approx(sum(values) / max(len(values), 1))
        expected = max(values, default=-float(np.finfo(np.float32).max))
        assert largest[k, c, i, j] == pytest.approx(expected)
        place = places[values.index(expected)] if values else (-1, -1)
        assert (rows[k, c, i, j], columns[k, c, i, j]) == pytest.approx(place)


@pytest.mark.parametrize("mode", [0, 1])
def test_gradient_of_aligned_pooling_matches_finite_differences(mode: int) -> None:
    features, grad = maps(), np.random.default_rng(2).normal(size=(4, 2, *BINS))
    _, rows, columns = align(features, 2, mode, 0.9, False)
    zeros = np.zeros_like(features)
    back = call_reference("diopiRoiAlignBackwardMmcv", zeros, grad, ROIS, rows, columns, *BINS, 2, mode, 0.9, False)
    expected = numerical_gradient(lambda x: align(x, 2, mode, 0.9, False)[0], features, grad)
    np.testing.assert_allclose(back, expected, atol=1e-9)


CELLS = np.array([[1, 0, 0, 3, 3], [0, 1.2, 0.2, 3.7, 2.9], [0, 3, 1, 1, 2], [1, -2.2, -2.3, 1.3, 0.9]])


def cells_of(start: float, end: float, bins: int, axis: int, length: int) -> list[int]:
    """Return the cells that lie at least partly between the edges of a bin."""
    width = (end - start) / bins
    low, high = start + axis * width, start + (axis + 1) * width
    return [cell for cell in range(length) if cell + 1 > low and cell < high]


def test_pooling_of_cells_matches_loops() -> None:
    features, zeros = maps(), np.zeros((4, 2, 2, 2))
    largest, places = call_reference("diopiRoiPoolMmcv", zeros, zeros.astype(int), features, CELLS, 2, 2, 0.5)
    for k, c, i, j in np.ndindex(largest.shape):
        sample, x1, y1, x2, y2 = CELLS[k]
        rows, columns = cells_of(y1 / 2, (y2 + 1) / 2, 2, i, 4), cells_of(x1 / 2, (x2 + 1) / 2, 2, j, 5)
        values = {y * 5 + x: features[int(sample), c, y, x] for y, x in product(rows, columns)}
        if x2 + 1 <= x1 or y2 + 1 <= y1:
            assert (largest[k, c, i, j], places[k, c, i, j]) == (0, 0)
        elif not values:
            assert (largest[k, c, i, j], places[k, c, i, j]) == (0, -1)
        else:
            best = max(values, key=lambda place: values[place])
            assert (largest[k, c, i, j], places[k, c, i, j]) == (values[best], best)


def test_gradient_of_pooling_of_cells_matches_finite_differences() -> None:
    features, zeros = maps(), np.zeros((4, 2, 2, 2))
    regions = CELLS[[0, 1, 3]]

    def pool(x: Array) -> Any:
        return call_reference("diopiRoiPoolMmcv", zeros[:3], zeros[:3].astype(int), x, regions, 2, 2, 0.5)

    grad = np.random.default_rng(3).normal(size=(3, 2, 2, 2))
    back = call_reference(
        "diopiRoiPoolBackwardMmcv", np.zeros_like(features), grad, regions, pool(features)[1], 2, 2, 0.5
    )
    np.testing.assert_allclose(back, numerical_gradient(lambda x: pool(x)[0], features, grad), atol=1e-9)


def deform(features: Array, rois: Array, offset: Array | None, gamma: float = 0.1) -> Array:
    """Return the result of the reference of `diopiDeformRoiPoolMmcv`."""
    return np.asarray(call_reference("diopiDeformRoiPoolMmcv", features, rois, offset, *BINS, 2, 0.5, gamma))


def test_shifted_pooling_matches_loops() -> None:
    features, offset = maps(), np.random.default_rng(4).normal(size=(4, 2, *BINS))
    actual = deform(features, ROIS, offset)
    np.testing.assert_allclose(deform(features, ROIS, None), align(features, 2, 1, 0.5, True)[0], atol=1e-13)
    np.testing.assert_array_equal(deform(features, ROIS, np.zeros(0)), deform(features, ROIS, 0 * offset))
    for k, c, i, j in np.ndindex(actual.shape):
        h, w = (ROIS[k, 4] - ROIS[k, 2]) / 2, (ROIS[k, 3] - ROIS[k, 1]) / 2
        shift_y, shift_x = 0.1 * h * offset[k, 1, i, j], 0.1 * w * offset[k, 0, i, j]
        places = grid(ROIS[k], 0.5, 2, True, i, j)
        values = [bordered(features[int(ROIS[k, 0]), c], y + shift_y, x + shift_x) for y, x in places]
        assert actual[k, c, i, j] == pytest.approx(np.mean(values))


def test_gradients_of_shifted_pooling_match_differences() -> None:
    """Samples at quarters of cells are shifted by less than a quarter, within the features."""
    rng = np.random.default_rng(5)
    features, offset = maps(2, 2, 7, 8), rng.uniform(-1, 1, (2, 2, *BINS))
    rois, grad = np.array([[1, 1, 3, 13, 11.0], [0, 3, 1, 9, 9]]), rng.normal(size=(2, 2, *BINS))
    back = call_reference(
        "diopiDeformRoiPoolBackwardMmcv", np.zeros_like(features), np.zeros_like(offset), grad, features, rois, offset,
        *BINS, 2, 0.5, 0.03,
    )  # fmt: skip
    expected = numerical_gradient(lambda x: deform(x, rois, offset, 0.03), features, grad)
    np.testing.assert_allclose(back[0], expected, atol=1e-9)
    expected = numerical_gradient(lambda x: deform(features, rois, x, 0.03), offset, grad)
    np.testing.assert_allclose(back[1], expected, atol=1e-9)


def precise(features: Array, rois: Array) -> Array:
    """Return the result of the reference of `diopiPrroiPoolMmcv`."""
    return np.asarray(call_reference("diopiPrroiPoolMmcv", features, rois, *BINS, 0.7))


def test_precise_pooling_matches_quadrature() -> None:
    """The midpoint rule is applied on a fine grid of the map, which continues with zeros."""
    features, rois = maps(), ROIS[:3]
    actual, fine = precise(features, rois), 400
    padded = np.pad(features, ((0, 0), (0, 0), (4, 4), (4, 4)))
    for k, c, i, j in np.ndindex(actual.shape):
        x1, y1, x2, y2 = rois[k, 1:] * 0.7
        rows = y1 + (y2 - y1) / 2 * (i + (np.arange(fine) + 0.5) / fine)
        columns = x1 + (x2 - x1) / 3 * (j + (np.arange(fine) + 0.5) / fine)
        hats = [np.maximum(1 - np.abs(position[:, np.newaxis] - np.arange(-4, n + 4)), 0).mean(0) for position, n in
                ((rows, 4), (columns, 5))]  # fmt: skip
        assert actual[k, c, i, j] == pytest.approx(hats[0] @ padded[int(rois[k, 0]), c] @ hats[1], abs=1e-4)


def test_a_region_without_area_pools_nothing() -> None:
    assert not precise(maps(), ROIS[3:]).any()


def test_gradients_of_precise_pooling_match_differences() -> None:
    features, grad = maps(), np.random.default_rng(6).normal(size=(4, 2, *BINS))
    back = call_reference("diopiPrroiPoolbackwardMmcv", np.zeros_like(features), grad, ROIS, *BINS, 0.7)
    np.testing.assert_allclose(back, numerical_gradient(lambda x: precise(x, ROIS), features, grad), atol=1e-9)
    regions = ROIS[:3]
    out = precise(features, regions)
    back = call_reference(
        "diopiPrroiPoolCoorBackwardMmcv", np.zeros((3, 5)), out, grad[:3], features, regions, *BINS, 0.7
    )
    expected = numerical_gradient(lambda x: precise(features, x), regions, grad[:3])
    np.testing.assert_allclose(back[:, 1:], expected[:, 1:], atol=1e-7)
    assert not back[:, 0].any()


BOXES = np.random.default_rng(7).uniform(-0.5, 3.5, (2, 6, 4))


def test_border_align_point_by_point() -> None:
    features, p = maps(2, 8, 2, 3), 3
    largest, places = call_reference("diopiBorderAlignMmcv", features, BOXES, p)
    for n, c, k in np.ndindex(2, 2, 6):
        x1, y1, x2, y2 = BOXES[n, k]
        w, h = x2 - x1, y2 - y1
        borders = [
            [(y1, x1 + i * w / p) for i in range(p + 1)],
            [(y1 + i * h / p, x1) for i in range(p + 1)],
            [(y2, x2 - i * w / p) for i in range(p + 1)],
            [(y2 - i * h / p, x2) for i in range(p + 1)],
        ]
        for e, points in enumerate(borders):
            values = [bordered(features[n, 2 * e + c], *point) for point in points]
            assert largest[n, c, k, e] == pytest.approx(max(values))
            assert values[places[n, c, k, e]] == pytest.approx(max(values))
            assert max(values[: places[n, c, k, e]], default=-np.inf) < max(values)


def test_gradient_of_border_align_matches_finite_differences() -> None:
    features, grad = maps(2, 4, 2, 3), np.random.default_rng(8).normal(size=(2, 1, 6, 4))
    places = call_reference("diopiBorderAlignMmcv", features, BOXES, 2)[1]
    back = call_reference("diopiBorderAlignBackwardMmcv", np.zeros_like(features), grad, BOXES, places, 2)
    expected = numerical_gradient(lambda x: call_reference("diopiBorderAlignMmcv", x, BOXES, 2)[0], features, grad)
    np.testing.assert_allclose(back, expected, atol=1e-9)


def test_bins_whose_edges_float32_may_miss_are_open() -> None:
    features, regions = maps(1, 1, 8, 8), np.array([[0, -4, 0, 1, 3]])  # edges at −4 + i · 6/5: the last one is 2

    def specified(bins: tuple[int, int]) -> Any:
        zeros = np.zeros((1, 1, *bins))
        results = call_with_remarks("diopiRoiPoolMmcv", zeros, zeros.astype(int), features, regions, *bins, 1.0)
        assert (results[0].specified == results[1].specified).all()
        return results[0].specified[0, 0].tolist()

    assert specified((1, 5)) == [[True, True, True, True, False]]
    assert specified((2, 3)) == [[True] * 3] * 2  # 6/3 is a number of float32
    assert specified((4, 4)) == [[True] * 4] * 4


def test_no_edge_of_a_bin_is_nearer_to_a_cell_than_rounding() -> None:
    """Edges of bins lie clearly between those of cells, or exactly on them: sizes are multiples of powers of 2."""
    for case in select_cases("diopiRoiPoolMmcv", "full"):
        arguments = compute_baseline_case(lookup("diopiRoiPoolMmcv"), case).plain_arguments()
        bins = arguments["pooled_height"], arguments["pooled_width"]
        for roi in arguments["rois"]:
            low, high = roi[[2, 1]] * arguments["spatial_scale"], (roi[[4, 3]] + 1) * arguments["spatial_scale"]
            for start, end, n in zip(low, high, bins, strict=True):
                edges = start + np.arange(1, n + 1) * (end - start) / n  # the first one is the start itself
                distance = np.abs(edges - np.rint(edges))
                assert np.all((distance > 1e-4) | (n in (1, 2, 4, 16)) | (end <= start)), case.label
