"""The errors of the elementary functions of jax_cpu, which must not contradict IEEE arithmetic."""

import jax
import numpy as np
import pytest
from scipy import special

from diopi_impl import Numerics, find_vendor
from diopi_impl.jax_cpu.pointwise import FLOATING
from diopi_test.fingerprint.numerics import find_contradictions, measure_numerics

EXACT = {"diopiSinh": np.sinh, "diopiCosh": np.cosh, "diopiErfinv": special.erfinv}


@pytest.mark.slow
def test_measurements_of_the_reference_vendor_do_not_contradict_ieee_arithmetic() -> None:
    assert find_contradictions(measure_numerics(find_vendor("jax_cpu")), Numerics()) == []


@pytest.mark.parametrize(
    ("name", "limit"), [("diopiSinh", 89.4), ("diopiSinh", 710.4), ("diopiCosh", 89.4), ("diopiCosh", 710.4)]
)
def test_results_next_to_the_overflow_are_exact_to_four_ulp(name: str, limit: float) -> None:
    dtype = np.float32 if limit < 100 else np.float64
    x = np.linspace(-limit, limit, 20_001).astype(dtype)
    with jax.enable_x64(True):
        result = np.asarray(jax.jit(FLOATING[name])(x))
    exact = EXACT[name](x.astype(np.float64)).astype(dtype)
    assert result.dtype == dtype
    assert np.isfinite(exact).all()
    assert (np.abs(result - exact) <= 4 * np.spacing(np.abs(exact))).all()


def test_the_inverse_of_erf_is_exact_next_to_one() -> None:
    x = (1 - np.float32(2) ** -24 * np.arange(1, 5000, dtype=np.float32)).astype(np.float32)
    with jax.enable_x64(True):
        result = np.asarray(jax.jit(FLOATING["diopiErfinv"])(np.concatenate([x, -x])))
    exact = special.erfinv(np.concatenate([x, -x]).astype(np.float64))
    assert (np.abs(result - exact) <= np.spacing(np.abs(exact).astype(np.float32))).all()


def test_sinh_of_small_numbers_keeps_them_and_the_sign_of_zero() -> None:
    x = np.array([0.0, -0.0, 1e-30, -1e-30, np.inf, -np.inf, np.nan], np.float32)
    with jax.enable_x64(True):
        result = np.asarray(jax.jit(FLOATING["diopiSinh"])(x))
    np.testing.assert_array_equal(result, x)
    assert np.signbit(result[:2]).tolist() == [False, True]
