"""Operators along axes: softmax, layer normalization and sums.

The axes are moved to the end, so that each program (instance of a kernel) computes one contiguous row. BLOCK is the
number of elements that a program handles at once: a power of two, so that some of them may lie beyond the end of the
row. COMPUTE is the type in which a kernel computes. A function returns NotImplemented if its kernel does not support a
call. PyTorch's own kernel then computes the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from triton_library.registration import COMPUTE_TYPES

MAX_COLUMNS = 2**16
"""The longest row that fits into a block. PyTorch computes longer rows."""


@triton.jit
def _row_offsets(columns, BLOCK: tl.constexpr):
    """Return the positions of the elements of a program's row, and which of them exist."""
    offsets = tl.arange(0, BLOCK)
    return tl.program_id(0).to(tl.int64) * columns + offsets, offsets < columns


@triton.jit
def softmax_kernel(x_ptr, result_ptr, columns, LOG: tl.constexpr, COMPUTE: tl.constexpr, BLOCK: tl.constexpr):
    """Compute the softmax of a row of `columns` elements, or its logarithm if LOG."""
    offsets, exists = _row_offsets(columns, BLOCK)
    x = tl.load(x_ptr + offsets, exists, other=-float("inf")).to(COMPUTE)
    shifted = x - tl.max(x, 0)
    powers = tl.exp(shifted)
    total = tl.sum(powers, 0)
    tl.store(result_ptr + offsets, shifted - tl.log(total) if LOG else powers / total, exists)


@triton.jit
def layer_norm_kernel(
    x_ptr, weight_ptr, bias_ptr, result_ptr, mean_ptr, rstd_ptr, columns,
    EPS: tl.constexpr, HAS_WEIGHT: tl.constexpr, HAS_BIAS: tl.constexpr, COMPUTE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Compute (x - mean) / sqrt(variance + EPS) * weight + bias for a row; store also the mean and 1 / sqrt(...)."""
    offsets, exists = _row_offsets(columns, BLOCK)
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, exists, other=0).to(COMPUTE)
    mean = tl.sum(x, 0) / columns
    centered = tl.where(exists, x - mean, 0)
    variance = tl.sum(centered * centered, 0) / columns
    rstd = 1 / tl.sqrt(variance + tl.full([], EPS, COMPUTE))
    result = centered * rstd
    if HAS_WEIGHT:
        result *= tl.load(weight_ptr + column, exists).to(COMPUTE)
    if HAS_BIAS:
        result += tl.load(bias_ptr + column, exists).to(COMPUTE)
    tl.store(result_ptr + offsets, result, exists)
    tl.store(mean_ptr + tl.program_id(0), mean)
    tl.store(rstd_ptr + tl.program_id(0), rstd)


@triton.jit
def sum_kernel(x_ptr, result_ptr, COLUMNS: tl.constexpr, COMPUTE: tl.constexpr, BLOCK: tl.constexpr):
    """Compute the sum of a row of COLUMNS elements, which may be longer than BLOCK."""
    start = tl.program_id(0).to(tl.int64) * COLUMNS
    total = tl.zeros([BLOCK], COMPUTE)
    for first in range(0, COLUMNS, BLOCK):
        offsets = first + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + start + offsets, offsets < COLUMNS, other=0).to(COMPUTE)
    tl.store(result_ptr + tl.program_id(0), tl.sum(total, 0))


def _launch_softmax(x: Tensor, dim: int, half_to_float: bool, *, is_log: bool) -> Any:
    """Return the softmax along axis `dim`, or with `is_log` the logarithm of the softmax.

    Returns NotImplemented if the kernel does not support the call, for example with `half_to_float`, which requests a
    float32 result for float16.
    """
    if x.dtype not in COMPUTE_TYPES or half_to_float or not x.numel() or not x.ndim or x.shape[dim] > MAX_COLUMNS:
        return NotImplemented
    rows = x.movedim(dim, -1).contiguous()
    result, columns = torch.empty_like(rows), rows.shape[-1]
    options = {"COMPUTE": COMPUTE_TYPES[x.dtype], "BLOCK": triton.next_power_of_2(columns)}
    softmax_kernel[(rows.numel() // columns,)](rows, result, columns, LOG=is_log, **options)
    return result.movedim(-1, dim)


def softmax(x: Tensor, dim: int, half_to_float: bool) -> Any:
    """Return the softmax along axis `dim`, or NotImplemented."""
    return _launch_softmax(x, dim, half_to_float, is_log=False)


def log_softmax(x: Tensor, dim: int, half_to_float: bool) -> Any:
    """Return the logarithm of the softmax along axis `dim`, or NotImplemented."""
    return _launch_softmax(x, dim, half_to_float, is_log=True)


def native_layer_norm(
    x: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
    *,
    kernel: Any = layer_norm_kernel,
) -> Any:
    """Normalize over the last axes, which have the shape `normalized_shape`.

    Returns:
        The result, the means, and the inverse standard deviations; the latter two have length 1 along these axes.
        NotImplemented if the kernel does not support the call.
    """
    columns, parameters = prod(normalized_shape), [p for p in (weight, bias) if p is not None]
    shapes = [list(p.shape) for p in parameters] + [list(x.shape[x.ndim - len(normalized_shape) :])]
    is_supported = all(tensor.dtype in COMPUTE_TYPES for tensor in (x, *parameters))
    is_valid = all(shape == list(normalized_shape) for shape in shapes)  # PyTorch reports other shapes
    if not is_supported or not is_valid or not x.numel() or not 0 < columns <= MAX_COLUMNS:
        return NotImplemented
    rows, weight, bias = (None if t is None else t.contiguous() for t in (x, weight, bias))
    result, rank = torch.empty_like(rows), len(normalized_shape)
    statistics = [*x.shape[: x.ndim - rank], *[1] * rank]
    dtype = x.dtype if weight is None else weight.dtype
    mean, rstd = (torch.empty(statistics, dtype=dtype, device=x.device) for _ in range(2))
    constants = {"EPS": eps, "HAS_WEIGHT": weight is not None, "HAS_BIAS": bias is not None}
    types = {"COMPUTE": COMPUTE_TYPES[x.dtype], "BLOCK": triton.next_power_of_2(columns)}
    kernel[(x.numel() // columns,)](rows, weight, bias, result, mean, rstd, columns, **constants, **types)
    return result, mean, rstd


def sum_along(x: Tensor, dim: Sequence[int] | None, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Any:
    """Return the sums along the axes `dim`, or the sum of all elements if it is None or empty; or NotImplemented.

    The result has the element type `dtype`, or that of `x` if `dtype` is None.
    """
    result_dtype = dtype or x.dtype
    if x.dtype not in COMPUTE_TYPES or result_dtype not in COMPUTE_TYPES or not x.numel():
        return NotImplemented
    axes = sorted(axis % x.ndim for axis in dim) if x.ndim and dim else list(range(x.ndim))
    if len(set(axes)) != len(axes) or any(not -x.ndim <= axis < x.ndim for axis in dim or ()):
        return NotImplemented  # PyTorch reports the error
    remaining = [axis for axis in range(x.ndim) if axis not in axes]
    columns = prod(x.shape[axis] for axis in axes)
    shape = [1 if axis in axes else x.shape[axis] for axis in range(x.ndim) if keepdim or axis not in axes]
    result = torch.empty(shape, dtype=result_dtype, device=x.device)
    wide = COMPUTE_TYPES[torch.promote_types(x.dtype, result_dtype)]
    block = min(triton.next_power_of_2(columns), 1024)
    sum_kernel[(result.numel(),)](
        x.permute(*remaining, *axes).contiguous(), result, COLUMNS=columns, COMPUTE=wide, BLOCK=block
    )
    return result


OPERATORS = {
    "_log_softmax": log_softmax,
    "_softmax": softmax,
    "native_layer_norm": native_layer_norm,
    "sum.dim_IntList": sum_along,
}
"""The functions that launch kernels, by the name of the operator in PyTorch's namespace `aten`."""
