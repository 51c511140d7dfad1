"""Integers whose sums and products do not overflow, but can't be computed in a floating type."""

from itertools import combinations

import numpy as np
import pytest

from diopi_proto.types import Dtype
from diopi_test.cases.exact_integers import TOO_NARROW, integers_without_overflow


def draw(domain, dtype: Dtype, count: int) -> list[int]:
    """Draw integers from a domain with a fixed seed."""
    return [int(number) for number in domain(np.random.default_rng(5), count, dtype)]


def is_represented(number: int, dtype: Dtype) -> bool:
    """Return whether the type that is too narrow for the sums represents a number."""
    return int(np.dtype(TOO_NARROW[dtype].name).type(number)) == number


@pytest.mark.parametrize("dtype", TOO_NARROW, ids=lambda dtype: dtype.name)
def test_summands_are_rounded_by_the_floating_type_and_their_sums_are_in_range(dtype: Dtype) -> None:
    numbers = draw(integers_without_overflow(terms=5), dtype, 200)
    assert not any(is_represented(number, dtype) for number in numbers)
    assert 5 * max(map(abs, numbers)) <= np.iinfo(dtype.name).max
    assert {number > 0 for number in numbers} == {True, False}


@pytest.mark.parametrize(("count", "terms"), [(2, 1), (2, 24), (5, 1)])
@pytest.mark.parametrize("dtype", TOO_NARROW, ids=lambda dtype: dtype.name)
def test_products_are_rounded_by_the_floating_type_and_their_sums_are_in_range(
    dtype: Dtype, count: int, terms: int
) -> None:
    numbers = draw(integers_without_overflow(factors=count, terms=terms), dtype, 12)
    for chosen in combinations(numbers, count):
        assert not is_represented(int(np.prod(chosen, dtype=object)), dtype)
    assert terms * max(map(abs, numbers)) ** count <= np.iinfo(dtype.name).max


@pytest.mark.parametrize("factors", [1, 2])
def test_sums_that_can_only_overflow_are_an_error(factors: int) -> None:
    with pytest.raises(ValueError, match="overflow in int32"):
        draw(integers_without_overflow(factors=factors, terms=128), Dtype.int32, 1)


@pytest.mark.parametrize("dtype", [Dtype.int8, Dtype.uint8, Dtype.bool, Dtype.float16, Dtype.complex64])
def test_other_types_get_small_integers(dtype: Dtype) -> None:
    numbers = integers_without_overflow(terms=5)(np.random.default_rng(5), 20, dtype)
    assert numbers.shape == (20,)
    assert np.abs(numbers).max() < 13
