"""The references of pooling: ties, NaN and open positions.

`diopi-test run --vendor torch_cpu` compares their values and gradients with PyTorch.
"""

import numpy as np
import pytest
from references import call_reference, call_with_remarks


@pytest.fixture
def rng() -> np.random.Generator:
    """Return a generator of random numbers with a fixed seed."""
    return np.random.default_rng(5)


@pytest.mark.parametrize(
    ("ceil_mode", "include_pad", "expected"),
    [
        # windows of 1 2 3 4 5 6 padded to 0 1 2 3 4 5 6 0, three long, every second
        (False, True, [3 / 3, 9 / 3, 15 / 3]),
        (False, False, [3 / 2, 9 / 3, 15 / 3]),
        (True, True, [3 / 3, 9 / 3, 15 / 3, 6 / 2]),
        (True, False, [3 / 2, 9 / 3, 15 / 3, 6 / 1]),
    ],
)
def test_average_pooling_divides_by_the_counted_positions(
    ceil_mode: bool, include_pad: bool, expected: list[float]
) -> None:
    x = np.arange(1.0, 7).reshape(1, 6)
    actual = call_reference("diopiAvgPool1d", x, (3,), (2,), (1,), ceil_mode, include_pad)
    np.testing.assert_allclose(actual, [expected])


def test_a_last_window_that_starts_in_the_padding_is_dropped() -> None:
    x = np.arange(4.0).reshape(1, 4)
    np.testing.assert_array_equal(call_reference("diopiMaxPool1d", x, (2,), (3,), (1,), (1,), True), [[0, 3]])


@pytest.mark.parametrize(("row", "place"), [([1, np.nan, 2, np.nan, 3], 3), ([np.nan, 9, 1, 1, 1], 0)])
def test_last_nan_of_a_window_wins(row: list[float], place: int) -> None:
    x = np.array([[row]])
    assert call_reference("diopiMaxPool1dWithIndices", x, (5,), (), (0,), (1,), False)[1].item() == place
    assert call_reference("diopiAdaptiveMaxPool1dWithIndices", x, (1,))[1].item() == place


def test_first_maximum_wins_and_nan_precedes_all_numbers() -> None:
    x = np.array([[[1, 3], [3, 2]]], float)
    assert call_reference("diopiMaxPool2dWithIndices", x, (2, 2), (), (0, 0), (1, 1), False)[1].item() == 1
    x[0, 1, 1] = np.nan
    assert call_reference("diopiMaxPool2dWithIndices", x, (2, 2), (), (0, 0), (1, 1), False)[1].item() == 3
    lost = np.full((1, 3), -np.inf)
    assert call_reference("diopiMaxPool1dWithIndices", lost, (3,), (), (1,), (1,), False)[1].item() == 0


def test_position_in_a_3d_window_of_minus_infinities_is_open() -> None:
    """PyTorch's kernel for channels-last tensors returns the position of the window's first plane."""
    x = np.full((1, 4, 2, 2), -np.inf)
    x[0, 0, 1, 1] = 5
    maxima, places = call_with_remarks("diopiMaxPool3dWithIndices", x, (2, 2, 2), (), (0, 0, 0), (1, 1, 1), False)
    assert maxima.ravel().tolist() == [5, -np.inf]
    assert places.specified.ravel().tolist() == [True, False]
    assert places.value.ravel()[0] == 3


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_pool_equals_the_separate_pooling_functions(rank: int, rng: np.random.Generator) -> None:
    x = rng.normal(size=(2, 6, 5, 4)[: rank + 1])
    ones, twos = (1,) * rank, (2,) * rank
    sliding, lists = (twos, ones, ones, ones, False), (twos, ones, ones, ones)
    for actual, expected in [
        (("max", *lists, False, True, False, ()), call_reference(f"diopiMaxPool{rank}d", x, *sliding)),
        (("max", *lists, False, True, True, twos), call_reference(f"diopiAdaptiveMaxPool{rank}d", x, twos)),
        (("avg", *lists, False, True, True, twos), call_reference(f"diopiAdaptiveAvgPool{rank}d", x, twos)),
    ]:
        np.testing.assert_array_equal(call_reference(f"diopiPool{rank}d", x, *actual), expected)
    excluding = call_reference(f"diopiPool{rank}d", x, "avg", *lists, False, True, False, ())
    divisors = (None,) if rank > 1 else ()
    np.testing.assert_array_equal(
        excluding, call_reference(f"diopiAvgPool{rank}d", x, twos, ones, ones, False, False, *divisors)
    )
