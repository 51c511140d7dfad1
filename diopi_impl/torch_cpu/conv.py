"""Convolutions over two and three spatial axes, transposed ones, their gradients, and their unrolled form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from diopi_impl.torch_cpu import vendor
from diopi_impl.torch_cpu.autograd import gradients

Sizes = Sequence[int]


def _enter_convolutions(rank: int, conv: Callable[..., Tensor], conv_transpose: Callable[..., Tensor]) -> None:
    """Register the four functions over `rank` spatial axes."""

    def with_bias(function: Callable[..., Tensor], sizes: Sizes | None, grad: Tensor, x: Tensor, w: Tensor) -> Any:
        bias = None if sizes is None else torch.zeros(tuple(sizes), dtype=w.dtype)
        return gradients(function, grad, x, w, bias)

    @vendor.implements(f"diopiConvolution{rank}d")
    def convolution(
        input: Tensor, weight: Tensor, bias: Tensor | None, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int
    ) -> Tensor:
        return conv(input, weight, bias, stride, padding, dilation, groups)

    @vendor.implements(f"diopiConvolution{rank}dBackward")
    def convolution_backward(
        grad_output: Tensor,
        input: Tensor,
        weight: Tensor,
        bias_sizes: Sizes | None,
        stride: Sizes,
        padding: Sizes,
        dilation: Sizes,
        groups: int,
    ) -> Any:
        forward = partial(conv, stride=stride, padding=padding, dilation=dilation, groups=groups)
        return with_bias(forward, bias_sizes, grad_output, input, weight)

    @vendor.implements(f"diopiConvTranspose{rank}d")
    def transposed(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        stride: Sizes,
        padding: Sizes,
        output_padding: Sizes,
        groups: int,
        dilation: Sizes,
    ) -> Tensor:
        return conv_transpose(input, weight, bias, stride, padding, output_padding, groups, dilation)

    @vendor.implements(f"diopiConvTranspose{rank}dBackward")
    def transposed_backward(
        grad_output: Tensor,
        input: Tensor,
        weight: Tensor,
        bias_sizes: Sizes | None,
        stride: Sizes,
        padding: Sizes,
        dilation: Sizes,
        output_padding: Sizes,
        groups: int,
    ) -> Any:
        attributes = {"stride": stride, "padding": padding, "output_padding": output_padding}
        forward = partial(conv_transpose, **attributes, groups=groups, dilation=dilation)
        return with_bias(forward, bias_sizes, grad_output, input, weight)


_enter_convolutions(2, functional.conv2d, functional.conv_transpose2d)
_enter_convolutions(3, functional.conv3d, functional.conv_transpose3d)


@vendor.implements("diopiIm2Col")
def im2col(input: Tensor, kernel_size: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes) -> Tensor:
    return torch.ops.aten.im2col(input, kernel_size, dilation, padding, stride)


@vendor.implements("diopiCol2Im")
def col2im(
    input: Tensor, output_size: Sizes, kernel_size: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes
) -> Tensor:
    return torch.ops.aten.col2im(input, output_size, kernel_size, dilation, padding, stride)
