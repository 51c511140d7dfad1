"""Conversion of floating numbers to integers, compared with recorded results of PyTorch 2.13 on x86."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from diopi_impl.conversion import convert_to_integers

NUMBERS = [-2.7, 300.0, 40000.0, 3e9, -3e9, 2.0**33 + 5, 1e20, np.inf, np.nan]
LOWEST32, LOWEST64 = -(2**31), -(2**63)

BECOME = {
    "int8": [-2, 44, 64, 0, 0, 0, 0, 0, 0],
    "uint8": [254, 44, 64, 0, 0, 5, 0, 0, 0],
    "int16": [-2, 300, -25536, 0, 0, 0, 0, 0, 0],
    "int32": [-2, 300, 40000, *[LOWEST32] * 6],
    "int64": [-2, 300, 40000, 3 * 10**9, -3 * 10**9, 2**33 + 5, *[LOWEST64] * 3],
}


@pytest.mark.parametrize("repeated", [1, 100])
@pytest.mark.parametrize("name", BECOME)
def test_numbers_beyond_the_range_of_integers_are_converted_as_in_pytorch(name: str, repeated: int) -> None:
    numbers, expected = np.tile(NUMBERS, repeated), BECOME[name] * repeated
    dtype = np.dtype(name)
    with np.errstate(all="raise"):
        assert convert_to_integers(numbers, dtype).tolist() == expected
    with jax.enable_x64(True):
        assert jax.jit(lambda x: convert_to_integers(x, dtype, jnp))(numbers).tolist() == expected


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_unsupported_memory_formats_are_rejected(dtype: str) -> None:
    numbers = np.array([-1.5, 250.0, np.inf], dtype)
    assert convert_to_integers(numbers, np.dtype(np.uint8)).tolist() == [255, 250, 0]
    assert convert_to_integers(numbers, np.dtype(np.int32)).tolist() == [-1, 250, LOWEST32]
