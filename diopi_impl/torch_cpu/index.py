"""Functions that read, write or select elements by position, index or mask, and their gradients.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as PyTorch tensors and Python values, with None for
an omitted argument. It returns the results.
"""

from __future__ import annotations

from typing import Any

import torch

from diopi_impl.torch_cpu import vendor
from diopi_impl.torch_cpu.autograd import gradients

aten = torch.ops.aten
"""The operators of ATen."""


@vendor.implements("diopiIndexBackward")
def index_backward(zeros_like_input, indices, grad_output):
    """Return `zeros_like_input` with grad_output added to the indexed elements."""
    return aten.index_put(zeros_like_input, indices, grad_output, accumulate=True)


@vendor.implements("diopiIndexPut")
def index_put(input, values, indices, accumulate):
    """Return input with `values` written to the indexed elements, or added to them if `accumulate`."""
    return aten.index_put(input, indices, values, accumulate)


@vendor.implements("diopiIndexSelectBackward")
def index_select_backward(grad, input_sizes, dim, index):
    """Return zeros with `grad` added at positions `index` along axis `dim`."""
    return aten.index_select_backward(grad, input_sizes, dim, index)


@vendor.implements("diopiSelect")
def select(input, dim, index):
    """Return the slice of input at position `index` of axis `dim`, without this axis."""
    return torch.select(input, dim, index)


@vendor.implements("diopiSlice")
def slice_(input, dim, start, end, step):
    """Return the elements start, start + step, … below `end` of axis `dim`."""
    return aten.slice(input, dim, start, end, step)


@vendor.implements("diopiIndexFill")
def index_fill(input, dim, index, value):
    """Return input with the elements at positions `index` of axis `dim` replaced by `value`."""
    return torch.index_fill(input, dim, index.long(), value)  # PyTorch accepts only int64


@vendor.implements("diopiMaskedSelectBackward")
def masked_select_backward(grad_output, input, mask):
    """Return the gradient of input, summed over the axes along which input was broadcast."""
    gradient: Any = gradients(lambda x: torch.masked_select(x, mask), grad_output, input)[0]
    return gradient


@vendor.implements("diopiGatherBackward")
def gather_backward(grad_output, input, dim, index):
    """Return zeros with grad_output added at the gathered elements."""
    return aten.gather_backward(grad_output, input, dim, index, sparse_grad=False)


@vendor.implements("diopiScatter")
def scatter(input, dim, src, index, reduce):
    """Return input with `src` written, added or multiplied to the elements at `index` along `dim`."""
    if reduce == "add":
        return aten.scatter_add(input, dim, index, src)  # PyTorch deprecates the keyword for tensors
    return aten.scatter(input, dim, index, src, **_reduce_keyword(reduce))


@vendor.implements("diopiScatterScalar")
def scatter_scalar(input, dim, value, index, reduce):
    """Return input with `value` written, added or multiplied to the elements at `index` along `dim`."""
    return aten.scatter(input, dim, index, value, **_reduce_keyword(reduce))


def _reduce_keyword(reduce: str | None) -> dict[str, str]:
    """Return the keyword argument for a reduction; none for an empty name."""
    return {"reduce": reduce} if reduce else {}


@vendor.implements("diopiEmbedding")
def embedding(weight, indices):
    """Return the rows of `weight` at `indices`."""
    return aten.embedding(weight, indices)  # the other arguments only affect the gradient


@vendor.implements("diopiEmbeddingRenorm_")
def embedding_renorm(inout, indices, max_norm, norm_type):
    """Return the table with rows in `indices` scaled down to max_norm if their norm is larger."""
    return aten.embedding_renorm(inout, indices, max_norm, norm_type)


@vendor.implements("diopiOneHot")
def one_hot(input, num_classes):
    """Return a tensor with a new last axis: 1 at the position of each class, else 0."""
    return torch.nn.functional.one_hot(input.long(), num_classes)  # PyTorch accepts only int64
