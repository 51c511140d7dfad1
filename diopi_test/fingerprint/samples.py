"""The numbers that probes use: all numbers of the half-precision types, and a fixed sample of the others."""

from __future__ import annotations

import numpy as np

from diopi_proto.dtypes import ELEMENT_SIZE, half
from diopi_proto.types import Dtype
from lib_rt.dtypes import Array, to_numpy

SIZE = 2**16
"""The number of elements of a sample, which is the number of bit patterns of a half-precision type."""

_SCRAMBLE = 0x9E3779B97F4A7C15
"""The multiplier of Fibonacci hashing: 2^64 / golden ratio (Knuth, The Art of Computer Programming 3, 6.4)."""


def sweep(dtype: Dtype) -> Array:
    """Return every number of a half-precision type, in the order of their bits, or a sample of a wider type.

    The leading 16 bits of the numbers of a sample are all different, and the remaining bits look random. NaN and
    infinities are included.

    Args:
        dtype: a floating-point type.

    Returns:
        `SIZE` numbers.
    """
    leading = np.arange(SIZE, dtype=np.uint64)
    bits = 8 * ELEMENT_SIZE[dtype]
    scrambled = (leading * np.uint64(_SCRAMBLE)) >> np.uint64(80 - bits) if dtype not in half else np.uint64(0)
    return (leading << np.uint64(bits - 16) | scrambled).astype(f"u{ELEMENT_SIZE[dtype]}").view(to_numpy(dtype))


def significands(dtype: Dtype, seed: int) -> Array:
    """Return `SIZE` numbers of a floating-point type in [1, 2) whose fractions look random and depend on `seed`."""
    precision = np.finfo(to_numpy(dtype)).nmant if dtype is not Dtype.bfloat16 else 7
    counted = np.arange(1, SIZE + 1, dtype=np.uint64) * np.uint64(2 * seed + 1)
    fraction = (counted * np.uint64(_SCRAMBLE)) >> np.uint64(64 - precision)
    return (1 + fraction.astype(np.float64) * 2.0**-precision).astype(to_numpy(dtype))
