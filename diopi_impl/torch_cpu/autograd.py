"""Gradients by PyTorch's autograd, for functions whose gradient has no operator of its own."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def gradients(function: Callable[..., Tensor], grad_output: Tensor, *inputs: Tensor | None) -> list[Tensor | None]:
    """The gradient of `function(*inputs)` for every input, driven by `grad_output`.

    None for an absent input, zeros for one the result does not depend on.
    """
    leaves = [None if tensor is None else tensor.detach().requires_grad_() for tensor in inputs]
    with torch.enable_grad():
        result = function(*leaves)
    present = [leaf for leaf in leaves if leaf is not None]
    found = iter(torch.autograd.grad(result, present, grad_output, materialize_grads=True))
    return [None if leaf is None else next(found) for leaf in leaves]
