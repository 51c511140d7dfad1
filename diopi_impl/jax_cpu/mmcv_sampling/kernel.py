"""Positions in a kernel, over which operators loop so that no call needs memory for all windows."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

Pair = tuple[int, int]
"""Values along H and along W."""


def kernel_positions(sizes: Pair) -> Array:
    """Return the positions in a kernel of these sizes, row by row: (n, 2)."""
    return jnp.asarray(np.indices(sizes).reshape(2, -1).T)
