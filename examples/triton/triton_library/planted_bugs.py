"""The library with two planted defects, which the suite finds: see docs/triton_kernels.md.

- Layer normalization counts elements beyond the end of a row in the variance.
- Matrix products of float16 are added up in float16.
"""

from __future__ import annotations

from functools import partial

import torch
import triton
import triton.language as tl

import triton_library
from triton_library.products import bmm, mm
from triton_library.registration import COMPUTE_TYPES, register
from triton_library.rows import _row_offsets, native_layer_norm


@triton.jit
def layer_norm_kernel(
    x_ptr, weight_ptr, bias_ptr, result_ptr, mean_ptr, rstd_ptr, columns,
    EPS: tl.constexpr, HAS_WEIGHT: tl.constexpr, HAS_BIAS: tl.constexpr, COMPUTE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Normalize a row like `rows.layer_norm_kernel`, except that its elements beyond the end are not excluded.

    The defect is in `centered`: it is -mean for these elements, so that the variance is too large.
    """
    offsets, exists = _row_offsets(columns, BLOCK)
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, exists, other=0).to(COMPUTE)
    mean = tl.sum(x, 0) / columns
    centered = x - mean
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


ACCUMULATORS = {**COMPUTE_TYPES, torch.float16: tl.float16}
"""The second defect: the type in which products are added up is float16 instead of float32 for float16 matrices."""

OPERATORS = {
    "bmm": partial(bmm, accumulators=ACCUMULATORS),
    "mm": partial(mm, accumulators=ACCUMULATORS),
    "native_layer_norm": partial(native_layer_norm, kernel=layer_norm_kernel),
}
"""The faulty operators, which replace those of the library."""


def enable() -> None:
    """Replace the operators of PyTorch on the device under test, three of them by faulty kernels."""
    triton_library.enable()
    register(OPERATORS)
