"""Functions that read, write or select elements by position, index or mask, and their gradients."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from diopi_impl.torch_cpu import vendor
from diopi_impl.torch_cpu.autograd import gradients

aten = torch.ops.aten


@vendor.implements("diopiIndex")
def index(input: Tensor, indices: list[Tensor | None]) -> Tensor:
    return aten.index(input, indices)


@vendor.implements("diopiIndexBackward")
def index_backward(zeros_like_input: Tensor, indices: list[Tensor | None], grad_output: Tensor) -> Tensor:
    return aten.index_put(zeros_like_input, indices, grad_output, accumulate=True)


@vendor.implements("diopiIndexPut")
def index_put(input: Tensor, values: Tensor, indices: list[Tensor | None], accumulate: bool) -> Tensor:
    return aten.index_put(input, indices, values, accumulate)


@vendor.implements("diopiIndexSelect")
def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    return torch.index_select(input, dim, index)


@vendor.implements("diopiIndexSelectBackward")
def index_select_backward(grad: Tensor, input_sizes: tuple[int, ...], dim: int, index: Tensor) -> Tensor:
    return aten.index_select_backward(grad, input_sizes, dim, index)


@vendor.implements("diopiSelect")
def select(input: Tensor, dim: int, index: int) -> Tensor:
    return torch.select(input, dim, index)


@vendor.implements("diopiSelectBackward")
def select_backward(grad_output: Tensor, input_sizes: tuple[int, ...], dim: int, index: int) -> Tensor:
    return aten.select_backward(grad_output, input_sizes, dim, index)


@vendor.implements("diopiSelectScatter")
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    return torch.select_scatter(input, src, dim, index)


@vendor.implements("diopiSlice")
def slice_(input: Tensor, dim: int, start: int, end: int, step: int) -> Tensor:
    return aten.slice(input, dim, start, end, step)


@vendor.implements("diopiSliceBackward")
def slice_backward(
    grad_output: Tensor, input_sizes: tuple[int, ...], dim: int, start: int, end: int, step: int
) -> Tensor:
    return aten.slice_backward(grad_output, input_sizes, dim, start, end, step)


@vendor.implements("diopiSliceScatter")
def slice_scatter(input: Tensor, src: Tensor, dim: int, start: int, end: int, step: int) -> Tensor:
    return torch.slice_scatter(input, src, dim, start, end, step)


@vendor.implements("diopiIndexFill")
def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    return torch.index_fill(input, dim, index.long(), value)  # PyTorch accepts only int64


@vendor.implements("diopiMaskedFill")
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    return torch.masked_fill(input, mask, value)


@vendor.implements("diopiMaskedScatter")
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    return torch.masked_scatter(input, mask, source)


@vendor.implements("diopiMaskedSelect")
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    return torch.masked_select(input, mask)


@vendor.implements("diopiMaskedSelectBackward")
def masked_select_backward(grad_output: Tensor, input: Tensor, mask: Tensor) -> Tensor:
    gradient: Any = gradients(lambda x: torch.masked_select(x, mask), grad_output, input)[0]
    return gradient


@vendor.implements("diopiWhere")
def elementwise_where(condition: Tensor, input: Tensor, other: Tensor) -> Tensor:
    return torch.where(condition, input, other)


@vendor.implements("diopiGather")
def gather(input: Tensor, dim: int, index: Tensor) -> Tensor:
    return torch.gather(input, dim, index)


@vendor.implements("diopiGatherBackward")
def gather_backward(grad_output: Tensor, input: Tensor, dim: int, index: Tensor) -> Tensor:
    return aten.gather_backward(grad_output, input, dim, index, sparse_grad=False)


@vendor.implements("diopiScatter")
def scatter(input: Tensor, dim: int, src: Tensor, index: Tensor, reduce: str | None) -> Tensor:
    return aten.scatter(input, dim, index, src, **_reduce_keyword(reduce))


@vendor.implements("diopiScatterScalar")
def scatter_scalar(input: Tensor, dim: int, value: float, index: Tensor, reduce: str | None) -> Tensor:
    return aten.scatter(input, dim, index, value, **_reduce_keyword(reduce))


def _reduce_keyword(reduce: str | None) -> dict[str, str]:
    return {"reduce": reduce} if reduce else {}


@vendor.implements("diopiEmbedding")
def embedding(weight: Tensor, indices: Tensor, padding_idx: int, scale_grad_byfreq: bool, sparse: bool) -> Tensor:
    return aten.embedding(weight, indices)  # the other arguments only affect the gradient


@vendor.implements("diopiEmbeddingBackward")
def embedding_backward(
    grad: Tensor, indices: Tensor, num_weights: int, padding_idx: int, scale_grad_byfreq: bool, sparse: bool
) -> Tensor:
    return aten.embedding_dense_backward(grad, indices, num_weights, padding_idx, scale_grad_byfreq)


@vendor.implements("diopiEmbeddingRenorm_")
def embedding_renorm(inout: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    return aten.embedding_renorm(inout, indices, max_norm, norm_type)


@vendor.implements("diopiOneHot")
def one_hot(input: Tensor, num_classes: int) -> Tensor:
    return torch.nn.functional.one_hot(input.long(), num_classes)  # PyTorch accepts only int64


@vendor.implements("diopiNonzero")
def nonzero(input: Tensor) -> Tensor:
    return torch.nonzero(input)
