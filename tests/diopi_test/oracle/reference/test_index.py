"""The references of reading and writing by position: conversions, ranks and open results.

`diopi-test run --vendor torch_cpu` compares their values and gradients with PyTorch.
"""

from typing import Any

import numpy as np
import pytest
from references import call_reference, call_with_remarks

from diopi_proto.types import Dtype
from diopi_test.cases.case import ResultOverride
from diopi_test.oracle.reference import AnyOf, Exact, WithTerms

Array = np.ndarray[Any, Any]
rng = np.random.default_rng(5)


def random(*shape: int) -> Array:
    """Return an array of this shape with normally distributed numbers."""
    return np.asarray(rng.normal(size=shape))


def test_repeated_places_leave_a_choice_or_round() -> None:
    x, values = random(5), random(2)
    assert isinstance(call_with_remarks("diopiIndexPut", x, values, [np.array([3, -2])], False), AnyOf)
    assert isinstance(call_with_remarks("diopiIndexPut", x, values, [np.array([3, -1])], False), Exact)
    assert isinstance(call_with_remarks("diopiIndexPut", x, values, [np.array([3, -1])], True), WithTerms)
    assert isinstance(call_with_remarks("diopiIndexBackward", 0 * x, [np.array([3, -1])], values), Exact)
    assert isinstance(call_with_remarks("diopiIndexBackward", 0 * x, [np.array([3, -2])], values), WithTerms)
    assert isinstance(call_with_remarks("diopiScatter", x, 0, values, np.array([1, 1]), None), AnyOf)
    assert isinstance(call_with_remarks("diopiScatterScalar", x, 0, 3, np.array([1, 1]), None), Exact)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_masked_gradients_have_one_element_for_each_selected_element(count: int) -> None:
    mask = np.array([True, False, True, True])
    with pytest.raises(ValueError, match=f"grad_output has {count} elements for 3 selected elements"):
        call_reference("diopiMaskedSelectBackward", random(count), random(4), mask)


def test_scattered_bools_are_combined_by_or_and_and() -> None:
    x, i = np.array([False, True, False]), np.array([0, 0, 1])
    src = np.array([True, False, False])
    np.testing.assert_array_equal(call_reference("diopiScatter", x, 0, src, i, "add"), [True, True, False])
    np.testing.assert_array_equal(call_reference("diopiScatter", x, 0, src, i, "multiply"), [False, False, False])
    np.testing.assert_array_equal(call_reference("diopiIndexPut", x, src, [i], True), [True, True, False])


@pytest.mark.parametrize("index", [np.array([0]), np.array(0)])
def test_scalar_counts_as_a_vector_of_one(index: Array) -> None:
    number, src = np.array(3.0), np.full(index.shape, 5.0)
    np.testing.assert_array_equal(call_reference("diopiGather", number, 0, index), np.full(index.shape, 3.0))
    assert call_reference("diopiScatter", number, -1, src, index, "add") == 8
    assert call_reference("diopiScatter", number, 0, src, index, None) == 5
    assert call_reference("diopiIndexSelect", number, 0, index) == 3
    assert call_reference("diopiIndexFill", number, -1, index, 7.0) == 7


def test_values_are_converted_to_the_type_of_the_input() -> None:
    whole, mask = np.array([1, 2, 3]), np.array([True, False, False])
    of_integers, of_truths = ResultOverride(Dtype.int64), ResultOverride(Dtype.bool)
    assert call_reference("diopiIndexFill", whole, 0, np.array([-1]), -2.75, out=of_integers).tolist() == [1, 2, -2]
    assert call_reference("diopiMaskedFill", whole > 1, mask, 0.25, out=of_truths).tolist() == [True, True, True]
    assert call_reference("diopiSelectScatter", whole, np.array(7.9), 0, -3, out=of_integers).tolist() == [7, 2, 3]


def test_embedding_rows_are_scaled_once() -> None:
    table = np.array([[3.0, 4.0], [0.3, 0.4], [6.0, 8.0]])
    actual = call_reference("diopiEmbeddingRenorm_", table, np.array([2, 1, 2]), 1.0, 2.0)
    np.testing.assert_allclose(actual, [[3.0, 4.0], [0.3, 0.4], [6 / (10 + 1e-7), 8 / (10 + 1e-7)]], rtol=1e-15)
    largest = call_reference("diopiEmbeddingRenorm_", table, np.array([0]), 1.0, np.inf)
    np.testing.assert_allclose(largest[0], [3 / (4 + 1e-7), 4 / (4 + 1e-7)], rtol=1e-15)
