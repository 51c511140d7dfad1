"""Test the signs of perturbations: effects of two inputs that cancel in one round add up in another round."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.perturbation import ROUNDS, SignPatterns

SHAPES = [(), (70,), (90, 1), (90, 70), (3, 90, 70)]
TENSORS = 8


def count_agreements(a: NDArray[np.uint8], b: NDArray[np.uint8]) -> NDArray[np.integer]:
    """Return in how many rounds elements of two tensors have the same sign."""
    return ROUNDS - np.bitwise_count(a ^ b)


def test_signs_of_tensors_of_equal_shape_agree_in_half_of_the_rounds() -> None:
    signs = SignPatterns(np.random.default_rng(3))
    patterns = [signs.draw_tensor((50, 4)) for _ in range(TENSORS)]
    assert all((count_agreements(a, b) == ROUNDS // 2).all() for a, b in combinations(patterns, 2))


def test_signs_of_broadcast_tensors_agree_in_some_rounds_at_each_element() -> None:
    signs = SignPatterns(np.random.default_rng(5))
    patterns = {shape: [signs.draw_tensor(shape) for _ in range(TENSORS)] for shape in SHAPES}
    pairs = [
        (shape, larger) for shape, larger in combinations(SHAPES, 2) if np.broadcast_shapes(shape, larger) == larger
    ]
    assert len(pairs) == 9
    for shape, larger in pairs:
        for a, b in product(patterns[shape], patterns[larger]):
            assert set(np.unique(count_agreements(a, b))) <= set(range(1, ROUNDS)), (shape, larger)


def test_signs_of_elements_of_a_tensor_are_independent() -> None:
    signs = SignPatterns(np.random.default_rng(7))
    signs.draw_tensor((100,))
    patterns = signs.draw_tensor((1000, 100))
    parallel = np.isin(count_agreements(patterns[:, :1], patterns[:, 1:]), [0, ROUNDS])
    assert parallel.mean() < 0.01  # a 128th if all signs are independent
