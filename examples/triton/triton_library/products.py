"""Products of matrices. Each instance of the kernel computes a tile of BLOCK × BLOCK elements of the result.

Strides are arguments of the kernel, so that no matrix has to be copied. `mm` and `bmm` return NotImplemented if the
kernel does not support a call. PyTorch's own kernel then computes the result.
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
"""The number of rows, and of columns, of a tile."""


@triton.jit
def product_kernel(
    a_ptr, b_ptr, result_ptr, rows, columns,
    a_batch_stride, a_row_stride, a_column_stride, b_batch_stride, b_row_stride, b_column_stride,
    INNER: tl.constexpr, ACCUMULATOR: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Compute a tile of the product of two matrices a and b of a batch.

    The result has the shape (batches, rows, columns) and is contiguous. INNER is the length of the summed axis; Triton
    compiles the kernel for each length, so that the number of iterations is a constant. The strides of the axes of a
    and b are in elements. The products are added up in the type ACCUMULATOR.
    """
    batch = tl.program_id(0).to(tl.int64)
    row = tl.program_id(1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)[:, None]
    column = tl.program_id(2).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)[None, :]
    accumulator = tl.zeros([BLOCK, BLOCK], ACCUMULATOR)
    for start in range(0, INNER, BLOCK):
        a_inner = start + tl.arange(0, BLOCK)[None, :]
        b_inner = start + tl.arange(0, BLOCK)[:, None]
        a_is_inside, b_is_inside = (row < rows) & (a_inner < INNER), (b_inner < INNER) & (column < columns)
        a_offsets = batch * a_batch_stride + row * a_row_stride + a_inner * a_column_stride
        b_offsets = batch * b_batch_stride + b_inner * b_row_stride + column * b_column_stride
        a = tl.load(a_ptr + a_offsets, a_is_inside, other=0)
        b = tl.load(b_ptr + b_offsets, b_is_inside, other=0)
        accumulator = tl.dot(a, b, accumulator, input_precision="ieee", out_dtype=ACCUMULATOR)
    offsets = batch * rows * columns + row * columns + column
    tl.store(result_ptr + offsets, accumulator, (row < rows) & (column < columns))


def mm(a: Tensor, b: Tensor, **options: Any) -> Any:
    """Return the product of two matrices; return NotImplemented if `bmm` does, or if a factor is no matrix.

    Args:
        a: the first factor, of shape (rows, inner).
        b: the second factor, of shape (inner, columns).
        options: the keyword arguments of `bmm`.
    """
    if a.ndim != 2 or b.ndim != 2:
        return NotImplemented  # PyTorch reports the error
    product = bmm(a[None], b[None], **options)
    return product if product is NotImplemented else product[0]


def bmm(a: Tensor, b: Tensor, *, accumulators: Mapping[torch.dtype, Any] = COMPUTE_TYPES) -> Any:
    """Return the products of two batches of matrices, or NotImplemented if the kernel does not support the call.

    Args:
        a: the first factors, of shape (batches, rows, inner).
        b: the second factors, of shape (batches, inner, columns).
        accumulators: the type in which products are added up, by the element type of the factors. The kernel supports
            only these element types.
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
