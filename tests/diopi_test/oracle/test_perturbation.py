"""The signs with which inputs are moved: what one input's rounding undoes in one round it does not undo in another."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from diopi_test.oracle.perturbation import ROUNDS, Signs

SHAPES = [(), (70,), (90, 1), (90, 70), (3, 90, 70)]
TENSORS = 8


def agreeing(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> NDArray[np.integer]:
    """In how many rounds two tensors' elements go the same way."""
    return ROUNDS - np.bitwise_count(one ^ other)


def test_tensors_of_one_shape_agree_in_half_of_the_rounds() -> None:
    signs = Signs(np.random.default_rng(3))
    drawn = [signs.of_tensor((50, 4)) for _ in range(TENSORS)]
    assert all((agreeing(one, other) == ROUNDS // 2).all() for one, other in combinations(drawn, 2))


def test_at_no_element_do_those_that_broadcast_agree_always_or_never() -> None:
    signs = Signs(np.random.default_rng(5))
    drawn = {shape: [signs.of_tensor(shape) for _ in range(TENSORS)] for shape in SHAPES}
    pairs = [(one, other) for one, other in combinations(SHAPES, 2) if np.broadcast_shapes(one, other) == other]
    assert len(pairs) == 9
    for one, other in pairs:
        for a, b in product(drawn[one], drawn[other]):
            assert set(np.unique(agreeing(a, b))) <= set(range(1, ROUNDS)), (one, other)


def test_elements_of_one_tensor_have_nothing_to_do_with_each_other() -> None:
    signs = Signs(np.random.default_rng(7))
    signs.of_tensor((100,))
    drawn = signs.of_tensor((1000, 100))
    parallel = np.isin(agreeing(drawn[:, :1], drawn[:, 1:]), [0, ROUNDS])
    assert parallel.mean() < 0.01  # a 128th, were none of them drawn with an eye on others
