"""Sorting, selection of the largest or smallest, and distinct values."""

from __future__ import annotations

import torch
from torch import Tensor

from diopi_impl.torch_cpu import vendor


@vendor.implements("diopiSort")
def sort(input: Tensor, dim: int, descending: bool, pStable: bool | None) -> tuple[Tensor, ...]:
    return tuple(torch.sort(input, dim=dim, descending=descending, stable=bool(pStable)))


@vendor.implements("diopiArgsort")
def argsort(input: Tensor, stable: bool, dim: int | None, descending: bool) -> Tensor:
    return torch.argsort(input, dim=-1 if dim is None else dim, descending=descending, stable=stable)


@vendor.implements("diopiTopk")
def topk(input: Tensor, k: int, dim: int, largest: bool, sorted: bool) -> tuple[Tensor, ...]:
    return tuple(torch.topk(input, k, dim, largest, sorted))


@vendor.implements("diopiSortBackward")
def sort_backward(grad_output: Tensor, dim: int, indices: Tensor, sizes: tuple[int, ...], keepdim: bool) -> Tensor:
    return torch.ops.aten.value_selecting_reduction_backward(grad_output, dim, indices.long(), sizes, keepdim)


@vendor.implements("diopiUnique")
def unique(input: Tensor, dim: int | None, sorted: bool, return_counts: bool) -> tuple[Tensor, Tensor, Tensor | None]:
    out, inverse, counts = torch.unique(input, sorted=True, return_inverse=True, return_counts=True, dim=dim)
    return out, inverse, counts if return_counts else None
