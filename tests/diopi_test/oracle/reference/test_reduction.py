"""The references of reductions and running sums: results without elements, ties and error terms.

`diopi-test run --vendor torch_cpu` compares their values and gradients with PyTorch.
"""

import itertools
from typing import Any

import numpy as np
import pytest

from diopi_test.cases.case import ResultOverride
from diopi_test.oracle.reference import WithTerms, find_reference

Array = np.ndarray[Any, Any]


def _call(name: str, *arguments: Any, **keywords: Any) -> Any:
    """Return the plain result of a reference, without declared terms."""
    function = find_reference(name)
    assert function is not None
    result = function(*arguments, **keywords)
    return result.value if isinstance(result, WithTerms) else result


def _out(*shape: int) -> ResultOverride:
    """Return the shape of a result as the reference receives it."""
    return ResultOverride(shape=shape)


@pytest.fixture
def cube() -> Array:
    """Return a random array with three axes."""
    return np.random.default_rng(3).normal(size=(2, 3, 4))


@pytest.mark.parametrize(("values", "expected"), [([[2.0]], np.nan), ([[1.0, 2.0]], np.inf)])
def test_std_without_degrees_of_freedom_is_infinite_or_nan(values: list[list[float]], expected: float) -> None:
    with np.errstate(all="ignore"):
        np.testing.assert_equal(_call("diopiStd", np.array(values), (1,), 2, out=_out(1)), [expected])


@pytest.mark.parametrize("name", ["diopiSum", "diopiMean", "diopiAny", "diopiAll", "diopiProd"])
@pytest.mark.parametrize("shape", [(2, 4), (2, 1, 4)])
def test_rank_of_result_decides_keepdim(name: str, shape: tuple[int, ...], cube: Array) -> None:
    dim = (1,) if name in ("diopiSum", "diopiMean") else 1
    assert _call(name, cube, dim, out=_out(*shape)).shape == shape


@pytest.mark.parametrize(("name", "expected"), [("diopiMax", (5.0, 1)), ("diopiMin", (1.0, 0))])
@pytest.mark.parametrize("shape", [(), (1,)])
def test_first_of_equal_extrema_is_returned(name: str, expected: tuple[float, int], shape: tuple[int, ...]) -> None:
    value, position = _call(name, np.array([1.0, 5.0, 1.0, 5.0]), 0, out=(_out(*shape), _out(*shape)))
    assert (value.item(), position.item()) == expected
    assert value.shape == position.shape == shape


@pytest.mark.parametrize("name", ["diopiArgmax", "diopiArgmin"])
def test_nan_is_extremal(name: str) -> None:
    assert _call(name, np.array([1.0, np.nan, np.inf, -np.inf, np.nan]), None, False, out=_out(1)) == [1]


@pytest.mark.parametrize("dim", [0, -1, None])
def test_a_number_has_one_axis(dim: int | None) -> None:
    number = np.array(3.0)
    assert _call("diopiProd", number, dim, out=_out()) == 3
    assert _call("diopiArgmax", number, dim, True, out=_out()) == 0
    assert _call("diopiSum", number, () if dim is None else (dim,), out=_out()) == 3


def test_reductions_of_no_elements_return_the_neutral_element() -> None:
    none = np.zeros((0, 2))
    with np.errstate(all="ignore"):
        np.testing.assert_equal(_call("diopiMean", none, (0,), out=_out(2)), [np.nan] * 2)
    np.testing.assert_equal(_call("diopiSum", none, (0,), out=_out(2)), [0, 0])
    np.testing.assert_equal(_call("diopiProd", none, 0, out=_out(2)), [1, 1])
    np.testing.assert_equal(_call("diopiAny", none, 0, out=_out(2)), [False] * 2)
    np.testing.assert_equal(_call("diopiAll", none, 0, out=_out(2)), [True] * 2)


def test_integers_wrap_in_int64() -> None:
    large = np.array([2**62, 2**62, 5])
    assert _call("diopiSum", large, (), out=_out()) == -(2**63) + 5
    assert _call("diopiSum", np.ones(300, bool), (), out=_out()) == 300


def test_terms_of_a_sum_are_those_of_its_values_and_of_its_partial_sums() -> None:
    function = find_reference("diopiSum")
    assert function is not None
    values = np.array([3.0, -3.0, 3.0, -1.0])
    partial = [np.square(np.cumsum(order)).sum() for order in itertools.permutations(values)]
    expected = np.hypot(np.abs(values).sum() / np.sqrt(4), np.sqrt(np.mean(partial) / 12))
    np.testing.assert_allclose(function(values, (0,), out=_out()).terms, expected)


def test_each_running_sum_has_the_terms_of_the_sum_so_far() -> None:
    total, running = find_reference("diopiSum"), find_reference("diopiCumsum")
    assert total is not None
    assert running is not None
    values = np.array([1.0, -1.0, 2.0, -1.5])
    expected = [total(values[: n + 1], (0,), out=_out()).terms for n in range(4)]
    np.testing.assert_allclose(running(values, 0).terms, expected)
