"""Element-wise operators for tensors of any rank.

Operands are broadcast and made contiguous, so that each kernel sees vectors of `count` elements. A kernel converts them
to the type COMPUTE, in which it computes. Each program (instance of a kernel) computes BLOCK elements. A function
returns NotImplemented if its kernel does not support a call. PyTorch's own kernel then computes the result.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from triton_library.registration import COMPUTE_TYPES, DEVICE_TYPE

BLOCK = 1024
"""The number of elements that a program computes."""


@triton.jit
def _block_offsets(count, BLOCK: tl.constexpr):
    """Return the positions of a program's elements, and which of them exist."""
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    return offsets, offsets < count


@triton.jit
def relu_kernel(x_ptr, result_ptr, count, COMPUTE: tl.constexpr, BLOCK: tl.constexpr):
    """Compute max(x, 0)."""
    offsets, exists = _block_offsets(count, BLOCK)
    x = tl.load(x_ptr + offsets, exists).to(COMPUTE)
    tl.store(result_ptr + offsets, tl.where(x < 0, 0, x), exists)  # NaN is not less than 0, and stays


@triton.jit
def silu_kernel(x_ptr, result_ptr, count, COMPUTE: tl.constexpr, BLOCK: tl.constexpr):
    """Compute x / (1 + exp(-x))."""
    offsets, exists = _block_offsets(count, BLOCK)
    x = tl.load(x_ptr + offsets, exists).to(COMPUTE)
    tl.store(result_ptr + offsets, x / (1 + tl.exp(-x)), exists)


@triton.jit
def gelu_kernel(x_ptr, result_ptr, count, COMPUTE: tl.constexpr, BLOCK: tl.constexpr):
    """Compute x times the normal distribution function of x."""
    offsets, exists = _block_offsets(count, BLOCK)
    x = tl.load(x_ptr + offsets, exists).to(COMPUTE)
    half_root = tl.full([], 0.7071067811865476, COMPUTE)  # a plain number would be rounded to float32
    tl.store(result_ptr + offsets, 0.5 * x * (1 + tl.erf(x * half_root)), exists)


@triton.jit
def add_kernel(x_ptr, y_ptr, result_ptr, count, ALPHA: tl.constexpr, COMPUTE: tl.constexpr, BLOCK: tl.constexpr):
    """Compute x + ALPHA * y."""
    offsets, exists = _block_offsets(count, BLOCK)
    x = tl.load(x_ptr + offsets, exists).to(COMPUTE)
    y = tl.load(y_ptr + offsets, exists).to(COMPUTE)
    tl.store(result_ptr + offsets, x + tl.full([], ALPHA, COMPUTE) * y, exists)


@triton.jit
def mul_kernel(x_ptr, y_ptr, result_ptr, count, COMPUTE: tl.constexpr, BLOCK: tl.constexpr):
    """Compute x * y."""
    offsets, exists = _block_offsets(count, BLOCK)
    x = tl.load(x_ptr + offsets, exists).to(COMPUTE)
    y = tl.load(y_ptr + offsets, exists).to(COMPUTE)
    tl.store(result_ptr + offsets, x * y, exists)


def _launch(kernel: Any, *operands: Tensor | float, **constants: Any) -> Any:
    """Broadcast the operands, run an element-wise kernel, and return its result.

    Args:
        kernel: the kernel.
        operands: its operands, tensors or numbers.
        constants: its constant arguments besides COMPUTE and BLOCK.

    Returns:
        The result, or NotImplemented if an element type is not supported.
    """
    dtype = torch.result_type(operands[0], operands[-1])
    tensors = [x if isinstance(x, Tensor) else torch.tensor(x, dtype=torch.float64) for x in operands]
    if dtype not in COMPUTE_TYPES or any(x.dtype not in COMPUTE_TYPES for x in tensors):
        return NotImplemented
    contiguous = [x.to(DEVICE_TYPE).contiguous() for x in torch.broadcast_tensors(*tensors)]
    result = torch.empty(contiguous[0].shape, dtype=dtype, device=DEVICE_TYPE)
    if count := result.numel():
        grid = (triton.cdiv(count, BLOCK),)
        kernel[grid](*contiguous, result, count, **constants, COMPUTE=COMPUTE_TYPES[dtype], BLOCK=BLOCK)
    return result


def relu(x: Tensor) -> Any:
    """Return max(x, 0), or NotImplemented."""
    return _launch(relu_kernel, x)


def silu(x: Tensor) -> Any:
    """Return x / (1 + exp(-x)), or NotImplemented."""
    return _launch(silu_kernel, x)


def gelu(x: Tensor, *, approximate: str = "none") -> Any:
    """Return the exact GELU, or NotImplemented, for example for the approximation "tanh"."""
    return _launch(gelu_kernel, x) if approximate == "none" else NotImplemented


def add(x: Tensor | float, y: Tensor | float, *, alpha: float = 1) -> Any:
    """Return x + alpha * y, or NotImplemented."""
    return _launch(add_kernel, x, y, ALPHA=float(alpha))


def mul(x: Tensor | float, y: Tensor | float) -> Any:
    """Return x * y, or NotImplemented."""
    return _launch(mul_kernel, x, y)


OPERATORS = {"add.Tensor": add, "gelu": gelu, "mul.Tensor": mul, "relu": relu, "silu": silu}
"""The functions that launch kernels, by the name of the operator in PyTorch's namespace `aten`."""
