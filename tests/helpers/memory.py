"""Determine the memory that a program of jax_cpu needs from XLA's analysis, without running the program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

MAX_RATIO = 10
"""The maximum memory of a call as a multiple of the memory of its arguments and results, including these."""


def shape(*sizes: int, dtype: Any = np.float32) -> jax.ShapeDtypeStruct:
    """Return the description of an array for compilation."""
    return jax.ShapeDtypeStruct(sizes, dtype)


def assert_little_memory(function: Callable[..., Any], *arrays: Any) -> None:
    """Assert that the compiled function needs at most `MAX_RATIO` times the memory of its arrays."""
    with jax.enable_x64(True):
        memory = jax.jit(function).lower(*arrays).compile().memory_analysis()
    assert memory is not None
    argument_bytes = memory.argument_size_in_bytes + memory.output_size_in_bytes
    assert memory.temp_size_in_bytes + argument_bytes <= MAX_RATIO * argument_bytes, (
        f"{memory.temp_size_in_bytes} bytes beside {argument_bytes}"
    )
