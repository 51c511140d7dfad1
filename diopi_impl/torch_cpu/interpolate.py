"""Resampling of regular grids: resizing with its gradients, and sampling at points.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as PyTorch tensors and Python values, with None for
an omitted argument. It returns the results.
"""

from __future__ import annotations

import torch
from torch.nn import functional

from diopi_impl.torch_cpu import vendor


@vendor.implements("diopiUpsampleNearest")
def upsample_nearest(input, size):
    """Return the input with the spatial axes (those after N and C) resized to `size` by copying elements."""
    return functional.interpolate(input, size, mode="nearest")


@vendor.implements("diopiUpsampleNearestBackward")
def upsample_nearest_backward(grad_output, out_size, in_size):
    """Return the gradient of `upsample_nearest` with respect to the input, which has the shape `in_size`."""
    backward = getattr(torch.ops.aten, f"upsample_nearest{len(out_size)}d_backward")
    return backward(grad_output, out_size, in_size)


@vendor.implements("diopiUpsampleLinear")
def upsample_linear(input, size, align_corners, mode):
    """Return the input with the spatial axes (those after N and C) resized to `size` by interpolation."""
    return functional.interpolate(input, size, mode=mode, align_corners=align_corners)


@vendor.implements("diopiUpsampleLinearBackward")
def upsample_linear_backward(grad_output, out_size, in_size, align_corners, mode):
    """Return the gradient of `upsample_linear` with respect to the input, which has the shape `in_size`."""
    backward = getattr(torch.ops.aten, f"upsample_{mode}{len(out_size)}d_backward")
    return backward(grad_output, out_size, in_size, align_corners)


@vendor.implements("diopiGridSample")
def grid_sample(input, grid, mode):
    """Return samples of the input at the points of a grid: (N, C, spatial axes of the grid).

    The coordinates −1 and 1 are the edges of the input (`align_corners` is false). Elements outside count as 0.
    """
    return functional.grid_sample(input, grid, mode, padding_mode="zeros", align_corners=False)
