"""Small vendors whose matrix products a run measures, for separate processes that find them by name."""

from __future__ import annotations

import os

import numpy as np
from small_vendor import Array, small_vendor, square_root


def multiply(input: Array, mat2: Array) -> Array:
    return np.matmul(input, mat2)


def end_process(input: Array, mat2: Array) -> Array:
    """End the process, as a library does that crashes."""
    os._exit(3)


def raise_error(input: Array, mat2: Array) -> Array:
    raise RuntimeError("no such kernel")


def multiply_bfloat16(input: Array, mat2: Array) -> Array:
    """Return the product of factors that are truncated to bfloat16."""
    return multiply(*((factor.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32) for factor in (input, mat2)))


exact, crashing, raising, narrow = (
    small_vendor(diopiSqrt=square_root, diopiMm=product)
    for product in (multiply, end_process, raise_error, multiply_bfloat16)
)
