"""Products of matrices. Each program (instance of the kernel) computes a tile of BLOCK × BLOCK elements of the result.

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
    compiles the kernel for each length, so that the number of iterations is a constant. The strides are those of the
    axes of a and b, in elements. The products are added up in the type ACCUMULATOR.
    """
    batch = tl.program_id(0).to(tl.int64)
    i = tl.program_id(1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)[:, None]
    j = tl.program_id(2).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)[None, :]
    total = tl.zeros([BLOCK, BLOCK], ACCUMULATOR)
    for first in range(0, INNER, BLOCK):
        a_inner = first + tl.arange(0, BLOCK)[None, :]
        b_inner = first + tl.arange(0, BLOCK)[:, None]
        a_exists, b_exists = (i < rows) & (a_inner < INNER), (b_inner < INNER) & (j < columns)
        a_offsets = batch * a_batch_stride + i * a_row_stride + a_inner * a_column_stride
        b_offsets = batch * b_batch_stride + b_inner * b_row_stride + j * b_column_stride
        a = tl.load(a_ptr + a_offsets, a_exists, other=0)
        b = tl.load(b_ptr + b_offsets, b_exists, other=0)
        total = tl.dot(a, b, total, input_precision="ieee", out_dtype=ACCUMULATOR)
    offsets = batch * rows * columns + i * columns + j
    tl.store(result_ptr + offsets, total, (i < rows) & (j < columns))


def mm(a: Tensor, b: Tensor, **options: Any) -> Any:
    """Return the product of two matrices, or NotImplemented; the options are those of `bmm`."""
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
