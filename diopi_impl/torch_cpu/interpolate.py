"""Resampling of regular grids: resizing, and sampling at points, with gradients."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from diopi_impl.torch_cpu import vendor

Sizes = tuple[int, ...]


@vendor.implements("diopiUpsampleNearest")
def upsample_nearest(input: Tensor, size: Sizes) -> Tensor:
    return functional.interpolate(input, size, mode="nearest")


@vendor.implements("diopiUpsampleNearestBackward")
def upsample_nearest_backward(grad_output: Tensor, out_size: Sizes, in_size: Sizes) -> Tensor:
    backward = getattr(torch.ops.aten, f"upsample_nearest{len(out_size)}d_backward")
    return backward(grad_output, out_size, in_size)


@vendor.implements("diopiUpsampleLinear")
def upsample_linear(input: Tensor, size: Sizes, align_corners: bool, mode: str) -> Tensor:
    return functional.interpolate(input, size, mode=mode, align_corners=align_corners)


@vendor.implements("diopiUpsampleLinearBackward")
def upsample_linear_backward(
    grad_output: Tensor, out_size: Sizes, in_size: Sizes, align_corners: bool, mode: str
) -> Tensor:
    backward = getattr(torch.ops.aten, f"upsample_{mode}{len(out_size)}d_backward")
    return backward(grad_output, out_size, in_size, align_corners)


@vendor.implements("diopiGridSample")
def grid_sample(input: Tensor, grid: Tensor, mode: str) -> Tensor:
    return functional.grid_sample(input, grid, mode, padding_mode="zeros", align_corners=False)
