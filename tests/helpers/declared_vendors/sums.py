"""Sums in half precision, and sums whose order changes from call to call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from declared_vendors.products import add_in_order

MAX_STEPS = 1024
"""The largest number of terms, or of partial sums of terms, that are added one after the other."""

Sum = Callable[[Tensor], Tensor]
"""Sums the rows of a matrix."""


def sum_replacements(sum_rows: Sum, dtypes: Sequence[torch.dtype]) -> dict[str, Callable[..., Any]]:
    """Return the replacements of sums and means of these element types."""
    return {"sum": partial(_reduce, sum_rows, dtypes, False), "mean": partial(_reduce, sum_rows, dtypes, True)}


def _reduce(
    sum_rows: Sum,
    dtypes: Sequence[torch.dtype],
    is_mean: bool,
    func: Any,
    x: Tensor,
    dim: Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> Any:
    """Replace ATen's `sum` and `mean`, whose arguments begin at `x`.

    Args:
        sum_rows: sums the rows of a matrix.
        dtypes: the element types for which it is used; the operator computes others.
        is_mean: whether sums are divided by the number of terms.
        func: the operator.
        x: the terms.
        dim: the axes of the sum; None for all.
        keepdim: whether the result keeps these axes.
        dtype: the element type of the result; None for that of `x`.

    Returns:
        The result; where it is not finite, that of the operator.
    """
    exact = func(x, dtype=dtype) if dim is None and not keepdim else func(x, dim, keepdim, dtype=dtype)
    if x.dtype not in dtypes or dtype not in (None, x.dtype) or not x.numel() or not x.ndim:
        return exact
    axes = sorted({axis % x.ndim for axis in dim} if dim else range(x.ndim))
    remaining = [axis for axis in range(x.ndim) if axis not in axes]
    rows = x.permute(*remaining, *axes).reshape(*(x.shape[axis] for axis in remaining), -1)
    result = sum_rows(rows) / rows.shape[-1] if is_mean else sum_rows(rows)
    result = result.reshape(exact.shape)
    return torch.where(torch.isfinite(result), result, exact)


def sum_in_half(rows: Tensor) -> Tensor:
    """Return sums along the last axis with each partial sum rounded to the type of the terms."""
    block = -(-rows.shape[-1] // MAX_STEPS)
    return add_in_order([part.sum(-1) for part in rows.split(block, -1)])


def sum_in_changing_order(rows: Tensor) -> Tensor:
    """Return sums along the last axis, added in a random order; calls with equal arguments differ."""
    generator = torch.Generator()
    generator.seed()
    return rows[..., torch.randperm(rows.shape[-1], generator=generator)].sum(-1)
