"""Bounds of measured errors: rounding up, ranges that share a bound, and ranges that meet at 0."""

import numpy as np
import pytest

from diopi_impl.numerics import ErrorBound
from diopi_proto.types import Dtype
from diopi_test.fingerprint.numerics.error_ranges import join_signs, round_up, round_up_ulp
from diopi_test.fingerprint.numerics.errors import FunctionErrors, Sample, find_bounds
from diopi_test.fingerprint.samples import SIZE, sweep
from lib_rt.formats import ulp


@pytest.mark.parametrize(("size", "rounded"), [(1.2, 2), (2.005, 2), (2.3, 3), (17, 24), (128, 128)])
def test_errors_in_ulp_are_rounded_up(size: float, rounded: float) -> None:
    assert round_up_ulp(size) == rounded


@pytest.mark.parametrize(("size", "rounded"), [(1e-3, 1.1e-3), (4.8e-4, 4.9e-4), (9.85e-6, 1.1e-5), (0.042, 0.043)])
def test_other_errors_are_enlarged_and_rounded_up_to_two_digits(size: float, rounded: float) -> None:
    assert round_up(size) == pytest.approx(rounded, rel=1e-12)
    assert round_up(size) >= 1.02 * size


def measure(ulps: float = 0.0, relative: float = 0.0, absolute: float = 0.0, reach: float = np.inf) -> FunctionErrors:
    """Measure the identity with errors for arguments up to `reach`, the largest errors in one of four numbers."""
    sample = sweep(Dtype.float32)
    numbers = np.where(np.isfinite(sample), sample, np.float32(1)).astype(np.float64)
    size = ulps * ulp(numbers, Dtype.float32) + relative * np.abs(numbers) + absolute
    share = np.array([1.0, 0.9, -0.95, -1.0])[np.arange(SIZE) % 4]
    return find_bounds("erf", Sample(numbers, numbers + np.where(np.abs(numbers) < reach, size, 0) * share, numbers))


def test_errors_up_to_one_ulp_need_no_bound() -> None:
    assert measure(ulps=1.0).bounds == ()


def test_small_errors_have_one_bound_without_range() -> None:
    assert measure(ulps=3.9).bounds == (ErrorBound(ulp=4),)


def test_equal_relative_errors_have_one_bound() -> None:
    assert measure(relative=2.0**-11).bounds == (ErrorBound(relative=5e-4),)


def test_absolute_errors_end_where_they_are_less_than_an_ulp() -> None:
    (bound,) = measure(absolute=3e-7).bounds
    assert bound.absolute == pytest.approx(3.1e-7)
    assert (bound.minimum, bound.maximum) == (-4, 4)


def test_a_bound_covers_only_the_range_with_errors() -> None:
    assert measure(ulps=30, reach=8.0).bounds == (ErrorBound(ulp=32, minimum=-8, maximum=8),)


def test_errors_that_are_too_large_are_not_declared() -> None:
    found = measure(relative=0.2, reach=16.0)
    assert all(bound.absolute < 1e-36 for bound in found.bounds)  # next to the subnormal numbers
    assert "too large to be declared from -16 to" in found.undeclared


def test_an_early_overflow_is_not_an_error() -> None:
    numbers = np.array([1.0, 3e38, -3.2e38])
    found = find_bounds("sinh", Sample(numbers, np.array([1.0, np.inf, -np.inf]), numbers))
    assert (found.ulp, found.early_overflow) == (0, 3e38)
    assert str(found).endswith("infinity from 3e+38 on")


def test_bounds_in_different_measures_are_not_joined_at_zero() -> None:
    negative, positive = ErrorBound(ulp=16, maximum=0), ErrorBound(relative=1e-4, minimum=0)
    assert join_signs((negative, positive)) == (negative, positive)
    assert join_signs((negative, ErrorBound(ulp=24, minimum=0))) == (ErrorBound(ulp=24),)
