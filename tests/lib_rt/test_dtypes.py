"""Element types as NumPy types, and the recognition of poison."""

import ml_dtypes
import numpy as np
import pytest

from diopi_proto.dtypes import ELEMENT_SIZE
from diopi_proto.types import Dtype
from lib_rt import is_poison, poison_of
from lib_rt.dtypes import NUMPY, from_numpy, poisoned_array, to_numpy

SIGNALING = {
    Dtype.float16: (np.uint16, 0x7C00, 0x0200),
    Dtype.bfloat16: (np.uint16, 0x7F80, 0x0040),
    Dtype.float32: (np.uint32, 0x7F800000, 0x00400000),
    Dtype.float64: (np.uint64, 0x7FF << 52, 1 << 51),
}
"""Integer type, exponent mask and quiet bit of each floating type (IEEE 754-2019, 6.2.1)."""


def test_every_type_but_unsupported_has_a_numpy_type_of_its_size() -> None:
    assert {dtype: numpy_type.itemsize for dtype, numpy_type in NUMPY.items()} == ELEMENT_SIZE
    with pytest.raises(TypeError, match="unsupported"):
        to_numpy(Dtype.unsupported)


@pytest.mark.parametrize("dtype", NUMPY, ids=lambda dtype: dtype.name)
def test_converting_to_numpy_and_back_preserves_the_type(dtype: Dtype) -> None:
    expected = Dtype.float32 if dtype is Dtype.tfloat32 else dtype
    assert from_numpy(to_numpy(dtype)) is expected


def test_unsupported_numpy_types_are_rejected() -> None:
    with pytest.raises(TypeError, match="datetime64"):
        from_numpy(np.dtype("M8[s]"))


@pytest.mark.parametrize("dtype", SIGNALING, ids=lambda dtype: dtype.name)
def test_floating_poison_is_a_signaling_nan(dtype: Dtype) -> None:
    integer, exponent, quiet = SIGNALING[dtype]
    bits = int(np.frombuffer(poison_of(dtype), integer)[0])
    assert bits & exponent == exponent
    assert bits & quiet == 0
    assert bits & (quiet - 1) != 0


@pytest.mark.parametrize("dtype", NUMPY, ids=lambda dtype: dtype.name)
def test_poison_is_detected_element_by_element(dtype: Dtype) -> None:
    values = poisoned_array(6, dtype).reshape(2, 3)
    values[1, 1:] = np.zeros((), values.dtype)
    np.testing.assert_array_equal(is_poison(values), [[True] * 3, [True, False, False]])
    np.testing.assert_array_equal(is_poison(values.T), is_poison(values).T)


def test_nans_with_other_bits_are_not_poison() -> None:
    for scalar in (np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.complex64):
        assert not is_poison(np.array([np.nan], scalar)).any()


def test_poison_is_detected_in_0d_and_empty_arrays() -> None:
    assert is_poison(poisoned_array(1, Dtype.float32).reshape(())).shape == ()
    assert is_poison(poisoned_array(0, Dtype.complex128).reshape(0, 2)).shape == (0, 2)
