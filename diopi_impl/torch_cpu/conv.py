"""Convolutions and transposed convolutions over two and three spatial axes, and their gradients.

The functions of this module are independent of the number of spatial axes. The loop at the end registers each of them
once with the functions of PyTorch for two axes, and once with those for three. The prototype of `diopiConvolution2d`,
for example, documents the arguments of `convolution`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

from diopi_impl.torch_cpu import vendor
from diopi_impl.torch_cpu.autograd import gradients

Sizes = Sequence[int]
"""One number per spatial axis, or the shape of a tensor."""

ConvolutionFunction = Callable[..., Tensor]
"""A function of PyTorch with the parameters of `functional.conv2d` or `functional.conv_transpose2d`."""

Gradients = list[Tensor | None]
"""The gradients of input, weight and bias; the gradient of the bias is None if there is no bias."""


def _gradients_with_bias(
    function: ConvolutionFunction, bias_sizes: Sizes | None, grad_output: Tensor, input: Tensor, weight: Tensor
) -> Gradients:
    """Return the gradients of a function of input, weight and a bias of shape `bias_sizes` (None: without a bias)."""
    # The gradients do not depend on the values of the bias.
    bias = None if bias_sizes is None else torch.zeros(tuple(bias_sizes), dtype=weight.dtype)
    return gradients(function, grad_output, input, weight, bias)


def convolution(
    conv: ConvolutionFunction,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> Tensor:
    """Return the result of `conv`, e.g. `functional.conv2d`; the prototype documents all other arguments."""
    return conv(input, weight, bias, stride, padding, dilation, groups)


def convolution_backward(
    conv: ConvolutionFunction,
    grad_output: Tensor,
    input: Tensor,
    weight: Tensor,
    bias_sizes: Sizes | None,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> Gradients:
    """Return the gradients of `conv`; the prototype documents all other arguments."""
    forward = partial(conv, stride=stride, padding=padding, dilation=dilation, groups=groups)
    return _gradients_with_bias(forward, bias_sizes, grad_output, input, weight)


def transposed_convolution(
    conv: ConvolutionFunction,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sizes,
    padding: Sizes,
    output_padding: Sizes,
    groups: int,
    dilation: Sizes,
) -> Tensor:
    """Return the result of `conv`, e.g. `functional.conv_transpose2d`; the prototype documents all other arguments."""
    return conv(input, weight, bias, stride, padding, output_padding, groups, dilation)


def transposed_convolution_backward(
    conv: ConvolutionFunction,
    grad_output: Tensor,
    input: Tensor,
    weight: Tensor,
    bias_sizes: Sizes | None,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    output_padding: Sizes,
    groups: int,
) -> Gradients:
    """Return the gradients of `conv`; the prototype documents all other arguments."""
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
