"""Evaluate a network in float64 with the rounding of float32 arithmetic simulated by perturbations.

This is the perturbation of docs/budgets.md, applied to every operator instead of only to the inputs: the results of an
operator are moved up or down by half an ulp, and sums also by their terms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import numpy as np
import torch
from torch import Tensor
from torch._decomp import decomposition_table
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from diopi_proto.types import Dtype
from diopi_test.oracle.reference.sums import accumulation_terms
from lib_rt.formats import format_of, ulp

aten = torch.ops.aten
"""The operators of ATen."""

EPS = format_of(Dtype.float32).epsilon
"""The distance from 1 to the next float32 number."""

EXACT = {
    aten.cat.default,
    aten.clone.default,
    aten.embedding.default,
    aten.index.Tensor,
    aten.max_pool2d_with_indices.default,
    aten.relu.default,
    aten.relu_.default,
    aten.stack.default,
}
"""Operators besides views that do not round."""


def _convolution_then_bias(x: Tensor, weight: Tensor, bias: Tensor | None, *options: Any) -> Tensor:
    """Return a convolution with the bias added separately, so that both steps round."""
    product = aten.convolution.default(x, weight, None, *options)
    return product if bias is None else product + bias.reshape(-1, *[1] * (x.ndim - 2))


def _sum_then_divide(x: Tensor, dim: list[int], keepdim: bool = False) -> Tensor:
    """Return the mean as a sum and a division, so that both steps round."""
    total = x.sum(dim, keepdim)
    return total / (x.numel() // max(total.numel(), 1))


COMPOSED: Mapping[Any, Callable[..., Any]] = {
    aten.mean.dim: _sum_then_divide,
    **{
        operator: decomposition_table[operator]
        for operator in (
            aten._softmax.default,
            aten.addmm.default,
            aten.native_batch_norm.default,
            aten.native_layer_norm.default,
        )
    },
}
"""Decompositions of operators that round several times."""

PRODUCTS = (aten.bmm.default, aten.mm.default, aten.convolution.default)
"""Operators that sum products of their first two arguments."""


@final
class SimulatedRounding(TorchDispatchMode):
    """A dispatch mode that perturbs the results of operators on float64 tensors; `rng` draws the directions."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__()
        self._rng = rng

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operator; PyTorch calls this method."""
        kwargs = kwargs or {}
        composed = COMPOSED.get(func)
        if func is aten.convolution.default and args[2] is not None:
            composed = _convolution_then_bias
        if composed is not None:
            with self:
                return composed(*args, **kwargs)
        result = func(*args, **kwargs)
        if func.is_view or func in EXACT:
            return result
        terms = _sum_terms(func, args, kwargs, result)
        moved = tree_map_only(Tensor, lambda tensor: self.perturb(tensor, terms), result)
        return result.copy_(moved) if func._schema.is_mutable else moved

    def perturb(self, tensor: Tensor, terms: Tensor | float = 0.0) -> Tensor:
        """Return a floating-point tensor moved by half an ulp and by eps times the terms.

        The sign of each move is random. Zeros and integers do not change.
        """
        if not tensor.is_floating_point():
            return tensor
        half = torch.from_numpy(ulp(tensor.numpy(), Dtype.float32)).nan_to_num() / 2
        change = self._draw_signs(tensor) * half * (tensor != 0) + self._draw_signs(tensor) * EPS * terms
        return tensor + change

    def _draw_signs(self, tensor: Tensor) -> Tensor:
        """Return a tensor of randomly drawn signs, +1 or -1, with the shape of a tensor."""
        return torch.from_numpy(self._rng.integers(0, 2, tuple(tensor.shape)) * 2.0 - 1)


def _sum_terms(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], value: Any) -> Any:
    """Return the size of the terms of a sum as docs/budgets.md defines it; 0 for other operators."""
    operands = 2 if func in PRODUCTS else 1 if func is aten.sum.dim_IntList else 0
    if not operands:
        return 0.0

    def total(change: Callable[[Tensor], Tensor]) -> Any:
        """Call the operator with `change` applied to its operands, and return the result in NumPy."""
        return func(*map(change, args[:operands]), *args[operands:], **kwargs).numpy()

    count, magnitudes, squares = total(torch.ones_like), total(torch.abs), total(torch.square)
    return torch.from_numpy(accumulation_terms(count, magnitudes, squares, value.numpy()))
