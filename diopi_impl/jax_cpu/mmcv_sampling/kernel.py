"""Kernels are walked one position at a time, and again for the gradient: no call holds the windows of all of them."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

Pair = tuple[int, int]
"""Along H and along W."""


def kernel_positions(sizes: Pair) -> Array:
    """The positions in a kernel of these sizes, row by row."""
    return jnp.asarray(np.indices(sizes).reshape(2, -1).T)
