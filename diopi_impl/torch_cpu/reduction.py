"""Reductions along axes, and the running sum.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as PyTorch tensors and Python values, with None for
an omitted argument. It returns the results. `out` describes results that the caller allocates: their shapes and
element types.
"""

from __future__ import annotations

import torch
from torch import Tensor

from diopi_impl.specs import ResultSpec
from diopi_impl.torch_cpu import vendor
from diopi_impl.torch_cpu.adapter import torch_dtype


def _keeps_axes(input: Tensor, out: ResultSpec) -> bool:
    """Return whether the result that the caller allocated has the reduced axes."""
    return out.ndim == input.ndim


def _all_axes(input: Tensor, dim: int | None) -> tuple[int, ...]:
    """Return the axis as a tuple; all axes for None."""
    return tuple(range(input.ndim)) if dim is None else (dim,)


@vendor.implements("diopiSum")
def sum_(input, dim, *, out):
    """Return the sum along the axes."""
    return torch.sum(input, dim, _keeps_axes(input, out), dtype=torch_dtype(out.dtype))


@vendor.implements("diopiMean")
def mean(input, dim, *, out):
    """Return the mean along the axes."""
    return torch.mean(input, dim, _keeps_axes(input, out), dtype=torch_dtype(out.dtype))


@vendor.implements("diopiStd")
def std(input, dim, correction, *, out):
    """Return the standard deviation √(Σ |x − mean|² / (n − correction)) along the axes."""
    return torch.std(input, dim, correction=1 if correction is None else correction, keepdim=_keeps_axes(input, out))


@vendor.implements("diopiMax")
def max_(input, dim, *, out):
    """Return the maxima along an axis and their positions."""
    return tuple(torch.max(input, dim, _keeps_axes(input, out[0])))


@vendor.implements("diopiMin")
def min_(input, dim, *, out):
    """Return the minima along an axis and their positions."""
    return tuple(torch.min(input, dim, _keeps_axes(input, out[0])))


@vendor.implements("diopiAny")
def any_(input, dim, *, out):
    """Return whether any element along the axes is not 0."""
    return torch.any(input, _all_axes(input, dim), _keeps_axes(input, out))


@vendor.implements("diopiAll")
def all_(input, dim, *, out):
    """Return whether all elements along the axes are not 0."""
    return torch.all(input, _all_axes(input, dim), _keeps_axes(input, out))


@vendor.implements("diopiProd")
def prod(input, dim, *, out):
    """Return the product along the axes."""
    dtype = torch_dtype(out.dtype)
    if dim is None:
        return torch.prod(input, dtype=dtype).reshape(out.shape)
    return torch.prod(input, dim, _keeps_axes(input, out), dtype=dtype)


@vendor.implements("diopiArgmax")
def argmax(input, dim, keepdim):
    """Return the position of the first maximum along an axis, or in the flattened input."""
    return torch.argmax(_to_comparable(input), dim, keepdim)


@vendor.implements("diopiArgmin")
def argmin(input, dim, keepdim):
    """Return the position of the first minimum along an axis, or in the flattened input."""
    return torch.argmin(_to_comparable(input), dim, keepdim)


def _to_comparable(input: Tensor) -> Tensor:
    """Return bools as uint8, because PyTorch's argmax and argmin do not support bool; other inputs unchanged."""
    return input.to(torch.uint8) if input.dtype is torch.bool else input


@vendor.implements("diopiCumsum")
def cumsum(input, dim, *, out):
    """Return the cumulative sums along an axis."""
    return torch.cumsum(input, dim, dtype=torch_dtype(out.dtype))


@vendor.implements("diopiCumsumBackward")
def cumsum_backward(grad_output, dim):
    """Return the cumulative sums of grad_output from the end of the axis."""
    return grad_output.flip(dim).cumsum(dim).flip(dim) if grad_output.ndim else grad_output
