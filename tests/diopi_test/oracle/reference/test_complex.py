"""The references of the complex functions: infinite parts, NaN and signs of zeros.

`diopi-test run --vendor torch_cpu` compares their values and gradients with PyTorch.
"""

import numpy as np
from references import call_reference


def test_complex_keeps_infinite_and_nan_parts_separate() -> None:
    number = call_reference("diopiComplex", np.array([np.inf, 1.0]), np.array([1.0, np.nan]))
    assert number.real.tolist() == [np.inf, 1.0]
    assert number.imag[0] == 1.0
    assert np.isnan(number.imag[1])


def test_conjugation_negates_zeros() -> None:
    assert np.signbit(call_reference("diopiConj", np.array([1 + 0j])).imag).tolist() == [True]
    assert call_reference("diopiConj", np.array([3])).tolist() == [3]
