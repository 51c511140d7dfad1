"""Activation functions and their gradients.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as PyTorch tensors and Python values, with None for
an omitted argument. It returns the results. `out` describes results that the caller allocates: their shapes and
element types.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F  # noqa: N812 - the name PyTorch's documentation gives it
from torch import Tensor

from diopi_impl.torch_cpu import vendor
from diopi_impl.torch_cpu.adapter import torch_dtype

aten = torch.ops.aten
"""The operators of ATen."""

ONE_INPUT: dict[str, Callable[[Tensor], Tensor]] = {
    "diopiRelu": torch.relu,
    "diopiHardswish": F.hardswish,
    "diopiSigmoid": torch.sigmoid,
    "diopiSilu": F.silu,
}
"""The functions of PyTorch that implement functions of one input."""

GRADIENTS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "diopiHardswishBackward": aten.hardswish_backward,
    "diopiSiluBackward": aten.silu_backward,
}
"""The functions of PyTorch that implement gradients, from the gradient of the result and the input."""


def _make_unary_function(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Return an implementation that applies a function of PyTorch to the input."""

    def apply(input: Tensor) -> Tensor:
        """Apply the function."""
        return function(input)

    return apply


def _make_gradient_function(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    """Return an implementation that applies a gradient function of PyTorch."""

    def apply(grad_output: Tensor, input: Tensor) -> Tensor:
        """Apply the gradient function."""
        return function(grad_output, input)

    return apply


for _name, _function in ONE_INPUT.items():
    vendor.implements(_name)(_make_unary_function(_function))
for _name, _gradient_function in GRADIENTS.items():
    vendor.implements(_name)(_make_gradient_function(_gradient_function))


@vendor.implements("diopiGelu")
def gelu(input, approximate):
    """Return x · Φ(x), with Φ the normal distribution function, or with its tanh approximation."""
    return F.gelu(input, approximate=approximate)


@vendor.implements("diopiGeluBackward")
def gelu_backward(grad_output, input, approximate):
    """Return grad_output · (Φ(x) + x · Φ′(x)), with the exact Φ or its tanh approximation."""
    return aten.gelu_backward(grad_output, input, approximate=approximate)


@vendor.implements("diopiSoftmax")
def softmax(input, dim, *, out):
    """Return e^(x − m) / Σ e^(x − m) along `dim`, where m is the largest element of the slice."""
    return torch.softmax(input, dim, dtype=torch_dtype(out.dtype))


@vendor.implements("diopiLogSoftmax")
def log_softmax(input, dim, *, out):
    """Return x − m − ln Σ e^(x − m) along `dim`, where m is the largest element of the slice."""
    return torch.log_softmax(input, dim, dtype=torch_dtype(out.dtype))


@vendor.implements("diopiSoftmaxBackward")
def softmax_backward(grad_output, output, dim):
    """Return y · (g − Σ g · y) along `dim`, where y is the result of softmax and g is grad_output."""
    return aten._softmax_backward_data(grad_output, output, dim, output.dtype)


@vendor.implements("diopiLogSoftmaxBackward")
def log_softmax_backward(grad_output, output, dim):
    """Return g − e^y · Σ g along `dim`, where y is the result of log-softmax and g is grad_output."""
    return aten._log_softmax_backward_data(grad_output, output, dim, output.dtype)
