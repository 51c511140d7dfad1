"""The references of point sets agree with SciPy's trees, plain loops, PyTorch's gathers and finite differences."""

from typing import Any

import numpy as np
import pytest
from references import call_reference, numerical_gradient
from scipy.spatial import KDTree
from scipy.spatial.distance import cdist

from diopi_proto.interface import lookup
from diopi_test.cases.selection import select_cases
from diopi_test.oracle.evaluation import compute_baseline_case

torch = pytest.importorskip("torch")

Array = np.ndarray[Any, Any]

RNG = np.random.default_rng(5)


def cloud(*shape: int) -> Array:
    """Return random points."""
    return np.random.default_rng(sum(shape)).normal(size=(*shape, 3))


def ball(centers: Array, points: Array, count: int, low: float, high: float) -> Array:
    """Return the result of the reference of `diopiBallQueryMmcv`."""
    b, n, m = len(points), points.shape[1], centers.shape[1]
    idx = np.zeros((b, m, count), int)
    return np.asarray(call_reference("diopiBallQueryMmcv", idx, centers, points, b, n, m, count, low, high))


@pytest.mark.parametrize("low", [0.0, 0.6])
def test_ball_query_returns_the_first_points_that_a_tree_finds(low: float) -> None:
    points, centers = cloud(2, 40), cloud(2, 9)
    rows = ball(centers, points, 5, low, 1.1)
    for batch in range(2):
        tree = KDTree(points[batch])
        for center, row in zip(centers[batch], rows[batch], strict=True):
            near = set(tree.query_ball_point(center, 1.1)) - set(tree.query_ball_point(center, low))
            found = sorted(near)[:5]
            assert row.tolist() == (found + found[:1] * (5 - len(found)) if found else [0] * 5)


def test_a_point_at_the_center_is_found_for_any_minimum_radius() -> None:
    points = np.array([[[5.0, 0, 0], [0, 0, 0], [1, 0, 0], [2, 0, 0]]])
    assert ball(points[:, 1:2], points, 3, 1.0, 2.0).tolist() == [[[1, 2, 1]]], "1 is inside the shell, 2 is not"


def test_stacked_ball_query_equals_separate_ball_queries() -> None:
    counts, lengths = [3, 0, 4], [12, 5, 30]
    centers, points = cloud(7), cloud(47)
    idx = np.zeros((7, 4), int)
    rows = call_reference("diopiStackBallQueryMmcv", idx, centers, np.array(counts), points, np.array(lengths), 0.9, 4)
    starts, first = np.cumsum([0, *counts]), np.cumsum([0, *lengths])
    for number in (0, 2):
        set_hits, near = centers[starts[number] : starts[number + 1]], points[first[number] : first[number + 1]]
        points_of_set = ball(set_hits[np.newaxis], near[np.newaxis], 4, 0.0, 0.9)[0]
        none = cdist(set_hits, near).min(1) >= 0.9
        points_of_set[none, 0] = -1
        np.testing.assert_array_equal(rows[starts[number] : starts[number + 1]], points_of_set)


def test_furthest_points_match_an_exhaustive_search() -> None:
    points = cloud(1, 30)
    chosen = call_reference("diopiFurthestPointSamplingMmcv", np.full((1, 30), 1e10), points, 1, 30, 9)[0]
    distances = cdist(points[0], points[0])
    expected = [0]
    while len(expected) < 9:
        expected.append(max(range(30), key=lambda k: min(distances[k, candidate] for candidate in expected)))
    assert chosen.tolist() == expected
    actual = call_reference(
        "diopiFurthestPointSamplingWithDistMmcv", np.full((1, 30), 1e10), distances[np.newaxis] ** 2, 1, 30, 9
    )
    assert actual[0].tolist() == expected


def test_given_distances_are_those_from_the_chosen_point() -> None:
    distances = np.array([[[0.0, 1, 2], [5, 0, 3], [9, 9, 0]]])
    assert call_reference(
        "diopiFurthestPointSamplingWithDistMmcv", np.full((1, 3), 1e10), distances, 1, 3, 3
    ).tolist() == [[0, 2, 1]]


@pytest.mark.parametrize("count", [1, 4, 20])
def test_nearest_points_match_those_of_a_tree(count: int) -> None:
    points, centers = cloud(2, 20), cloud(2, 7)
    indices, squares = call_reference("diopiKnnMmcv", points, centers, 2, 20, 7, count)
    for batch in range(2):
        distances, expected = KDTree(points[batch]).query(centers[batch], k=count)
        np.testing.assert_allclose(squares[batch], np.reshape(distances, (7, count)) ** 2)
        np.testing.assert_array_equal(indices[batch], np.reshape(expected, (7, count)))


def test_missing_neighbors_have_index_0_and_a_large_distance() -> None:
    indices, squares = call_reference("diopiKnnMmcv", cloud(1, 2), cloud(1, 3), 1, 2, 3, 4)
    assert (indices[..., 2:] == 0).all()
    assert (squares[..., 2:] == 1e10).all()
    squares, indices = call_reference("diopiThreeNnMmcv", cloud(1, 3), cloud(1, 2), 1, 3, 2)
    assert (indices[..., 2] == 0).all()
    assert np.isinf(squares[..., 2]).all()


def test_the_lower_of_equally_near_indices_comes_first() -> None:
    known = np.array([[[1.0, 0, 0], [0, 1, 0], [-1, 0, 0], [0, 0, 3]]])
    squares, indices = call_reference("diopiThreeNnMmcv", np.zeros((1, 1, 3)), known, 1, 1, 4)
    assert indices.tolist() == [[[0, 1, 2]]]
    assert squares.tolist() == [[[1, 1, 1]]]


def test_neighbors_move_with_the_points() -> None:
    """Distances do not change with a translation, and indices follow a permutation of the points."""
    points, centers, order = cloud(1, 25), cloud(1, 6), RNG.permutation(25)
    indices, squares = call_reference("diopiKnnMmcv", points, centers, 1, 25, 6, 5)
    shifted, moved = call_reference("diopiKnnMmcv", points[:, order] + 3.0, centers + 3.0, 1, 25, 6, 5)
    np.testing.assert_allclose(moved, squares)
    np.testing.assert_array_equal(order[shifted], indices)


def test_gathering_and_grouping_are_torch_gathers() -> None:
    points, idx = RNG.normal(size=(2, 3, 8)), RNG.integers(0, 8, (2, 5, 4))
    gathered = torch.gather(torch.tensor(points), 2, torch.tensor(idx[:, :, 0])[:, None].expand(-1, 3, -1))
    np.testing.assert_array_equal(call_reference("diopiGatherPointsMmcv", points, idx[:, :, 0], 2, 3, 8, 5), gathered)
    flat = torch.tensor(idx.reshape(2, 1, 20)).expand(-1, 3, -1)
    grouped = torch.gather(torch.tensor(points), 2, flat).reshape(2, 3, 5, 4)
    np.testing.assert_array_equal(call_reference("diopiGroupPointsMmcv", points, idx, 2, 3, 8, 5, 4), grouped)


def test_gradients_of_gathering_match_differences() -> None:
    points, idx, zeros = RNG.normal(size=(2, 2, 4)), RNG.integers(0, 4, (2, 5, 3)), np.zeros((2, 2, 4))
    grad = RNG.normal(size=(2, 2, 5, 3))
    actual = call_reference("diopiGroupPointsBackwardMmcv", zeros, grad, idx, 2, 2, 4, 5, 3)
    expected = numerical_gradient(lambda x: call_reference("diopiGroupPointsMmcv", x, idx, 2, 2, 4, 5, 3), points, grad)
    np.testing.assert_allclose(actual, expected, atol=1e-9)
    actual = call_reference("diopiGatherPointsBackwardMmcv", zeros, grad[..., 0], idx[..., 0], 2, 2, 4, 5)
    expected = numerical_gradient(
        lambda x: call_reference("diopiGatherPointsMmcv", x, idx[..., 0], 2, 2, 4, 5), points, grad[..., 0]
    )
    np.testing.assert_allclose(actual, expected, atol=1e-9)


def test_interpolation_matches_weighted_sums_and_its_gradient_differences() -> None:
    points, idx, weight = RNG.normal(size=(2, 3, 6)), RNG.integers(0, 6, (2, 5, 3)), RNG.normal(size=(2, 5, 3))
    actual = call_reference("diopiThreeInterpolateMmcv", points, idx, weight, 2, 3, 6, 5)
    for b, c, i in np.ndindex(2, 3, 5):
        assert actual[b, c, i] == pytest.approx(sum(weight[b, i, k] * points[b, c, idx[b, i, k]] for k in range(3)))
    grad = RNG.normal(size=(2, 3, 5))
    back = call_reference("diopiThreeInterpolateBackwardMmcv", np.zeros((2, 3, 6)), grad, idx, weight, 2, 3, 5, 6)
    expected = numerical_gradient(
        lambda x: call_reference("diopiThreeInterpolateMmcv", x, idx, weight, 2, 3, 6, 5), points, grad
    )
    np.testing.assert_allclose(back, expected, atol=1e-9)


def test_stacked_groups_and_their_gradient() -> None:
    features, idx = RNG.normal(size=(9, 2)), RNG.integers(-1, 6, (5, 3))
    sizes, rows = np.array([5, 0, 4]), np.array([2, 1, 2])

    def group(x: Array) -> Array:
        return np.asarray(
            call_reference("diopiStackGroupPointsMmcv", np.zeros((5, 2, 3)), x, sizes, idx, rows, 3, 2, 5, 3)
        )

    actual = group(features)
    for r, j in np.ndindex(5, 3):
        number = [0, 0, 1, 2, 2][r]
        inside = 0 <= idx[r, j] < sizes[number]
        expected = features[[0, 5, 5][number] + idx[r, j]] if inside else np.zeros(2)
        np.testing.assert_array_equal(actual[r, :, j], expected)
    grad = RNG.normal(size=(5, 2, 3))
    back = call_reference("diopiStackGroupPointsBackwardMmcv", np.zeros((9, 2)), grad, idx, rows, sizes, 3, 2, 5, 9, 3)
    np.testing.assert_allclose(back, numerical_gradient(group, features, grad), atol=1e-9)


def test_scores_match_loops_and_their_gradients_differences() -> None:
    b, n, rows, m, k, o = 2, 4, 3, 2, 3, 2
    points, centers = RNG.normal(size=(2, b, n, m, o))
    scores, idx = RNG.normal(size=(b, rows, k, m)), RNG.integers(-1, n + 1, (b, rows, k))
    idx[..., 0] = RNG.integers(0, n, (b, rows))
    sizes = b, n, rows, m, k, o, 0

    def assign(points: Array, centers: Array, scores: Array) -> Array:
        zeros = np.zeros((b, o, rows, k))
        return np.asarray(call_reference("diopiAssignScoreWithkMmcv", zeros, points, centers, scores, idx, *sizes))

    actual = assign(points, centers, scores)
    for index in np.ndindex(actual.shape):
        batch, channel, row, slot = index
        there = 0 <= idx[batch, row, slot] < n
        terms = [
            scores[batch, row, slot, i]
            * (points[batch, idx[batch, row, slot], i, channel] - centers[batch, idx[batch, row, 0], i, channel])
            for i in range(m if there else 0)
        ]
        assert actual[index] == pytest.approx(sum(terms))
    grad, zeros = RNG.normal(size=actual.shape), (np.zeros_like(points), np.zeros_like(centers), np.zeros_like(scores))
    back = call_reference("diopiAssignScoreWithkBackwardMmcv", *zeros, grad, points, centers, scores, idx, *sizes)
    expected = [
        numerical_gradient(lambda x: assign(x, centers, scores), points, grad),
        numerical_gradient(lambda x: assign(points, x, scores), centers, grad),
        numerical_gradient(lambda x: assign(points, centers, x), scores, grad),
    ]
    for gathered, candidate in zip(back, expected, strict=True):
        np.testing.assert_allclose(gathered, candidate, atol=1e-8)


@pytest.mark.parametrize("function", ["diopiBallQueryMmcv", "diopiStackBallQueryMmcv"])
def test_no_point_is_nearer_to_a_radius_than_rounding(function: str) -> None:
    for case in select_cases(function, "full"):
        arguments = compute_baseline_case(lookup(function), case).plain_arguments()
        centers, points = arguments["center_xyz"], arguments["xyz"]
        pairs = zip(centers, points, strict=True) if centers.ndim == 3 else [(centers, points)]
        squares = [cdist(gathered, candidate) ** 2 for gathered, candidate in pairs if gathered.size and candidate.size]
        for radius in (arguments["max_radius"], arguments.get("min_radius", 0.0)):
            for square in squares:
                distance = np.abs(square / max(radius, 1e-6) ** 2 - 1)
                assert not np.any((distance > 1e-12) & (distance < 1e-5)), case.label
