"""Checks of arguments, and the layout of token IDs, for the LMDeploy kernels."""

from __future__ import annotations

from jax import Array

from diopi_impl.jax_cpu.sizes import check_shapes


def check_number(name: str, actual: int, expected: int) -> None:
    """Raise ValueError unless the argument `name` has the expected value."""
    if actual != expected:
        raise ValueError(f"{name} is {actual}, expected {expected}")


def check_batch(batch_size: int, first: Array, **tensors: Array | None) -> None:
    """Raise ValueError unless `first` has a row per sequence, and the tensors an element per sequence."""
    check_number("batch_size", batch_size, first.shape[0])
    check_shapes((batch_size,), **tensors)


def time_major(ids: Array, batch_size: int) -> Array:
    """Return a table of token IDs as [time steps, sequences]."""
    return ids.reshape(ids.size // max(batch_size, 1), batch_size)
