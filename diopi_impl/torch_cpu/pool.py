"""Pooling over the last one, two or three axes, and its gradients.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as PyTorch tensors and Python values, with None for
an omitted argument. It returns the results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.nn import functional

from diopi_impl.torch_cpu import vendor
from diopi_impl.torch_cpu.autograd import gradients
from diopi_impl.torch_cpu.registration import implements_ranks

aten = torch.ops.aten
"""The operators of ATen."""

F = TypeVar("F", bound=Callable[..., Any])
"""The decorated implementation."""


def _pooling_function(name: str, rank: int) -> Callable[..., Any]:
    """Return PyTorch's pooling function of this name for `rank` spatial axes."""
    function: Callable[..., Any] = getattr(functional, f"{name}{rank}d")
    return function


@implements_ranks("diopiMaxPool*d")
def max_pool(input, kernel_size, stride, padding, dilation, ceil_mode):
    """Return the maximum of each window."""
    return _pooling_function("max_pool", len(kernel_size))(
        input, kernel_size, stride or None, padding, dilation, ceil_mode
    )


@implements_ranks("diopiMaxPool*dWithIndices")
def max_pool_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode):
    """Return the maximum of each window and its offset in the spatial axes."""
    pooling = _pooling_function("max_pool", len(kernel_size))
    return pooling(input, kernel_size, stride or None, padding, dilation, ceil_mode, return_indices=True)


@implements_ranks("diopiMaxPool*dBackward")
def max_pool_backward(grad_output, input, kernel_size, stride, padding, dilation, ceil_mode, indices):
    """Return zeros in the shape of input with grad_output added at the offsets of the maxima, `indices`."""
    stride = stride or kernel_size
    if len(kernel_size) == 1:  # PyTorch has no operator for one axis
        dy, x, positions = (tensor.unsqueeze(-2) for tensor in (grad_output, input, indices))
        lists = ([1, *kernel_size], [1, *stride], [0, *padding], [1, *dilation])
        return max_pool_backward(dy, x, *lists, ceil_mode, positions).squeeze(-2)
    backward = getattr(aten, f"max_pool{len(kernel_size)}d_with_indices_backward")
    if len(kernel_size) == 3:  # the kernel rejects some layouts of unbatched samples
        grad_output, input = grad_output.contiguous(), input.contiguous()
    return backward(grad_output, input, kernel_size, stride, padding, dilation, ceil_mode, indices.long())


@implements_ranks("diopiAvgPool*d", [1])
def avg_pool1d(input, kernel_size, stride, padding, ceil_mode, count_include_pad):
    """Return the mean of each window."""
    return _pooling_function("avg_pool", 1)(input, kernel_size, stride or None, padding, ceil_mode, count_include_pad)


@implements_ranks("diopiAvgPool*dBackward", [1])
def avg_pool1d_backward(grad_output, input, kernel_size, stride, padding, ceil_mode, count_include_pad):
    """Return the gradient of the input."""
    pooled = (kernel_size, stride, padding, ceil_mode, count_include_pad)
    return gradients(lambda x: avg_pool1d(x, *pooled), grad_output, input)[0]


@implements_ranks("diopiAvgPool*d", [2, 3])
def avg_pool(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    """Return the mean of each window."""
    pooling = _pooling_function("avg_pool", len(kernel_size))
    return pooling(input, kernel_size, stride or None, padding, ceil_mode, count_include_pad, divisor_override)


@implements_ranks("diopiAvgPool*dBackward", [2, 3])
def avg_pool_backward(grad_output, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    """Return the gradient of the input."""
    pooled = (kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
    return gradients(lambda x: avg_pool(x, *pooled), grad_output, input)[0]


@implements_ranks("diopiAdaptiveAvgPool*d")
def adaptive_avg_pool(input, output_size):
    """Return the means of windows that cover each axis; `output_size` is the number of windows along each axis."""
    return _pooling_function("adaptive_avg_pool", len(output_size))(input, output_size)


@implements_ranks("diopiAdaptiveMaxPool*d")
def adaptive_max_pool(input, output_size):
    """Return the maxima of windows that cover each axis; `output_size` is the number of windows along each axis."""
    return _pooling_function("adaptive_max_pool", len(output_size))(input, output_size)


@implements_ranks("diopiAdaptiveMaxPool*dWithIndices")
def adaptive_max_pool_with_indices(input, output_size):
    """Return the maxima and their offsets in the spatial axes."""
    return _pooling_function("adaptive_max_pool", len(output_size))(input, output_size, return_indices=True)


def _adaptive_avg_backward(grad_output: Tensor, input: Tensor, rank: int) -> Any:
    """Return the gradient of adaptive average pooling over `rank` axes."""
    if not grad_output.numel():
        return torch.zeros_like(input)  # PyTorch rejects gradients without elements
    return gradients(lambda x: adaptive_avg_pool(x, grad_output.shape[-rank:]), grad_output, input)[0]


def _adaptive_max_backward(grad_output: Tensor, input: Tensor, indices: Tensor, rank: int) -> Any:
    """Return the gradient of adaptive maximum pooling over `rank` axes."""
    if not grad_output.numel():
        return torch.zeros_like(input)  # PyTorch rejects gradients without elements
    if rank == 1:  # PyTorch has no operator for one axis
        dy, x, positions = (tensor.unsqueeze(-2) for tensor in (grad_output, input, indices))
        return _adaptive_max_backward(dy, x, positions, 2).squeeze(-2)
    return getattr(aten, f"adaptive_max_pool{rank}d_backward")(grad_output, input, indices.long().contiguous())


@implements_ranks("diopiPool*d")
def pool(input, mode, ksize, stride, padding, dilation, ceil_mode, exclusive, adaptive, output_size):
    """Return maximum or average pooling, sliding or adaptive, as the arguments select."""
    if adaptive:
        return _pooling_function(f"adaptive_{mode}_pool", len(output_size))(input, output_size)
    if mode == "max":
        return max_pool(input, ksize, stride, padding, dilation, ceil_mode)
    return _pooling_function(f"{mode}_pool", len(ksize))(
        input, ksize, stride or None, padding, ceil_mode, not exclusive
    )


def _implement_gradients(rank: int) -> None:
    """Register the gradients for `rank` spatial axes, a number that their arguments do not contain."""

    @vendor.implements(f"diopiAdaptiveAvgPool{rank}dBackward")
    def adaptive_avg_pool_backward(grad_output, input):
        """Return the gradient of the input."""
        return _adaptive_avg_backward(grad_output, input, rank)

    @vendor.implements(f"diopiAdaptiveMaxPool{rank}dBackward")
    def adaptive_max_pool_backward(grad_output, input, indices):
        """Return the gradient of the input."""
        return _adaptive_max_backward(grad_output, input, indices, rank)

    @vendor.implements(f"diopiPool{rank}dBackward")
    def pool_backward(
        grad_output, input, mode, ksize, stride, padding, dilation, ceil_mode, exclusive, adaptive, indices
    ):
        """Return the gradient of the input of `pool`."""
        if mode == "max" and indices is not None:
            if adaptive:
                return _adaptive_max_backward(grad_output, input, indices, rank)
            return max_pool_backward(grad_output, input, ksize, stride, padding, dilation, ceil_mode, indices)
        sizes = grad_output.shape[-rank:]
        pooled = (mode, ksize, stride, padding, dilation, ceil_mode, exclusive, adaptive, sizes)
        return gradients(lambda x: pool(x, *pooled), grad_output, input)[0]


for _rank in (1, 2, 3):
    _implement_gradients(_rank)
