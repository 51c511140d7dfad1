"""The floating formats of the interface: precision, range, and the spacing of their numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_proto.dtypes import COMPONENT, is_complex, is_floating
from diopi_proto.types import Dtype

FloatArray = NDArray[np.float64]
"""A NumPy array of float64."""


@dataclass(frozen=True)
class Format:
    """A binary floating format (IEEE 754-2019, clause 3).

    Attributes:
        precision: Significant bits, including the hidden bit.
        min_exponent: Exponent of the smallest normal number.
        max_exponent: Exponent of the largest finite number.
    """

    precision: int
    min_exponent: int
    max_exponent: int

    @property
    def epsilon(self) -> float:
        """Return the distance from 1 to the next larger number."""
        return 2.0 ** (1 - self.precision)

    @property
    def tiny(self) -> float:
        """Return the smallest positive normal number."""
        return 2.0**self.min_exponent

    @property
    def subnormal(self) -> float:
        """Return the smallest positive number."""
        return float(np.ldexp(1.0, self.min_exponent - self.precision + 1))

    @property
    def largest(self) -> float:
        """Return the largest finite number."""
        return (2.0 - self.epsilon) * 2.0**self.max_exponent

    @property
    def overflow(self) -> float:
        """Return the smallest magnitude that rounds to infinity; infinity for float64."""
        return float(np.ldexp(2.0 - self.epsilon / 2, self.max_exponent)) if self.precision < 53 else np.inf


FORMATS = {
    Dtype.float16: Format(11, -14, 15),
    Dtype.bfloat16: Format(8, -126, 127),
    Dtype.float32: Format(24, -126, 127),
    Dtype.float64: Format(53, -1022, 1023),
}
"""The floating-point format of each real type."""


def is_inexact(dtype: Dtype) -> bool:
    """Return whether `dtype` is a floating type, real or complex."""
    return is_floating(dtype) or is_complex(dtype)


def format_of(dtype: Dtype) -> Format:
    """Return the format of a floating dtype, or of the parts of a complex dtype; raise KeyError for other dtypes."""
    return FORMATS[COMPONENT.get(dtype, dtype)]


def ulp(values: Any, dtype: Dtype) -> FloatArray:
    """Return the distance between neighboring numbers of `dtype` at |values|.

    Args:
        values: Real or complex numbers.
        dtype: A floating or complex type.

    Returns:
        The distances. At 0, the distance is the smallest positive number; for values that are not finite, it is NaN.
        For a complex number with one finite part, it is the distance at that part.
    """
    form = format_of(dtype)
    magnitude = np.abs(np.asarray(values)).astype(np.float64)
    if np.iscomplexobj(values):
        parts = np.abs([np.real(values), np.imag(values)])
        magnitude = np.where(np.isfinite(magnitude), magnitude, np.where(np.isfinite(parts[0]), *parts))
    exponent = np.frexp(np.maximum(magnitude, form.tiny))[1]  # frexp's exponent is one more than IEEE 754's
    return np.where(np.isfinite(magnitude), np.ldexp(1.0, exponent - form.precision), np.nan)


def is_subnormal(values: Any, dtype: Dtype) -> NDArray[np.bool_]:
    """Return where `values` are nonzero and smaller than the normal numbers of `dtype`."""
    magnitude = np.abs(np.asarray(values)).astype(np.float64)
    subnormal: NDArray[np.bool_] = (magnitude > 0) & (magnitude < format_of(dtype).tiny)
    return subnormal


def flush_to_zero(values: Any, dtype: Dtype) -> NDArray[Any]:
    """Return a copy of `values` with subnormal numbers of `dtype` replaced by zeros of the same sign.

    The real and the imaginary part of a complex number are flushed separately.
    """
    flushed: NDArray[Any] = np.array(values)
    for part in (flushed.real, flushed.imag) if np.iscomplexobj(flushed) else (flushed,):
        np.multiply(part, part.dtype.type(0), out=part, where=is_subnormal(part, dtype))
    return flushed
