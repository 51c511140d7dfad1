"""How many bytes bindings have."""

from __future__ import annotations

from math import prod

from diopi_engine.engine import numpy_type
from diopi_engine.manifest import Binding


def sample_bytes(binding: Binding) -> int:
    """Bytes of one element of a batch; of the whole binding if its sizes are fixed."""
    return prod(1 if size is None else size for size in binding.shape) * numpy_type(binding.dtype).itemsize
