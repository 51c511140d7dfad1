"""The references of the complex functions: parts are carried over, polar coordinates are those of the plane."""

import numpy as np
from references import call


def test_complex_keeps_infinite_and_nan_parts_separate() -> None:
    number = call("diopiComplex", np.array([np.inf, 1.0]), np.array([1.0, np.nan]))
    assert number.real.tolist() == [np.inf, 1.0]
    assert number.imag[0] == 1.0
    assert np.isnan(number.imag[1])


def test_conjugation_negates_zeros() -> None:
    assert np.signbit(call("diopiConj", np.array([1 + 0j])).imag).tolist() == [True]
    assert call("diopiConj", np.array([3])).tolist() == [3]


def test_polar_is_the_exponential_form() -> None:
    rng = np.random.default_rng(3)
    radius, angle = rng.normal(size=5), rng.normal(0, 4, (4, 1))
    np.testing.assert_allclose(call("diopiPolar", radius, angle), radius * np.exp(1j * angle), rtol=1e-14)


def test_real_and_imag_return_the_parts_of_complex() -> None:
    real, imag = np.array([[1.0, -2.0]]), np.array([[3.0], [0.5]])
    number = call("diopiComplex", real, imag)
    assert call("diopiReal", number).tolist() == [[1, -2], [1, -2]]
    assert call("diopiImag", number).tolist() == [[3, 3], [0.5, 0.5]]
