"""Vendors with a square root and a matrix product, for tests of how a run measures a vendor's arithmetic.

A run measures the matrix product to check the arithmetic that the vendor declares. Tests start these vendors in other
processes as `measured_vendors:exact`, `:crashing`, `:raising` and `:narrow`.
"""

from __future__ import annotations

import os

import numpy as np
from small_vendor import Array, small_vendor, square_root


def multiply(input: Array, mat2: Array) -> Array:
    """Return the matrix product in the element type of the factors."""
    return np.matmul(input, mat2)


def end_process(input: Array, mat2: Array) -> Array:
    """End the process, as a crash in a library does."""
    os._exit(3)


def raise_error(input: Array, mat2: Array) -> Array:
    """Fail as if there were no kernel for the product."""
    raise RuntimeError("no such kernel")


def multiply_bfloat16(input: Array, mat2: Array) -> Array:
    """Return the product of float32 factors after truncating each factor to the precision of bfloat16."""
    return multiply(*((factor.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32) for factor in (input, mat2)))


# Vendors with a square root and a matrix product; they differ in the product.
exact, crashing, raising, narrow = (
    small_vendor(diopiSqrt=square_root, diopiMm=product)
    for product in (multiply, end_process, raise_error, multiply_bfloat16)
)
