"""Conversion of numbers to another element type, in the types in which references compute.

These types are float64, complex128, int64 and bool.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_proto.dtypes import category
from diopi_proto.types import Dtype
from diopi_test.oracle.reference import PartlySpecified
from lib_rt.dtypes import to_numpy

Array = NDArray[Any]


def reference_dtype(dtype: Dtype) -> Any:
    """Return the NumPy type in which references compute values of an element type."""
    return (np.bool_, np.int64, np.float64, np.complex128)[category(dtype)]


def convert(values: Array, dtype: Dtype) -> Array | PartlySpecified:
    """Convert `values` to the type in which references compute values of type `dtype`.

    The caller rounds the numbers to `dtype`, or reduces integers modulo its range. Floating-point numbers out of the
    range of an integer type have an unspecified result.

    Args:
        values: an array in a type in which references compute.
        dtype: the element type to convert to.

    Returns:
        An array of type `reference_dtype(dtype)`; `PartlySpecified` if floating-point numbers become integers.
    """
    if category(dtype) != 1 or values.dtype.kind in "bi":
        part = values if dtype is Dtype.bool or category(dtype) == 3 else np.real(values)
        return part.astype(reference_dtype(dtype))
    integers = np.trunc(values.real)
    limits = np.iinfo(to_numpy(dtype))
    inside = (integers >= limits.min) & (integers < limits.max + 1.0)
    return PartlySpecified(np.where(inside, integers, 0).astype(np.int64), inside)
