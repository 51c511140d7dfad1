"""Operators that copy the rows of a table which indices select.

A function returns NotImplemented if its kernel does not support a call. PyTorch's own kernel then computes the result.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from triton_library.registration import COMPUTE_TYPES

BLOCK = 1024
"""The number of elements of a row that a program (instance of the kernel) copies."""


@triton.jit
def copy_rows_kernel(table_ptr, index_ptr, result_ptr, columns, BLOCK: tl.constexpr):
    """Copy a block of the table's row that an index selects to the row of the result at the position of the index."""
    row, offsets = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    source = tl.load(index_ptr + row).to(tl.int64)
    values = tl.load(table_ptr + source * columns + offsets, offsets < columns)
    tl.store(result_ptr + row * columns + offsets, values, offsets < columns)


def _copy_rows(table: Tensor, indices: Tensor) -> Tensor:
    """Return the rows of a matrix that a vector of indices selects; raise IndexError if an index is out of range."""
    rows, columns = table.shape
    result = torch.empty((len(indices), columns), dtype=table.dtype, device=table.device)
    if not result.numel():
        return result
    if indices.min() < 0 or indices.max() >= rows:
        raise IndexError(f"index out of range: expected indices from 0 to {rows - 1}")
    grid = (len(indices), triton.cdiv(columns, BLOCK))
    copy_rows_kernel[grid](table.contiguous(), indices.contiguous(), result, columns, BLOCK=BLOCK)
    return result


def embedding(weight: Tensor, indices: Tensor, *_options: object, **_named_options: object) -> Any:
    """Return the rows of `weight` at `indices`, or NotImplemented; the options only affect gradients."""
    if weight.dtype not in COMPUTE_TYPES or weight.ndim != 2:
        return NotImplemented
    return _copy_rows(weight, indices.reshape(-1)).reshape(*indices.shape, weight.shape[1])


def index_select(x: Tensor, dim: int, indices: Tensor) -> Any:
    """Return the slices of `x` at the positions `indices` of axis `dim`, or NotImplemented."""
    if x.dtype not in COMPUTE_TYPES or not x.ndim or indices.ndim != 1:
        return NotImplemented
    moved = x.movedim(dim, 0)
    rows = _copy_rows(moved.reshape(len(moved), -1), indices) if moved.numel() else NotImplemented
    return rows if rows is NotImplemented else rows.reshape(-1, *moved.shape[1:]).movedim(0, dim)


OPERATORS = {"embedding": embedding, "index_select": index_select}
"""The functions that launch kernels, by the name of the operator in PyTorch's namespace `aten`."""
