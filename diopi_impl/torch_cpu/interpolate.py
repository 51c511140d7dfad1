"""Resampling of regular grids: resizing, and sampling at points, with gradients."""

from __future__ import annotations

import torch
from torch.nn import functional

from diopi_impl.torch_cpu import vendor


@vendor.implements("diopiUpsampleNearest")
def upsample_nearest(input, size):
    """Return the input element ⌊i · d / size⌋ along each axis, for result index i and axis length d."""
    return functional.interpolate(input, size, mode="nearest")


@vendor.implements("diopiUpsampleNearestBackward")
def upsample_nearest_backward(grad_output, out_size, in_size):
    """Return the gradient of nearest-neighbour resizing."""
    backward = getattr(torch.ops.aten, f"upsample_nearest{len(out_size)}d_backward")
    return backward(grad_output, out_size, in_size)


@vendor.implements("diopiUpsampleLinear")
def upsample_linear(input, size, align_corners, mode):
    """Return linear or bicubic resizing of the spatial axes."""
    return functional.interpolate(input, size, mode=mode, align_corners=align_corners)


@vendor.implements("diopiUpsampleLinearBackward")
def upsample_linear_backward(grad_output, out_size, in_size, align_corners, mode):
    """Return the gradient of linear or bicubic resizing."""
    backward = getattr(torch.ops.aten, f"upsample_{mode}{len(out_size)}d_backward")
    return backward(grad_output, out_size, in_size, align_corners)


@vendor.implements("diopiGridSample")
def grid_sample(input, grid, mode):
    """Return samples of input at the points of a grid in [−1, 1], nearest or linear, with zeros outside."""
    return functional.grid_sample(input, grid, mode, padding_mode="zeros", align_corners=False)
