"""Activation functions and their gradients."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F  # noqa: N812 - the name PyTorch's documentation gives it
from torch import Tensor

from diopi_impl.torch_cpu import vendor
from diopi_impl.torch_cpu.adapter import torch_dtype

aten = torch.ops.aten

ONE_INPUT: dict[str, Callable[[Tensor], Tensor]] = {
    "diopiRelu": torch.relu,
    "diopiHardswish": F.hardswish,
    "diopiSigmoid": torch.sigmoid,
    "diopiSilu": F.silu,
}

GRADIENTS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "diopiHardswishBackward": aten.hardswish_backward,
    "diopiSiluBackward": aten.silu_backward,
}


def _one_input(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    def apply(input: Tensor) -> Tensor:
        return function(input)

    return apply


def _binary_gradient(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    def apply(grad_output: Tensor, input: Tensor) -> Tensor:
        return function(grad_output, input)

    return apply


for _name, _function in ONE_INPUT.items():
    vendor.implements(_name)(_one_input(_function))
for _name, _gradient_function in GRADIENTS.items():
    vendor.implements(_name)(_binary_gradient(_gradient_function))


@vendor.implements("diopiGelu")
def gelu(input, approximate):
    return F.gelu(input, approximate=approximate)


@vendor.implements("diopiGeluBackward")
def gelu_backward(grad_output, input, approximate):
    return aten.gelu_backward(grad_output, input, approximate=approximate)


@vendor.implements("diopiSoftmax")
def softmax(input, dim, *, out):
    return torch.softmax(input, dim, dtype=torch_dtype(out.dtype))


@vendor.implements("diopiLogSoftmax")
def log_softmax(input, dim, *, out):
    return torch.log_softmax(input, dim, dtype=torch_dtype(out.dtype))


@vendor.implements("diopiSoftmaxBackward")
def softmax_backward(grad_output, output, dim):
    return aten._softmax_backward_data(grad_output, output, dim, output.dtype)


@vendor.implements("diopiLogSoftmaxBackward")
def log_softmax_backward(grad_output, output, dim):
    return aten._log_softmax_backward_data(grad_output, output, dim, output.dtype)
