"""Number formats agree with the limits of NumPy and ml_dtypes."""

import ml_dtypes
import numpy as np
import pytest

from diopi_proto.types import Dtype
from lib_rt.dtypes import to_numpy
from lib_rt.formats import FORMATS, flush_to_zero, format_of, is_subnormal, ulp


@pytest.mark.parametrize("dtype", FORMATS, ids=lambda dtype: dtype.name)
def test_formats_have_the_limits_of_ml_dtypes(dtype: Dtype) -> None:
    limits, form = ml_dtypes.finfo(to_numpy(dtype)), FORMATS[dtype]
    assert form.epsilon == float(limits.eps)
    assert form.tiny == float(limits.smallest_normal)
    assert form.subnormal == float(limits.smallest_subnormal)
    assert form.largest == float(limits.max)


@pytest.mark.parametrize("dtype", [Dtype.float32, Dtype.float64, Dtype.float16], ids=lambda dtype: dtype.name)
def test_ulp_is_numpys_spacing(dtype: Dtype) -> None:
    kind = to_numpy(dtype)
    values = np.array([1.0, 1.5, -3.75, 1e-3, 0.0, 6e4, np.finfo(kind).smallest_subnormal], kind)
    assert np.array_equal(ulp(values, dtype), np.spacing(np.abs(values)).astype(np.float64))


def test_ulp_of_a_value_between_numbers_is_that_of_the_lower_number() -> None:
    assert ulp(1.0 + 2**-30, Dtype.float32) == 2.0**-23
    assert ulp(np.nextafter(2.0, 0), Dtype.bfloat16) == 2.0**-7


def test_ulp_of_what_is_not_finite_is_nan() -> None:
    assert np.isnan(ulp([np.inf, -np.inf, np.nan], Dtype.float32)).all()


def test_ulp_of_a_complex_number_is_that_of_its_modulus() -> None:
    assert ulp(3 + 4j, Dtype.complex64) == np.spacing(np.float32(5))


def test_overflow_is_where_rounding_gives_infinity() -> None:
    form = format_of(Dtype.float16)
    with np.errstate(over="ignore"):
        assert np.isinf(np.float16(form.overflow))
        assert np.float16(np.nextafter(form.overflow, 0)) == form.largest


def test_subnormal_numbers_are_recognized() -> None:
    values = [0.0, 2.0**-14, 2.0**-15, -(2.0**-24)]
    assert is_subnormal(values, Dtype.float16).tolist() == [False, False, True, True]
    assert not is_subnormal(values, Dtype.float32).any()


@pytest.mark.parametrize("dtype", [*FORMATS, Dtype.complex64, Dtype.complex128], ids=lambda dtype: dtype.name)
def test_flush_to_zero_replaces_only_subnormal_numbers_and_keeps_their_signs(dtype: Dtype) -> None:
    form, kind = format_of(dtype), to_numpy(dtype)
    values = np.array([1.0, form.tiny, form.subnormal, -form.subnormal, -0.0, np.nan, -np.inf], np.float64).astype(kind)
    expected = np.array([1.0, form.tiny, 0.0, -0.0, -0.0, np.nan, -np.inf]).astype(kind)
    flushed = flush_to_zero(values, dtype)
    assert flushed.dtype == kind
    assert flushed.tobytes() == expected.tobytes()


def test_flush_to_zero_flushes_the_parts_of_a_complex_number_separately() -> None:
    assert flush_to_zero(1e-40 + 1j, Dtype.complex64) == 1j
