"""Gradients by PyTorch's autograd, for functions whose gradient is not an operator of PyTorch."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def gradients(function: Callable[..., Tensor], grad_output: Tensor, *inputs: Tensor | None) -> list[Tensor | None]:
    """Return the gradients of `function(*inputs)` with respect to the inputs.

    Args:
        function: a differentiable function.
        grad_output: the gradient of its result.
        inputs: the inputs; None for an omitted input.

    Returns:
        A gradient per input: None for omitted inputs, zeros for inputs that do not affect the result.
    """
    leaves = [None if tensor is None else tensor.detach().requires_grad_() for tensor in inputs]
    with torch.enable_grad():
        result = function(*leaves)
    present = [leaf for leaf in leaves if leaf is not None]
    grads = iter(torch.autograd.grad(result, present, grad_output, materialize_grads=True))
    return [None if leaf is None else next(grads) for leaf in leaves]
