"""Functions that construct, move, copy and convert whole tensors, and join, split and pad them.

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
from diopi_proto.dtypes import category
from diopi_proto.types import MemoryFormat


@vendor.implements("diopiSplitWithSizes")
def split_with_sizes(input, splitSizes, dim):
    """Return parts of these sizes along axis `dim`."""
    return list(input.split_with_sizes(splitSizes, dim))


@vendor.implements("diopiTranspose")
def transpose(input, dim0, dim1):
    """Return the input with two axes swapped."""
    return input.transpose(dim0, dim1)


@vendor.implements("diopiPermute")
def permute(input, dims):
    """Return the input with its axes in the order `dims`."""
    return input.permute(dims)


@vendor.implements("diopiExpand")
def expand(input, *, out):
    """Return the input, broadcast to the shape of the result."""
    return input.expand(out.shape)


@vendor.implements("diopiPad")
def pad(input, pad, mode, value):
    """Return the input with elements added at both ends of the last axes, or removed where `pad` is negative.

    New elements are a constant, or copies of elements by reflection, replication or wrap-around.
    """
    return torch.nn.functional.pad(input, pad, mode, value)


@vendor.implements("diopiUnfold")
def unfold(input, dim, size, step):
    """Return windows of `size` elements along axis `dim`, every `step` elements; a new last axis has their elements."""
    return input.unfold(dim, size, step)


@vendor.implements("diopiMeshGrid")
def mesh_grid(inputs):
    """Return the coordinate arrays of a grid, as np.meshgrid with matrix indexing."""
    return list(torch.meshgrid(*inputs, indexing="ij"))


@vendor.implements("diopiArange")
def arange(start, end, step, *, out):
    """Return start + i · step; the numbers are truncated first for integers."""
    dtype, (length,) = torch_dtype(out.dtype), out.shape
    numbers = torch.arange(start, end, step, dtype=dtype)
    if len(numbers) == length:
        return numbers
    if not dtype.is_floating_point:
        start, step = int(start), int(step)
    return torch.arange(start, start + length * step, step, dtype=dtype)[:length]  # the caller determines the length


@vendor.implements("diopiLinspace")
def linspace(start, end, steps, *, out):
    """Return `steps` equally spaced numbers from start to end."""
    return torch.linspace(start, end, steps, dtype=torch_dtype(out.dtype))


def _empty(out: ResultSpec) -> Tensor:
    """Return an uninitialized tensor with the shape and type of the result."""
    return torch.empty(out.shape, dtype=torch_dtype(out.dtype))


@vendor.implements("diopiFill")
def fill(value, *, out):
    """Return a tensor filled with `value`."""
    return _empty(out).fill_(value)


@vendor.implements("diopiOnes")
def ones(size, *, out):
    """Return a tensor whose elements are 1."""
    return torch.ones(size, dtype=torch_dtype(out.dtype))


@vendor.implements("diopiZeros")
def zeros(size, *, out):
    """Return zeros."""
    return torch.zeros(size, dtype=torch_dtype(out.dtype))


@vendor.implements("diopiZeroInp")
def zero_(*, out):
    """Return zeros in the shape of the result."""
    return _empty(out).zero_()


def _convertible_part(values: Tensor, out: ResultSpec) -> Tensor:
    """Return the real part if the result is integer or floating, because PyTorch warns about the conversion.

    For other results, return the values unchanged: a complex number is true if either part is not 0.
    """
    return values.real if values.is_complex() and category(out.dtype) in (1, 2) else values


@vendor.implements("diopiCastDtype")
def cast_dtype(input, *, out):
    """Return the input converted to the element type of the result."""
    return _convertible_part(input, out).to(torch_dtype(out.dtype))


@vendor.implements("diopiCopyInp")
def copy_(src, *, out):
    """Return the source broadcast and converted to the shape and type of the result."""
    return _empty(out).copy_(_convertible_part(src, out))


FORMATS = {
    MemoryFormat.Contiguous: torch.contiguous_format,
    MemoryFormat.ChannelsLast: torch.channels_last,
    MemoryFormat.ChannelsLast3d: torch.channels_last_3d,
    MemoryFormat.Preserve: torch.preserve_format,
}
"""PyTorch's memory formats; it has none for rank 3."""


@vendor.implements("diopiContiguous")
def contiguous(input, memoryFormat):
    """Return a copy of the input in a memory format."""
    if memoryFormat is MemoryFormat.ChannelsLast1d:
        return input.transpose(1, 2).contiguous().transpose(1, 2)
    return input.clone(memory_format=FORMATS[memoryFormat])
