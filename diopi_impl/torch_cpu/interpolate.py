"""Resampling of regular grids: resizing, and sampling at points, with gradients."""

from __future__ import annotations

import torch
from torch.nn import functional

from diopi_impl.torch_cpu import vendor

Sizes = tuple[int, ...]


@vendor.implements("diopiUpsampleNearest")
def upsample_nearest(input, size):
    return functional.interpolate(input, size, mode="nearest")


@vendor.implements("diopiUpsampleNearestBackward")
def upsample_nearest_backward(grad_output, out_size, in_size):
    backward = getattr(torch.ops.aten, f"upsample_nearest{len(out_size)}d_backward")
    return backward(grad_output, out_size, in_size)


@vendor.implements("diopiUpsampleLinear")
def upsample_linear(input, size, align_corners, mode):
    return functional.interpolate(input, size, mode=mode, align_corners=align_corners)


@vendor.implements("diopiUpsampleLinearBackward")
def upsample_linear_backward(grad_output, out_size, in_size, align_corners, mode):
    backward = getattr(torch.ops.aten, f"upsample_{mode}{len(out_size)}d_backward")
    return backward(grad_output, out_size, in_size, align_corners)


@vendor.implements("diopiGridSample")
def grid_sample(input, grid, mode):
    return functional.grid_sample(input, grid, mode, padding_mode="zeros", align_corners=False)
