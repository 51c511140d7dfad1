"""The error map of one slice: each cell shows the worst of its elements."""

from __future__ import annotations

import numpy as np
import pytest

from diopi_test.checks.error_map import MAX_CELLS, make_error_map
from diopi_test.execution.difference import ErrorMap


def test_a_small_matrix_has_a_digit_per_element() -> None:
    errors = np.array([[0, 0.1, 0.2, 0.3], [0.9, 1.5, 5, 50], [1000, 2000, np.inf, 0]])
    assert make_error_map(errors > 1, errors, np.ones((3, 4)), (2, 2)) == ErrorMap(
        (0, 1), (3, 4), ("0123", "4567", "8990")
    )


def test_wrong_elements_without_a_budget_have_the_largest_digit() -> None:
    mask = np.array([True, False, True])
    assert make_error_map(mask, np.array([1.0, 0.0, 9.0]), None, (2,)) == ErrorMap((0,), (3,), ("909",))
    assert make_error_map(mask, np.array([1.0, 0.0, 9.0]), np.array([0.0, 0.0, 9.0]), (0,)) == ErrorMap(
        (0,), (3,), ("904",)
    )


def test_correct_elements_have_digits_within_the_budget() -> None:
    """Subnormal numbers may be flushed to zero, however large the error is."""
    errors = np.array([100.0, np.inf, np.nan])
    found = make_error_map(np.zeros(3, bool), errors, np.ones(3), (0,))
    assert found is not None and found.rows == ("400",)


def test_the_slice_contains_the_worst_element_and_a_cell_shows_its_worst() -> None:
    errors = np.zeros((3, 70, 1, 100))
    errors[1, 69, 0, 99], errors[0] = 3, 5
    found = make_error_map(errors > 1, errors, np.ones(errors.shape), (1, 69, 0, 99))
    assert found is not None
    assert (found.axes, found.sizes) == ((1, 3), (70, 100))
    assert {len(found.rows), *map(len, found.rows)} == {24, 25}
    assert "".join(found.rows) == "0" * (24 * 25 - 1) + "6"


@pytest.mark.parametrize("size", [2, 31, 32, 33, 1000, 1025])
def test_the_number_of_cells_per_axis_is_limited(size: int) -> None:
    found = make_error_map(np.ones((size, 2), bool), np.ones((size, 2)), None, (0, 0))
    assert found is not None and len(found.rows) <= MAX_CELLS and set(found.rows) == {"99"}


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_a_single_element_has_no_map(shape: tuple[int, ...]) -> None:
    assert make_error_map(np.ones(shape, bool), np.ones(shape), None, (0,) * len(shape)) is None
