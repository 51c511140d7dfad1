"""Numbers converted to another element type, in the reference's own types."""

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
    """The reference's own element type for another."""
    return (np.bool_, np.int64, np.float64, np.complex128)[category(dtype)]


def convert(values: Array, dtype: Dtype) -> Array | PartlySpecified:
    """`values` in the kind of an element type; rounding to it and reduction modulo its range come later.

    Floating numbers out of the range of an integer type are open.
    """
    if category(dtype) != 1 or values.dtype.kind in "bi":
        part = values if dtype is Dtype.bool or category(dtype) == 3 else np.real(values)
        return part.astype(reference_dtype(dtype))
    whole = np.trunc(values.real)
    limits = np.iinfo(to_numpy(dtype))
    inside = (whole >= limits.min) & (whole < limits.max + 1.0)
    return PartlySpecified(np.where(inside, whole, 0).astype(np.int64), inside)
