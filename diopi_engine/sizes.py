"""The element types of bindings and weights in NumPy, and the sizes of bindings in bytes."""

from __future__ import annotations

from math import prod
from typing import Any

import ml_dtypes
import numpy as np

from diopi_engine.manifest import Binding

Array = np.ndarray[Any, Any]
"""An array of NumPy with any shape and element type."""


def numpy_type(dtype: str) -> np.dtype[Any]:
    """Return the NumPy type for the element type of a binding or weight."""
    return np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def sample_bytes(binding: Binding) -> int:
    """Return the size in bytes of one sample of a batch, or of the whole binding if its sizes are fixed."""
    return prod(1 if size is None else size for size in binding.shape) * numpy_type(binding.dtype).itemsize
