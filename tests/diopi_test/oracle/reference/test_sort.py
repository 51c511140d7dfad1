"""The references of sorting and selection: results that need a validator, and limits.

`diopi-test run --vendor torch_cpu` compares their values and gradients with PyTorch.
"""

from typing import Any

import numpy as np
import pytest
from references import call_reference

from diopi_test.oracle.reference import AnyOf, find_reference

nan, inf = float("nan"), float("inf")

MIXED = np.array([2.0, nan, -0.0, inf, 0.0, 2.0, -inf, nan, -1.0])


def raw(name: str, *arguments: Any) -> Any:
    """Return the result of a reference with its declarations."""
    function = find_reference(name)
    assert function is not None
    return function(*arguments)


def is_any_of(results: Any) -> list[bool]:
    """Return for each result whether it has several valid values."""
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


def test_a_scalar_is_a_slice_of_one_element() -> None:
    number = np.array(3.0)
    for actual in (
        call_reference("diopiSort", number, -1, True, None),
        call_reference("diopiTopk", number, 1, 0, True, True),
    ):
        assert [item.shape for item in actual] == [(), ()]
        assert [item.item() for item in actual] == [3.0, 0]


@pytest.mark.parametrize(("shape", "dim"), [((0,), None), ((0, 3), None), ((0, 3), 0)])
def test_unique_of_no_elements_is_empty(shape: tuple[int, ...], dim: int | None) -> None:
    out, inverse, counts = call_reference("diopiUnique", np.zeros(shape), dim, True, True)
    assert out.size == inverse.size == counts.size == 0
    assert inverse.shape == (shape if dim is None else shape[:1])


def test_the_sign_of_a_unique_zero_is_open_only_if_both_signs_occur() -> None:
    assert is_any_of(raw("diopiUnique", np.array([0.0, -0.0, 1.0]), None, True, True)) == [True, False, False]
    assert is_any_of(raw("diopiUnique", np.array([-0.0, -0.0, 1.0]), None, True, True)) == [False, False, False]
