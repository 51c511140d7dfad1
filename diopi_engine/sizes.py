"""The sizes of bindings in bytes."""

from __future__ import annotations

from math import prod

from diopi_engine.engine import numpy_type
from diopi_engine.manifest import Binding


def sample_bytes(binding: Binding) -> int:
    """Return the size in bytes of one sample of a batch, or of the whole binding if its sizes are fixed."""
    return prod(1 if size is None else size for size in binding.shape) * numpy_type(binding.dtype).itemsize
