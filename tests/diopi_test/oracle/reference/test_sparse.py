"""The reference of sparse products agrees with products of dense matrices."""

from typing import Any

import numpy as np
import pytest
from references import call_reference

Array = np.ndarray[Any, Any]
COUNTS = (2, 0, 3, 1)


@pytest.fixture
def parts() -> list[Array]:
    """Return row pointers, unordered columns (one occurs twice in a row), and values."""
    return [np.cumsum([0, *COUNTS]), np.array([4, 1, 2, 0, 2, 3]), np.random.default_rng(2).normal(size=6)]


def test_sparse_product_equals_a_dense_product(parts: list[Array]) -> None:
    crow, col, values = parts
    dense, mat2 = np.zeros((4, 5)), np.random.default_rng(3).normal(size=(5, 3))
    for row in range(4):
        for p in range(crow[row], crow[row + 1]):
            dense[row, col[p]] += values[p]
    np.testing.assert_allclose(call_reference("diopiSpMM", parts, mat2), dense @ mat2, rtol=1e-12, atol=1e-14)
