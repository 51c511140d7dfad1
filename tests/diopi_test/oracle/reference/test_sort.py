"""The references of sorting and selection: against Python's own, and finite differences."""

from typing import Any

import numpy as np
import pytest

from diopi_test.oracle.reference import AnyOf, find_reference
from tests.helpers.references import call, difference

Array = np.ndarray[Any, Any]
nan, inf = float("nan"), float("inf")
rng = np.random.default_rng(7)

MIXED = np.array([2.0, nan, -0.0, inf, 0.0, 2.0, -inf, nan, -1.0])


def raw(name: str, *arguments: Any) -> Any:
    """What a reference gives, with what it says about it."""
    function = find_reference(name)
    assert function is not None
    return function(*arguments)


def rank(x: float) -> tuple[bool, float]:
    """The key by which Python orders numbers as PyTorch does: NaN is larger than all others."""
    return (True, 0.0) if np.isnan(x) else (False, x)


@pytest.mark.parametrize("descending", [False, True])
def test_stable_order(descending: bool) -> None:
    values, indices = call("diopiSort", MIXED, 0, descending, True)
    expected = sorted(range(len(MIXED)), key=lambda i: rank(MIXED.item(i)), reverse=descending)
    assert indices.tolist() == expected  # Python's sort is stable, reversed too
    np.testing.assert_array_equal(values, MIXED[expected])
    np.testing.assert_array_equal(call("diopiArgsort", MIXED, True, None, descending), expected)


def test_every_slice_along_an_axis() -> None:
    x = rng.normal(size=(3, 4, 2))
    values, indices = call("diopiSort", x, -2, True, False)
    np.testing.assert_array_equal(values, -np.sort(-x, 1))
    np.testing.assert_array_equal(np.take_along_axis(x, indices, 1), values)


def is_any_of(results: Any) -> list[bool]:
    return [isinstance(item, AnyOf) for item in results]


def test_results_with_ties_or_free_order_need_a_validator() -> None:
    distinct = np.array([3.0, 1.0, 2.0, nan])
    assert is_any_of(raw("diopiSort", MIXED, 0, False, None)) == [True, True]
    assert is_any_of(raw("diopiSort", MIXED, 0, False, True)) == [False, False]
    assert is_any_of(raw("diopiSort", distinct, 0, False, False)) == [False, False]
    assert is_any_of(raw("diopiTopk", distinct, 2, 0, True, True)) == [False, False]
    assert is_any_of(raw("diopiTopk", distinct, 2, 0, True, False)) == [True, True]
    assert is_any_of(raw("diopiTopk", distinct, 1, 0, True, False)) == [False, False]
    assert is_any_of(raw("diopiTopk", np.array([3.0, 1.0, 1.0]), 2, 0, True, True)) == [True, True]
    assert is_any_of(raw("diopiTopk", np.array([3.0, 1.0, 1.0]), 1, 0, True, True)) == [False, False]


@pytest.mark.parametrize("largest", [True, False])
def test_topk_is_the_start_of_a_sort(largest: bool) -> None:
    x = rng.normal(size=(5, 3))
    values, indices = call("diopiTopk", x, 2, 0, largest, True)
    np.testing.assert_array_equal(values, call("diopiSort", x, 0, largest, True)[0][:2])
    np.testing.assert_array_equal(np.take_along_axis(x, indices, 0), values)


def test_a_number_is_a_slice_of_one_element() -> None:
    number = np.array(3.0)
    for actual in (call("diopiSort", number, -1, True, None), call("diopiTopk", number, 1, 0, True, True)):
        assert [item.shape for item in actual] == [(), ()]
        assert [item.item() for item in actual] == [3.0, 0]


def test_distinct_values() -> None:
    x = np.array([[3, 1, 3], [0, 1, 3]])
    out, inverse, counts = call("diopiUnique", x, None, False, True)
    assert out.tolist() == [0, 1, 3]
    assert counts.tolist() == [1, 2, 3]
    np.testing.assert_array_equal(out[inverse], x)
    assert call("diopiUnique", x, None, True, False)[2] is None


def test_distinct_slices_by_their_first_difference() -> None:
    x = np.array([[1, 0, 1, 0], [5, 9, 2, 9]])
    out, inverse, counts = call("diopiUnique", x, -1, True, True)
    assert out.tolist() == [[0, 1, 1], [9, 2, 5]]
    assert inverse.tolist() == [2, 0, 1, 0]
    assert counts.tolist() == [2, 1, 1]


@pytest.mark.parametrize(("shape", "dim"), [((0,), None), ((0, 3), None), ((0, 3), 0)])
def test_nothing_is_distinct(shape: tuple[int, ...], dim: int | None) -> None:
    out, inverse, counts = call("diopiUnique", np.zeros(shape), dim, True, True)
    assert out.size == inverse.size == counts.size == 0
    assert inverse.shape == (shape if dim is None else shape[:1])


def test_the_sign_of_a_distinct_zero_is_open_only_where_both_occur() -> None:
    assert is_any_of(raw("diopiUnique", np.array([0.0, -0.0, 1.0]), None, True, True)) == [True, False, False]
    assert is_any_of(raw("diopiUnique", np.array([-0.0, -0.0, 1.0]), None, True, True)) == [False, False, False]


@pytest.mark.parametrize("keepdim", [True, False])
def test_gradient_of_a_selection(keepdim: bool) -> None:
    x = rng.normal(size=(3, 4, 2))
    indices = np.argmax(x, 1, keepdims=keepdim)
    grad = rng.normal(size=indices.shape)
    actual = call("diopiSortBackward", grad, 1, indices, x.shape, keepdim)
    np.testing.assert_allclose(actual, difference(lambda x: np.max(x, 1, keepdims=keepdim), x, grad), atol=1e-8)


def test_gradient_of_topk() -> None:
    x = rng.normal(size=(5, 3))
    _, indices = call("diopiTopk", x, 2, 0, True, True)
    grad = rng.normal(size=indices.shape)
    actual = call("diopiSortBackward", grad, -2, indices, x.shape, True)
    expected = difference(lambda x: call("diopiTopk", x, 2, 0, True, True)[0], x, grad)
    np.testing.assert_allclose(actual, expected, atol=1e-8)
