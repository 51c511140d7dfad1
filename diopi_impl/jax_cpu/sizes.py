"""Which shapes the tensors of a call must have: JAX broadcasts what is due in another size."""

from __future__ import annotations

from collections.abc import Sequence

from jax import Array


def check_shapes(shape: Sequence[int], **tensors: Array | None) -> None:
    """Raise ValueError unless all `tensors` that are given have this shape; their names are for the message."""
    for name, tensor in tensors.items():
        if tensor is not None and tensor.shape != tuple(shape):
            raise ValueError(f"{name} has shape {tensor.shape}, expected {tuple(shape)}")


def check_size(size: int, **tensors: Array | None) -> None:
    """Raise ValueError unless all `tensors` that are given have this many elements, in whatever shape."""
    for name, tensor in tensors.items():
        if tensor is not None and tensor.size != size:
            raise ValueError(f"{name} has shape {tensor.shape}, expected {size} elements")
