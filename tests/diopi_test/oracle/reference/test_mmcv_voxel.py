"""The references of voxels and sparse functions agree with dictionaries, PyTorch's dense functions and differences."""

from collections import defaultdict
from math import floor
from typing import Any

import numpy as np
import pytest
from references import call_reference, numerical_gradient

Array = np.ndarray[Any, Any]

SIZE = (6, 7)
RNG = np.random.default_rng(29)


def cells() -> dict[tuple[int, int], int]:
    """Return the row of each used cell of a map, by cell: about 40 % of the cells, in random order."""
    chosen = np.random.default_rng(3).permutation(SIZE[0] * SIZE[1])[:17]
    return {divmod(int(cell), SIZE[1]): row for row, cell in enumerate(chosen)}


def rules(submanifold: bool) -> tuple[dict[tuple[int, int], int], Array, Array]:
    """Return the cells of the result and the pairs of a 3 × 3 kernel with a margin of 1."""
    inputs = cells()
    shifts = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)]
    reached = {(y - i, x - j) for y, x in inputs for i, j in shifts}
    inside = sorted(cell for cell in reached if 0 <= cell[0] < SIZE[0] and 0 <= cell[1] < SIZE[1])
    outputs = inputs if submanifold else {cell: row for row, cell in enumerate(inside)}
    pairs, counts = np.full((9, 2, len(inputs)), -1), np.zeros(9, int)
    for position, (i, j) in enumerate(shifts):
        joined = [(row, outputs[y - i, x - j]) for (y, x), row in inputs.items() if (y - i, x - j) in outputs]
        pairs[position, :, : len(joined)], counts[position] = np.transpose(joined), len(joined)
    return outputs, pairs, counts


def dense_map(rows: Array, cells: dict[tuple[int, int], int]) -> Array:
    """Return the map (1, C, H, W), in which only some cells are used."""
    image = np.zeros((1, rows.shape[1], *SIZE))
    for (y, x), row in cells.items():
        image[0, :, y, x] = rows[row]
    return image


@pytest.mark.parametrize("submanifold", [False, True])
def test_sparse_convolution_is_dense_convolution_where_cells_are(submanifold: bool) -> None:
    torch = pytest.importorskip("torch")
    outputs, pairs, counts = rules(submanifold)
    features, filters = RNG.normal(size=(17, 3)), RNG.normal(size=(3, 3, 3, 2))
    image, weight = torch.tensor(dense_map(features, cells())), torch.tensor(filters.transpose(3, 2, 0, 1))
    image = torch.nn.functional.conv2d(image, weight, padding=1)[0].numpy()
    expected = np.zeros((len(outputs), 2))
    for (y, x), row in outputs.items():
        expected[row] = image[:, y, x]
    actual = call_reference("diopiIndiceConvMmcv", features, filters, pairs, counts, len(outputs), 0, int(submanifold))
    np.testing.assert_allclose(actual, expected, atol=1e-12)
    bias = RNG.normal(size=2)
    fused = call_reference(
        "diopiFusedIndiceConvBatchnormMmcv", features, filters, bias, pairs, counts, len(outputs), 0, int(submanifold)
    )
    np.testing.assert_allclose(fused, expected + bias, atol=1e-12)


def test_pairs_of_the_center_do_not_count_in_a_submanifold() -> None:
    _, pairs, counts = rules(True)
    features, filters = RNG.normal(size=(17, 3)), RNG.normal(size=(3, 3, 3, 2))
    expected = call_reference("diopiIndiceConvMmcv", features, filters, pairs, counts, 17, 0, 1)
    pairs[4] = -1
    np.testing.assert_array_equal(
        call_reference("diopiIndiceConvMmcv", features, filters, pairs, counts, 17, 0, 1), expected
    )


def test_inverse_convolution_is_the_adjoint() -> None:
    """Forward and inverse are adjoint if the filters are transposed: ⟨conv(x), y⟩ = ⟨x, inverse(y)⟩."""
    outputs, pairs, counts = rules(False)
    features, filters, start_features = (
        RNG.normal(size=(17, 3)),
        RNG.normal(size=(3, 3, 3, 2)),
        RNG.normal(size=(len(outputs), 2)),
    )
    forward = call_reference("diopiIndiceConvMmcv", features, filters, pairs, counts, len(outputs), 0, 0)
    back = call_reference("diopiIndiceConvMmcv", start_features, filters.swapaxes(2, 3), pairs, counts, 17, 1, 0)
    assert np.sum(forward * start_features) == pytest.approx(np.sum(features * back))


@pytest.mark.parametrize(("inverse", "submanifold"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_gradients_of_sparse_convolution_match_differences(inverse: int, submanifold: int) -> None:
    outputs, pairs, counts = rules(bool(submanifold))
    ends = (17, len(outputs))[:: -1 if inverse else 1]
    features, filters, grad = (RNG.normal(size=shape) for shape in ((ends[0], 3), (3, 3, 3, 2), (ends[1], 2)))
    arguments = pairs, counts, ends[1], inverse, submanifold
    actual = call_reference("diopiIndiceConvBackwardMmcv", features, filters, grad, pairs, counts, inverse, submanifold)
    to_features = numerical_gradient(
        lambda x: call_reference("diopiIndiceConvMmcv", x, filters, *arguments), features, grad
    )
    to_filters = numerical_gradient(
        lambda x: call_reference("diopiIndiceConvMmcv", features, x, *arguments), filters, grad
    )
    for sizes, expected in zip(actual, (to_features, to_filters), strict=True):
        np.testing.assert_allclose(sizes, expected, atol=1e-7)


def test_sparse_pooling_is_dense_pooling_of_positive_numbers() -> None:
    outputs, pairs, counts = rules(False)
    torch = pytest.importorskip("torch")
    features = RNG.uniform(0.1, 1, (17, 3))
    image = torch.tensor(dense_map(features, cells()))
    image = torch.nn.functional.max_pool2d(image, 3, stride=1, padding=1)[0].numpy()
    actual = call_reference("diopiIndiceMaxpoolMmcv", features, pairs, counts, len(outputs))
    for (y, x), row in outputs.items():
        np.testing.assert_array_equal(actual[row], image[:, y, x])


def test_maxima_are_at_least_zero() -> None:
    outputs, pairs, counts = rules(False)
    assert not call_reference(
        "diopiIndiceMaxpoolMmcv", -RNG.uniform(0.1, 1, (17, 3)), pairs, counts, len(outputs)
    ).any()


def test_gradient_of_pooling_matches_finite_differences() -> None:
    outputs, pairs, counts = rules(False)
    features = RNG.permutation(51).reshape(17, 3) / 7.0 - 3.1  # all apart, none near 0
    largest, grad = (
        call_reference("diopiIndiceMaxpoolMmcv", features, pairs, counts, len(outputs)),
        RNG.normal(size=(len(outputs), 3)),
    )
    actual = call_reference("diopiIndiceMaxpoolBackwardMmcv", features, largest, grad, pairs, counts)
    expected = numerical_gradient(
        lambda x: call_reference("diopiIndiceMaxpoolMmcv", x, pairs, counts, len(outputs)), features, grad
    )
    np.testing.assert_allclose(actual, expected, atol=1e-8)


def test_each_element_equal_to_the_maximum_gets_the_whole_gradient() -> None:
    features, pairs = np.array([[2.0], [2.0], [1.0]]), np.array([[[0, 1, 2], [0, 0, 0]]])
    actual = call_reference(
        "diopiIndiceMaxpoolBackwardMmcv", features, np.array([[2.0]]), np.array([[5.0]]), pairs, np.array([3])
    )
    assert actual.tolist() == [[5], [5], [0]]


# Voxels, point by point.

LOW, EDGES, CELLS = (-1.0, 0.5, 2.0), (0.5, 0.25, 1.0), (4, 3, 2)
GRID = np.array(EDGES), np.array([*LOW, *(low + size * n for low, size, n in zip(LOW, EDGES, CELLS, strict=True))])


def cell_of(point: Array) -> tuple[int, ...] | None:
    """Return the cell (z, y, x) of a point; None outside the grid."""
    cell = [floor((x - low) / size) for x, low, size in zip(point, LOW, EDGES, strict=False)]
    inside = all(0 <= place < count for place, count in zip(cell, CELLS, strict=True))
    return (cell[2], cell[1], cell[0]) if inside else None


def some_points(count: int = 120) -> Array:
    """Return points in the grid and up to a cell around it, each with a feature."""
    low, size, cells = map(np.array, (LOW, EDGES, CELLS))
    places = low + size * RNG.uniform(-1, cells + 1, (count, 3))
    return np.hstack([places, RNG.normal(size=(count, 1))])


@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.parametrize(("room", "limit"), [(3, 10), (1, 40), (50, 40), (2, 0)])
def test_voxels_are_in_the_order_of_their_first_points(room: int, limit: int, deterministic: bool) -> None:
    points = some_points()
    created: dict[tuple[int, ...], list[Array]] = {}
    for point in points:
        cell = cell_of(point)
        if cell is not None and (cell in created or len(created) < limit):
            created.setdefault(cell, []).append(point)
    empty = np.zeros((limit, room, 4)), np.zeros((limit, 3), int), np.zeros(limit, int)
    voxels, coors, counts, number = call_reference(
        "diopiHardVoxelizeMmcv", *empty, points, *GRID, room, limit, 3, deterministic
    )
    assert (number, number.shape) == (len(created), ())
    for voxel, (cell, its_points) in enumerate(created.items()):
        assert tuple(coors[voxel]) == cell
        assert counts[voxel] == len(its_points[:room])
        np.testing.assert_array_equal(voxels[voxel, : counts[voxel]], its_points[:room])
        assert not voxels[voxel, counts[voxel] :].any()
    assert not any(result[number:].any() for result in (voxels, coors, counts))


def test_the_cell_of_every_point() -> None:
    points = some_points()
    cells = [cell_of(point) for point in points]
    actual = call_reference("diopiDynamicVoxelizeMmcv", np.zeros((120, 3), int), points, *GRID, 3)
    assert any(cells)
    assert not all(cells)
    for cell, row in zip(cells, actual, strict=True):
        assert row[0] == -1 if cell is None else tuple(row) == cell


def test_a_face_belongs_to_the_cell_above_it() -> None:
    points = np.array([[-1.0, 0.5, 2.0], [-0.5, 0.75, 3.0], [1.0, 0.5, 2.0], [-1.0, 1.25, 2.0], [-1.0, 0.5, 4.0]])
    actual = call_reference("diopiDynamicVoxelizeMmcv", np.zeros((5, 3), int), points, *GRID, 3)
    assert actual[:2].tolist() == [[0, 0, 0], [1, 1, 1]]
    assert actual[2:, 0].tolist() == [-1, -1, -1]


# Reduction by voxel.

REDUCE = {0: sum, 1: lambda values: sum(values) / len(values), 2: max}


def scatter_points(count: int = 40) -> tuple[Array, Array]:
    """Return features of points, and their coordinates, of which some are negative."""
    return RNG.normal(size=(count, 3)), RNG.integers(-1, 3, (count, 2))


@pytest.mark.parametrize("reduce_type", REDUCE)
def test_points_of_equal_coordinates_are_reduced(reduce_type: int) -> None:
    feats, coors = scatter_points()
    points: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for number, row in enumerate(coors.tolist()):
        if min(row) >= 0:
            points[tuple(row)].append(number)
    reduced, rows, places, counts = call_reference("diopiDynamicPointToVoxelMmcv", feats, coors, reduce_type)
    assert [tuple(row) for row in rows] == sorted(points)
    for row, cell in enumerate(sorted(points)):
        assert np.flatnonzero(places == row).tolist() == points[cell]
        assert counts[row] == len(points[cell])
        for channel in range(3):
            assert reduced[row, channel] == pytest.approx(REDUCE[reduce_type](feats[points[cell], channel].tolist()))
    assert (places == -1).sum() == 40 - counts.sum()


def test_no_points_leave_no_rows() -> None:
    reduced, rows, places, counts = call_reference(
        "diopiDynamicPointToVoxelMmcv", np.ones((0, 3)), np.ones((0, 2), int), 2
    )
    assert [array.shape for array in (reduced, rows, places, counts)] == [(0, 3), (0, 2), (0,), (0,)]


@pytest.mark.parametrize("reduce_type", REDUCE)
def test_gradients_of_a_reduction_match_differences(reduce_type: int) -> None:
    feats, coors = scatter_points()
    reduced, _, places, counts = call_reference("diopiDynamicPointToVoxelMmcv", feats, coors, reduce_type)
    grad = RNG.normal(size=reduced.shape)
    actual = call_reference("diopiDynamicPointToVoxelBackwardMmcv", grad, feats, reduced, places, counts, reduce_type)
    expected = numerical_gradient(
        lambda x: call_reference("diopiDynamicPointToVoxelMmcv", x, coors, reduce_type)[0], feats, grad
    )
    np.testing.assert_allclose(actual, expected, atol=1e-8)


def test_the_first_of_equal_points_gets_the_gradient_of_their_maximum() -> None:
    feats, places = np.array([[1.0, 4.0], [2.0, 4.0], [2.0, 3.0], [9.0, 9.0]]), np.array([0, 0, 0, -1])
    arguments = np.array([[2.0, 4.0]]), places, np.array([3]), 2
    actual = call_reference("diopiDynamicPointToVoxelBackwardMmcv", np.array([[5.0, 7.0]]), feats, *arguments)
    assert actual.tolist() == [[0, 7], [5, 0], [0, 0], [0, 0]]
