"""Checks of shapes and sizes: JAX would broadcast tensors of the wrong shape."""

from __future__ import annotations

from collections.abc import Sequence

from jax import Array


def check_shapes(shape: Sequence[int], **tensors: Array | None) -> None:
    """Raise ValueError unless all `tensors` that are not None have this shape; the message contains their names."""
    for name, tensor in tensors.items():
        if tensor is not None and tensor.shape != tuple(shape):
            raise ValueError(f"{name} has shape {tensor.shape}, expected {tuple(shape)}")


def check_rank(rank: int, **tensors: Array) -> None:
    """Raise ValueError unless all `tensors` have this many axes; the message contains their names."""
    for name, tensor in tensors.items():
        if tensor.ndim != rank:
            raise ValueError(f"{name} has shape {tensor.shape}, expected {rank} axes")


def check_size(size: int, **tensors: Array | None) -> None:
    """Raise ValueError unless all `tensors` that are not None have this many elements, in any shape."""
    for name, tensor in tensors.items():
        if tensor is not None and tensor.size != size:
            raise ValueError(f"{name} has shape {tensor.shape}, expected {size} elements")


def check_positive(**numbers: int) -> None:
    """Raise ValueError unless all `numbers` are 1 or more; the message contains their names."""
    for name, number in numbers.items():
        if number < 1:
            raise ValueError(f"{name} is {number}, expected 1 or more")
