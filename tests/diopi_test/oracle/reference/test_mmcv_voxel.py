"""The references of sparse functions: against dense convolution and pooling by PyTorch, dictionaries, differences."""

from typing import Any

import numpy as np
import pytest
from references import call, difference

torch = pytest.importorskip("torch")
conv2d = torch.nn.functional.conv2d
max_pool2d = torch.nn.functional.max_pool2d

Array = np.ndarray[Any, Any]

SIZE = (6, 7)
RNG = np.random.default_rng(29)


def cells() -> dict[tuple[int, int], int]:
    """By cell of a map that is in use, its row: some 40 % of them, in no order."""
    chosen = np.random.default_rng(3).permutation(SIZE[0] * SIZE[1])[:17]
    return {divmod(int(cell), SIZE[1]): row for row, cell in enumerate(chosen)}


def rules(submanifold: bool) -> tuple[dict[tuple[int, int], int], Array, Array]:
    """The cells of the result and the pairs of a 3 × 3 kernel with a margin of 1."""
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


def dense(rows: Array, where: dict[tuple[int, int], int]) -> torch.Tensor:
    """The map (1, C, H, W) of which only some cells are in use."""
    image = np.zeros((1, rows.shape[1], *SIZE))
    for (y, x), row in where.items():
        image[0, :, y, x] = rows[row]
    return torch.tensor(image)


@pytest.mark.parametrize("submanifold", [False, True])
def test_sparse_convolution_is_dense_convolution_where_cells_are(submanifold: bool) -> None:
    outputs, pairs, counts = rules(submanifold)
    features, filters = RNG.normal(size=(17, 3)), RNG.normal(size=(3, 3, 3, 2))
    weight = torch.tensor(filters.transpose(3, 2, 0, 1))
    image = conv2d(dense(features, cells()), weight, padding=1)[0].numpy()
    expected = np.zeros((len(outputs), 2))
    for (y, x), row in outputs.items():
        expected[row] = image[:, y, x]
    given = call("diopiIndiceConvMmcv", features, filters, pairs, counts, len(outputs), 0, int(submanifold))
    np.testing.assert_allclose(given, expected, atol=1e-12)
    bias = RNG.normal(size=2)
    fused = call(
        "diopiFusedIndiceConvBatchnormMmcv", features, filters, bias, pairs, counts, len(outputs), 0, int(submanifold)
    )
    np.testing.assert_allclose(fused, expected + bias, atol=1e-12)


def test_pairs_of_the_centre_do_not_count_in_a_submanifold() -> None:
    _, pairs, counts = rules(True)
    features, filters = RNG.normal(size=(17, 3)), RNG.normal(size=(3, 3, 3, 2))
    right = call("diopiIndiceConvMmcv", features, filters, pairs, counts, 17, 0, 1)
    pairs[4] = -1
    np.testing.assert_array_equal(call("diopiIndiceConvMmcv", features, filters, pairs, counts, 17, 0, 1), right)


def test_the_inverse_leads_back() -> None:
    """Forward and inverse are adjoint if the filters are transposed: ⟨conv(x), y⟩ = ⟨x, inverse(y)⟩."""
    outputs, pairs, counts = rules(False)
    features, filters, given = (
        RNG.normal(size=(17, 3)),
        RNG.normal(size=(3, 3, 3, 2)),
        RNG.normal(size=(len(outputs), 2)),
    )
    forward = call("diopiIndiceConvMmcv", features, filters, pairs, counts, len(outputs), 0, 0)
    back = call("diopiIndiceConvMmcv", given, filters.swapaxes(2, 3), pairs, counts, 17, 1, 0)
    assert np.sum(forward * given) == pytest.approx(np.sum(features * back))


def test_sparse_pooling_is_dense_pooling_of_positive_numbers() -> None:
    outputs, pairs, counts = rules(False)
    features = RNG.uniform(0.1, 1, (17, 3))
    image = max_pool2d(dense(features, cells()), 3, stride=1, padding=1)[0].numpy()
    given = call("diopiIndiceMaxpoolMmcv", features, pairs, counts, len(outputs))
    for (y, x), row in outputs.items():
        np.testing.assert_array_equal(given[row], image[:, y, x])


def test_no_maximum_is_negative() -> None:
    outputs, pairs, counts = rules(False)
    assert not call("diopiIndiceMaxpoolMmcv", -RNG.uniform(0.1, 1, (17, 3)), pairs, counts, len(outputs)).any()


def test_gradient_of_pooling_by_differences() -> None:
    outputs, pairs, counts = rules(False)
    features = RNG.permutation(51).reshape(17, 3) / 7.0 - 3.1  # all apart, none near 0
    largest, grad = (
        call("diopiIndiceMaxpoolMmcv", features, pairs, counts, len(outputs)),
        RNG.normal(size=(len(outputs), 3)),
    )
    given = call("diopiIndiceMaxpoolBackwardMmcv", features, largest, grad, pairs, counts)
    expected = difference(lambda x: call("diopiIndiceMaxpoolMmcv", x, pairs, counts, len(outputs)), features, grad)
    np.testing.assert_allclose(given, expected, atol=1e-8)


def test_all_that_attain_the_maximum_get_all_of_the_gradient() -> None:
    features, pairs = np.array([[2.0], [2.0], [1.0]]), np.array([[[0, 1, 2], [0, 0, 0]]])
    given = call("diopiIndiceMaxpoolBackwardMmcv", features, np.array([[2.0]]), np.array([[5.0]]), pairs, np.array([3]))
    assert given.tolist() == [[5], [5], [0]]
