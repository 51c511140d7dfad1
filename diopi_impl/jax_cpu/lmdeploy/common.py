"""How the engine's kernels are registered, and what is checked of their arguments."""

from __future__ import annotations

from functools import partial

from jax import Array

from diopi_impl.jax_cpu import vendor
from diopi_impl.jax_cpu.jit import compiled
from diopi_impl.jax_cpu.sizes import check_shapes
from diopi_impl.workspace_queries import answer_workspace_queries

compile_for_all_steps = partial(compiled, traced=["step"])
"""The adapter of functions whose `step` is an input of their program, which is one for all steps."""

implements_workspace_free = partial(vendor.implements, adapt=answer_workspace_queries(compiled))
"""Registers an implementation of a function that asks for sizes; it needs no workspace and returns no sizes."""

implements_workspace_free_step = partial(vendor.implements, adapt=answer_workspace_queries(compile_for_all_steps))
"""The same of a function with a `step`."""

implements_step = partial(vendor.implements, adapt=compile_for_all_steps)
"""Registers an implementation of a function with a `step`."""


def check_number(name: str, actual: int, expected: int) -> None:
    """ValueError unless a number is the size of the axis it stands for."""
    if actual != expected:
        raise ValueError(f"{name} is {actual}, expected {expected}")


def check_batch(batch_size: int, first: Array, **tensors: Array | None) -> None:
    """ValueError unless the tensors have an element a sequence, or `first` a row a sequence."""
    check_number("batch_size", batch_size, first.shape[0])
    check_shapes((batch_size,), **tensors)


def time_major(ids: Array, batch_size: int) -> Array:
    """A table of token ids with a row a time and a column a sequence, whatever its shape."""
    return ids.reshape(ids.size // max(batch_size, 1), batch_size)
