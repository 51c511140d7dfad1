"""Convolutions and transposed convolutions over two and three spatial axes, their gradients, im2col and col2im."""

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
Convolve = Callable[..., Tensor]


def _gradients_with_bias(function: Convolve, sizes: Sizes | None, grad: Tensor, x: Tensor, w: Tensor) -> Any:
    """Return the gradients of input, weight and bias of `function`."""
    bias = None if sizes is None else torch.zeros(tuple(sizes), dtype=w.dtype)
    return gradients(function, grad, x, w, bias)


def convolution(
    conv: Convolve,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> Tensor:
    """Return the convolution by `conv`; the prototype documents all other arguments."""
    return conv(input, weight, bias, stride, padding, dilation, groups)


def convolution_backward(
    conv: Convolve,
    grad_output: Tensor,
    input: Tensor,
    weight: Tensor,
    bias_sizes: Sizes | None,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> Any:
    """Return the gradients of input, weight and bias of `conv`; the prototype documents all other arguments."""
    forward = partial(conv, stride=stride, padding=padding, dilation=dilation, groups=groups)
    return _gradients_with_bias(forward, bias_sizes, grad_output, input, weight)


def transposed_convolution(
    conv: Convolve,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sizes,
    padding: Sizes,
    output_padding: Sizes,
    groups: int,
    dilation: Sizes,
) -> Tensor:
    """Return the transposed convolution by `conv`; the prototype documents all other arguments."""
    return conv(input, weight, bias, stride, padding, output_padding, groups, dilation)


def transposed_convolution_backward(
    conv: Convolve,
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
    """Return the gradients of input, weight and bias of `conv`; the prototype documents all other arguments."""
    attributes = {"stride": stride, "padding": padding, "output_padding": output_padding}
    forward = partial(conv, **attributes, groups=groups, dilation=dilation)
    return _gradients_with_bias(forward, bias_sizes, grad_output, input, weight)


for _rank, _conv, _conv_transpose in (
    (2, functional.conv2d, functional.conv_transpose2d),
    (3, functional.conv3d, functional.conv_transpose3d),
):
    vendor.implements(f"diopiConvolution{_rank}d")(partial(convolution, _conv))
    vendor.implements(f"diopiConvolution{_rank}dBackward")(partial(convolution_backward, _conv))
    vendor.implements(f"diopiConvTranspose{_rank}d")(partial(transposed_convolution, _conv_transpose))
    vendor.implements(f"diopiConvTranspose{_rank}dBackward")(partial(transposed_convolution_backward, _conv_transpose))
