"""Sorting, selection of the largest or smallest, and distinct values.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as PyTorch tensors and Python values, with None for
an omitted argument. It returns the results.
"""

from __future__ import annotations

import torch

from diopi_impl.torch_cpu import vendor


@vendor.implements("diopiSort")
def sort(input, dim, descending, pStable):
    """Return the sorted values along an axis and their positions; `pStable` keeps the order of equal elements."""
    return tuple(torch.sort(input, dim=dim, descending=descending, stable=bool(pStable)))


@vendor.implements("diopiArgsort")
def argsort(input, stable, dim, descending):
    """Return the positions that sort an axis; equal elements keep their order if `stable` is true."""
    return torch.argsort(input, dim=-1 if dim is None else dim, descending=descending, stable=stable)


@vendor.implements("diopiTopk")
def topk(input, k, dim, largest, sorted):
    """Return the k largest or smallest elements along an axis and their positions."""
    return tuple(torch.topk(input, k, dim, largest, sorted))


@vendor.implements("diopiSortBackward")
def sort_backward(grad_output, dim, indices, sizes, keepdim):
    """Return zeros of shape `sizes` with grad_output at the positions `indices` along an axis."""
    return torch.ops.aten.value_selecting_reduction_backward(grad_output, dim, indices.long(), sizes, keepdim)


@vendor.implements("diopiUnique")
def unique(input, dim, return_counts):
    """Return the distinct elements, or slices along `dim`, in order, with inverse indices and counts.

    The counts are None unless `return_counts` is true.
    """
    out, inverse, counts = torch.unique(input, sorted=True, return_inverse=True, return_counts=True, dim=dim)
    return out, inverse, counts if return_counts else None
