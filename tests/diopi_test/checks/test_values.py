"""The results that the check of values accepts, and those that it rejects."""

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.checks.values import MAX_POOLED, check, compare
from diopi_test.execution.verdict import RoundingErrors
from diopi_test.oracle.budget import Budget, K
from diopi_test.oracle.records import Expected
from lib_rt.dtypes import to_numpy
from lib_rt.formats import format_of, ulp


def rounded(values: Any, dtype: Dtype = Dtype.float32, ulps: float = 1.0, flushed: Any = None) -> Expected:
    """Return an expected result whose budget unit is a number of ulps."""
    values = np.asarray(values, np.float64)
    return Expected(values=values, dtype=dtype, budget=Budget(ulps * ulp(values, dtype)), flushed=flushed)


def wrong_elements(actual: Any, expected: Expected) -> list[bool]:
    """Return for each element whether it exceeds its budget."""
    return compare(np.asarray(actual, to_numpy(expected.dtype)), expected).is_wrong.tolist()


def test_errors_up_to_k_units_are_accepted() -> None:
    unity, step = np.float32(1), np.spacing(np.float32(1))
    actual = [unity, unity + 7 * step, unity + 9 * step]
    assert wrong_elements(actual, rounded([1.0, 1.0, 1.0])) == [False, False, True]
    assert wrong_elements(actual, rounded([1.0, 1.0, 1.0], ulps=2.0)) == [False, False, False]


def test_ratio_and_root_mean_square() -> None:
    step = float(np.spacing(np.float32(1)))
    values = 1 + 4 * step * np.arange(20)
    actual = (values + 2 * step).astype(np.float32)
    comparison = compare(actual, rounded(values))
    assert comparison.ratio == pytest.approx(2 / K)
    assert comparison.rms == pytest.approx(2)
    assert compare(actual[:19], rounded(values[:19])).rms is None


def test_equal_elements_are_one_error() -> None:
    step = float(np.spacing(np.float32(1)))
    assert compare(np.full(1000, 1 + 2 * step, np.float32), rounded(np.ones(1000))).rms is None
    values = np.append(1 + 4 * step * np.arange(20), np.ones(1000))
    actual = np.where(values == 1, values + 2 * step, values).astype(np.float32)
    assert compare(actual, rounded(values)).rms == pytest.approx(2 / math.sqrt(20))


@pytest.mark.parametrize(
    ("dtype", "ulps", "exceeds"),
    [
        (Dtype.float16, 1, False),
        (Dtype.float16, 2, True),
        (Dtype.float32, 2, False),
        (Dtype.float32, 3, False),
        (Dtype.float32, 5, True),
        (Dtype.float64, 3, False),
        (Dtype.float64, 5, True),
    ],
)
def test_the_limit_of_the_root_mean_square_depends_on_the_type(dtype: Dtype, ulps: int, exceeds: bool) -> None:
    step = format_of(dtype).epsilon
    values = 1 + step * np.arange(30)
    actual = (values + ulps * step).astype(to_numpy(dtype))
    comparison = compare(actual, rounded(values, dtype))
    assert not comparison.is_wrong.any()
    assert comparison.errors == RoundingErrors(dtype=dtype, elements=30, rms=pytest.approx(ulps))
    assert comparison.exceeds_rms_limit is exceeds


def test_large_results_are_sampled_unless_their_errors_are_large() -> None:
    values = 1 + format_of(Dtype.float16).epsilon * (np.arange(4 * MAX_POOLED) % 1000)
    comparison = compare(values.astype(np.float16), rounded(values, Dtype.float16))
    assert comparison.errors == RoundingErrors(dtype=Dtype.float16, elements=250, rms=0)
    far = compare((values + 0.002).astype(np.float16), rounded(values, Dtype.float16))
    assert far.errors is not None
    assert far.errors.elements == 1000
    assert far.exceeds_rms_limit


@pytest.mark.parametrize(
    ("actual", "expected", "ratio"),
    [
        ([1.0], Expected(values=np.array([1.0]), dtype=Dtype.float32), None),
        ([2.0], Expected(values=np.array([1.0]), dtype=Dtype.float32), math.inf),
        ([2], Expected(values=np.array([1]), dtype=Dtype.int32), math.inf),
        ([1.0, 1.0], rounded([1.0]), math.inf),
        ([1.0], rounded([1.0]), 0.0),
    ],
)
def test_the_ratio_is_infinite_without_a_budget_and_for_another_shape(
    actual: Any, expected: Expected, ratio: float | None
) -> None:
    result = SimpleNamespace(name="out", actual=np.asarray(actual, to_numpy(expected.dtype)), expected=expected)
    slightly_off = SimpleNamespace(name="other", actual=np.float32(1 + 2**-20), expected=rounded(1.0))
    run = SimpleNamespace(
        results=list,
        values=[result],
        tensors=[],
        prototype=lookup("diopiSum"),
        case=SimpleNamespace(arguments={}, aliases={}),
    )
    assert check(run).ratio == ratio
    run.values.append(slightly_off)
    assert check(run).ratio == max(ratio or 0.0, 1.0)


@pytest.mark.parametrize("needs_validator", [False, True])
def test_results_with_several_valid_values_are_left_to_the_validator(needs_validator: bool) -> None:
    expected = replace(rounded([1.0]), needs_validator=needs_validator)
    record = SimpleNamespace(name="out", values=np.array([2.0], np.float32), shape=(1,), strides=(1,))
    run = SimpleNamespace(
        results=lambda: [(record, expected)],
        values=[],
        tensors=[],
        prototype=lookup("diopiSum"),
        case=SimpleNamespace(arguments={}, aliases={}),
    )
    assert check(run).passed is needs_validator


def test_exact_results_must_be_equal() -> None:
    expected = Expected(values=np.array([1.0, np.nan, np.inf]), dtype=Dtype.float32)
    assert wrong_elements([1.0, np.nan, np.inf], expected) == [False] * 3
    assert wrong_elements([np.nextafter(np.float32(1), 2), 0.0, -np.inf], expected) == [True] * 3


@pytest.mark.parametrize("exact", [True, False])
def test_the_sign_of_zero_counts(exact: bool) -> None:
    expected = Expected(values=np.array([0.0, -0.0]), dtype=Dtype.float32) if exact else rounded([0.0, -0.0])
    assert wrong_elements([0.0, -0.0], expected) == [False, False]
    assert wrong_elements([-0.0, 0.0], expected) == [True, True]


def test_the_sign_of_a_cancelled_zero_does_not_count() -> None:
    subnormals_in_one_ulp_of_one = 2.0**126
    expected = rounded([0.0, -0.0], ulps=subnormals_in_one_ulp_of_one)
    assert wrong_elements([-0.0, 0.0], expected) == [False, False]


def test_nan_and_infinity_must_be_equal() -> None:
    expected = rounded([np.nan, np.inf, -np.inf, 1.0])
    assert wrong_elements([np.nan, np.inf, -np.inf, 1.0], expected) == [False] * 4
    assert wrong_elements([1.0, np.nan, np.inf, np.nan], expected) == [True] * 4


def test_a_result_that_rounds_to_infinity_may_be_infinite() -> None:
    largest = float(np.finfo(np.float16).max)
    assert wrong_elements([np.inf, np.inf], rounded([largest, largest / 2], Dtype.float16)) == [False, True]
    assert wrong_elements([-np.inf], rounded([largest], Dtype.float16)) == [True]


def test_subnormal_results_may_be_flushed() -> None:
    comparison = compare(np.zeros(2, np.float32), rounded([1e-40, 1e-30]))
    assert comparison.is_wrong.tolist() == [False, True]
    assert comparison.flushed == 1


def test_flushed_results_within_their_budgets_are_no_errors() -> None:
    values = np.float64(2.0**-149) * np.arange(5, 29)
    assert compare(np.zeros(24, np.float32), rounded(values, ulps=4.0)).rms == 0


def test_subnormal_inputs_may_be_taken_for_zero() -> None:
    expected = rounded([1e39], flushed=np.array([np.inf]))
    assert wrong_elements([np.inf], expected) == [False]
    assert wrong_elements([np.inf], rounded([1e37])) == [True]


@pytest.mark.parametrize("dtype", [Dtype.int64, Dtype.bool, Dtype.uint8], ids=lambda dtype: dtype.name)
def test_integers_and_bool_are_exact(dtype: Dtype) -> None:
    expected = Expected(values=np.array([0, 1, 1], to_numpy(dtype)), dtype=dtype)
    assert wrong_elements([0, 1, 0], expected) == [False, False, True]


def test_integers_beyond_two_to_the_53_are_compared_exactly() -> None:
    expected = Expected(values=np.array([2**53 + 1]), dtype=Dtype.int64)
    assert wrong_elements([2**53], expected) == [True]


def test_complex_errors_are_measured_by_modulus() -> None:
    values = np.array([3 + 4j])
    expected = complex_numbers(values)
    step = np.spacing(np.float32(5))
    assert wrong_elements(values + 1j * step, expected) == [False]
    assert wrong_elements(values + 9j * step, expected) == [True]


def complex_numbers(values: Any) -> Expected:
    """Return an expected complex result whose budget unit is one ulp."""
    values = np.asarray(values, np.complex128)
    return Expected(values=values, dtype=Dtype.complex64, budget=Budget(ulp(values, Dtype.complex64)))


def test_the_part_beside_an_infinite_part_has_its_own_budget() -> None:
    expected, step = complex_numbers([complex(np.inf, 5.0)]), float(np.spacing(np.float32(5)))
    assert wrong_elements([complex(np.inf, 5 + step)], expected) == [False]
    assert wrong_elements([complex(np.inf, 5 + 9 * step)], expected) == [True]
    assert wrong_elements([complex(-np.inf, 5.0)], expected) == [True]


def test_a_complex_number_that_overflows_may_be_nan() -> None:
    assert wrong_elements([complex(np.nan, np.nan)] * 2, complex_numbers([4e38 + 1j, 1e38 + 1j])) == [False, True]


def test_each_part_of_an_exact_complex_number_is_compared() -> None:
    nan = np.nan
    expected = Expected(values=np.array([complex(nan, 1), complex(1, nan), complex(0.0, -0.0)]), dtype=Dtype.complex64)
    assert wrong_elements([complex(nan, 1), complex(1, nan), complex(-0.0, 0.0)], expected) == [False] * 3
    assert wrong_elements([complex(nan, 2), complex(2, nan), complex(0, nan)], expected) == [True] * 3


def test_subnormal_parts_of_complex_numbers_may_be_flushed() -> None:
    values = np.array([1e-37 + 1e-40j, 1e-40 + 1j, 1e-40 - 1e-41j])
    exact = Expected(values=values, dtype=Dtype.complex64)
    rounded = replace(exact, budget=Budget(np.full(3, 2.0**-149)))
    for expected in (exact, rounded):
        actual = np.array([1e-37 + 0j, 1j, 0j], np.complex64)
        comparison = compare(actual, expected)
        assert not comparison.is_wrong.any()
        assert comparison.flushed == 3 if expected is rounded else comparison.flushed >= 3
        assert compare(np.array([0, 1j, 1e-20], np.complex64), expected).is_wrong.tolist() == [True, False, True]
