"""Products of matrices. Each program (instance of the kernel) computes a tile of BLOCK × BLOCK elements of the result.

Strides are arguments of the kernel, so that no matrix has to be copied. A function returns NotImplemented for calls
that the kernel does not support, which PyTorch then serves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from triton_library.registration import COMPUTE_TYPES

BLOCK = 32
"""The height, which is also the width, of a tile."""


@triton.jit
def product_kernel(
    a_ptr, b_ptr, result_ptr, rows, columns,
    a_batch, a_row, a_column, b_batch, b_row, b_column,
    INNER: tl.constexpr, ACCUMULATOR: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Compute a tile of the product of two matrices a and b of a batch.

    The result has the shape (batches, rows, columns), and INNER is the length of the summed axis. `a_batch`, `a_row`
    and `a_column` are the strides of a. The products are added up in the type ACCUMULATOR.
    """
    batch = tl.program_id(0).to(tl.int64)
    row = tl.program_id(1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)[:, None]
    column = tl.program_id(2).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)[None, :]
    total = tl.zeros([BLOCK, BLOCK], ACCUMULATOR)
    for first in range(0, INNER, BLOCK):
        a_inner = first + tl.arange(0, BLOCK)[None, :]
        b_inner = first + tl.arange(0, BLOCK)[:, None]
        a_exists, b_exists = (row < rows) & (a_inner < INNER), (b_inner < INNER) & (column < columns)
        a = tl.load(a_ptr + batch * a_batch + row * a_row + a_inner * a_column, a_exists, other=0)
        b = tl.load(b_ptr + batch * b_batch + b_inner * b_row + column * b_column, b_exists, other=0)
        total = tl.dot(a, b, total, input_precision="ieee", out_dtype=ACCUMULATOR)
    offsets = batch * rows * columns + row * columns + column
    tl.store(result_ptr + offsets, total, (row < rows) & (column < columns))


def mm(a: Tensor, b: Tensor, **options: Any) -> Tensor:
    """Return the product of two matrices; the options are those of `bmm`."""
    if a.ndim != 2 or b.ndim != 2:
        return NotImplemented  # PyTorch reports the error
    product = bmm(a[None], b[None], **options)
    return product if product is NotImplemented else product[0]


def bmm(a: Tensor, b: Tensor, *, accumulators: Mapping[torch.dtype, Any] = COMPUTE_TYPES) -> Tensor:
    """Return the products of two batches of matrices.

    Args:
        a: the first factors, of shape (batches, rows, inner).
        b: the second factors, of shape (batches, inner, columns).
        accumulators: the type in which products are added up, by the element type of the factors.
    """
    if a.dtype != b.dtype or a.dtype not in accumulators or a.ndim != 3 or b.ndim != 3:
        return NotImplemented
    (batches, rows, inner), columns = a.shape, b.shape[2]
    if b.shape != (batches, inner, columns):
        return NotImplemented  # PyTorch reports the error
    result = torch.empty((batches, rows, columns), dtype=a.dtype, device=a.device)
    if result.numel():
        grid = (batches, triton.cdiv(rows, BLOCK), triton.cdiv(columns, BLOCK))
        constants = {"INNER": inner, "ACCUMULATOR": accumulators[a.dtype], "BLOCK": BLOCK}
        product_kernel[grid](a, b, result, rows, columns, *a.stride(), *b.stride(), **constants)
    return result


OPERATORS = {"bmm": bmm, "mm": mm}
"""The functions that launch the kernel, by the name of the operator in PyTorch's namespace `aten`."""
