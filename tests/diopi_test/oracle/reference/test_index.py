"""The references of reading and writing by position: against loops over single elements, and finite differences."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from diopi_proto.types import Dtype
from diopi_test.cases.model import ResultOverride
from diopi_test.oracle.reference import AnyOf, Exact, WithTerms
from tests.helpers.references import call, difference, raw

Array = np.ndarray[Any, Any]
rng = np.random.default_rng(5)


def random(*shape: int) -> Array:
    return np.asarray(rng.normal(size=shape))


def positions(*shape: int, below: int) -> Array:
    return rng.integers(0, below, shape)


MASK = np.array([True, False, True, True])


def test_adjacent_indexed_axes_keep_their_position() -> None:
    x, i, j = random(2, 4, 5, 3), positions(2, 3, below=4), positions(3, below=5)
    actual = call("diopiIndex", x, [None, i, j])
    assert actual.shape == (2, 2, 3, 3)
    assert actual[1, 0, 2, 1] == x[1, i[0, 2], j[2], 1]


def test_separated_indexed_axes_come_first() -> None:
    x, i, j = random(4, 3, 5), positions(2, 1, below=4), positions(3, below=5)
    actual = call("diopiIndex", x, [i, None, j])
    assert actual.shape == (2, 3, 3)
    assert actual[1, 2, 0] == x[i[1, 0], 0, j[2]]


def test_mask_selects_the_positions_of_its_true_elements() -> None:
    x = random(3, 4, 2)
    np.testing.assert_array_equal(call("diopiIndex", x, [None, MASK]), x[:, [0, 2, 3]])
    cube = rng.random((3, 4)) < 0.5
    rows, columns = np.nonzero(cube)
    np.testing.assert_array_equal(call("diopiIndex", x, [cube]), [x[i, j] for i, j in zip(rows, columns, strict=True)])


def test_index_put_writes_or_adds() -> None:
    x, values, i = random(5, 2), random(4, 2), np.array([3, -1, 0, 3])
    written, total = call("diopiIndexPut", x, values, [i], False), x.copy()
    for row, place in zip(values, i, strict=True):
        total[place] += row
    np.testing.assert_allclose(call("diopiIndexPut", x, values, [i], True), total)
    np.testing.assert_array_equal(written[[4, 0, 1, 2]], [values[1], values[2], x[1], x[2]])


def test_repeated_places_leave_a_choice_or_round() -> None:
    x, values = random(5), random(2)
    assert isinstance(raw("diopiIndexPut", x, values, [np.array([3, -2])], False), AnyOf)
    assert isinstance(raw("diopiIndexPut", x, values, [np.array([3, -1])], False), Exact)
    assert isinstance(raw("diopiIndexPut", x, values, [np.array([3, -1])], True), WithTerms)
    assert isinstance(raw("diopiIndexBackward", 0 * x, [np.array([3, -1])], values), Exact)
    assert isinstance(raw("diopiIndexBackward", 0 * x, [np.array([3, -2])], values), WithTerms)
    assert isinstance(raw("diopiScatter", x, 0, values, np.array([1, 1]), None), AnyOf)
    assert isinstance(raw("diopiScatterScalar", x, 0, 3, np.array([1, 1]), None), Exact)


def test_gather_and_scatter_match_loops() -> None:
    x, i, src = random(3, 4, 5), positions(2, 6, 4, below=4), random(2, 7, 5)
    picked, summed, product = call("diopiGather", x, 1, i), x.copy(), x.copy()
    for place in np.ndindex(i.shape):
        there = (place[0], i[place], place[2])
        assert picked[place] == x[there]
        summed[there] += src[place]
        product[there] *= src[place]
    np.testing.assert_allclose(call("diopiScatter", x, 1, src, i, "add"), summed)
    np.testing.assert_allclose(call("diopiScatter", x, -2, src, i, "multiply"), product)


def test_scattered_bools_are_combined_by_or_and_and() -> None:
    x, i = np.array([False, True, False]), np.array([0, 0, 1])
    src = np.array([True, False, False])
    np.testing.assert_array_equal(call("diopiScatter", x, 0, src, i, "add"), [True, True, False])
    np.testing.assert_array_equal(call("diopiScatter", x, 0, src, i, "multiply"), [False, False, False])
    np.testing.assert_array_equal(call("diopiIndexPut", x, src, [i], True), [True, True, False])


@pytest.mark.parametrize("index", [np.array([0]), np.array(0)])
def test_scalar_counts_as_a_vector_of_one(index: Array) -> None:
    number, src = np.array(3.0), np.full(index.shape, 5.0)
    np.testing.assert_array_equal(call("diopiGather", number, 0, index), np.full(index.shape, 3.0))
    assert call("diopiScatter", number, -1, src, index, "add") == 8
    assert call("diopiScatter", number, 0, src, index, None) == 5
    assert call("diopiIndexSelect", number, 0, index) == 3
    assert call("diopiIndexFill", number, -1, index, 7.0) == 7


def test_values_are_converted_to_the_type_of_the_input() -> None:
    whole, mask = np.array([1, 2, 3]), np.array([True, False, False])
    of_integers, of_truths = ResultOverride(Dtype.int64), ResultOverride(Dtype.bool)
    assert call("diopiIndexFill", whole, 0, np.array([-1]), -2.75, out=of_integers).tolist() == [1, 2, -2]
    assert call("diopiMaskedFill", whole > 1, mask, 0.25, out=of_truths).tolist() == [True, True, True]
    assert call("diopiSelectScatter", whole, np.array(7.9), 0, -3, out=of_integers).tolist() == [7, 2, 3]


def test_masked_scatter_reads_the_source_in_row_major_order() -> None:
    x, mask, source = random(2, 3), np.array([True, False, True]), random(3, 2)
    actual = call("diopiMaskedScatter", x, mask, source)
    np.testing.assert_array_equal(actual[:, [0, 2]].reshape(-1), source.reshape(-1)[:4])
    np.testing.assert_array_equal(actual[:, 1], x[:, 1])


def test_embedding_rows_are_scaled_once() -> None:
    table = np.array([[3.0, 4.0], [0.3, 0.4], [6.0, 8.0]])
    actual = call("diopiEmbeddingRenorm_", table, np.array([2, 1, 2]), 1.0, 2.0)
    np.testing.assert_allclose(actual, [[3.0, 4.0], [0.3, 0.4], [6 / (10 + 1e-7), 8 / (10 + 1e-7)]], rtol=1e-15)
    largest = call("diopiEmbeddingRenorm_", table, np.array([0]), 1.0, np.inf)
    np.testing.assert_allclose(largest[0], [3 / (4 + 1e-7), 4 / (4 + 1e-7)], rtol=1e-15)


def test_embedding_gradient_by_frequency() -> None:
    grad, indices = np.ones((4, 1)), np.array([2, 0, 2, 3])
    actual = call("diopiEmbeddingBackward", grad, indices, 5, 3, True, False)
    assert actual[:, 0].tolist() == [1, 0, 1, 0, 0]


def test_one_hot_is_inverted_by_argmax() -> None:
    classes = positions(3, 4, below=6)
    actual = call("diopiOneHot", classes, 8)
    assert actual.shape == (3, 4, 8)
    np.testing.assert_array_equal(actual.argmax(-1), classes)
    assert call("diopiOneHot", np.array([0, 2]), -1).tolist() == [[1, 0, 0], [0, 0, 1]]


def test_nonzero_returns_positions() -> None:
    assert call("diopiNonzero", np.array([[0.0, np.nan], [2, -0.0]])).tolist() == [[0, 1], [1, 0]]
    assert call("diopiNonzero", np.array(3)).shape == (1, 0)
    assert call("diopiNonzero", np.array(0)).shape == (0, 0)


Gradient = tuple[Callable[[Array], Array], Callable[[Array], Array], tuple[int, ...]]


def _gradients() -> dict[str, Gradient]:
    """By name: the function of x, its gradient for a gradient of the result, and the shape of x."""
    pair: list[Any] = [positions(6, below=3), None, positions(6, below=5)]
    rows, inner = positions(7, below=4), positions(2, 6, 5, below=4)
    table, mask = positions(3, 4, below=6), rng.random((4, 3)) < 0.5
    shape = (3, 4, 5)
    return {
        "index": (
            lambda x: call("diopiIndex", x, pair),
            lambda grad: call("diopiIndexBackward", np.zeros(shape), pair, grad),
            shape,
        ),
        "mask": (
            lambda x: call("diopiIndex", x, [None, MASK]),
            lambda grad: call("diopiIndexBackward", np.zeros(shape), [None, MASK], grad),
            shape,
        ),
        "index_select": (
            lambda x: call("diopiIndexSelect", x, -2, rows),
            lambda grad: call("diopiIndexSelectBackward", grad, shape, -2, rows),
            shape,
        ),
        "select": (
            lambda x: call("diopiSelect", x, 1, -2),
            lambda grad: call("diopiSelectBackward", grad, shape, 1, -2),
            shape,
        ),
        "slice": (
            lambda x: call("diopiSlice", x, -1, -4, 9, 2),
            lambda grad: call("diopiSliceBackward", grad, shape, -1, -4, 9, 2),
            shape,
        ),
        "gather": (
            lambda x: call("diopiGather", x, 1, inner),
            lambda grad: call("diopiGatherBackward", grad, np.zeros(shape), 1, inner),
            shape,
        ),
        "embedding": (
            lambda x: call("diopiEmbedding", x, table, -1, False, False),
            lambda grad: call("diopiEmbeddingBackward", grad, table, 6, -1, False, False),
            (6, 2),
        ),
        "masked_select": (
            lambda x: call("diopiMaskedSelect", x, mask),
            lambda grad: call("diopiMaskedSelectBackward", grad, np.zeros((1, 3)), mask),
            (1, 3),
        ),
    }


@pytest.mark.parametrize("name", list(_gradients()))
def test_gradients_by_finite_differences(name: str) -> None:
    function, gradient, shape = _gradients()[name]
    x = random(*shape)
    grad = random(*function(x).shape)
    np.testing.assert_allclose(gradient(grad), difference(function, x, grad), atol=1e-8)
