"""The adapter of implementations by PyTorch, which take and return tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from diopi_impl.errors import UnsupportedDtypeError
from diopi_impl.functional import Adapted, out_keyword, split_results
from diopi_impl.specs import OutSpec
from diopi_impl.torch_cpu.overrides import current_observation
from diopi_proto.implementations import takes_out
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype

NO_KERNEL = "not implemented for"
"""Part of PyTorch's message if an operator does not support an element type."""


def adapt_to_tensors(prototype: Prototype, function: Callable[..., Any]) -> Adapted:
    """Return the adapted form of a function of tensors.

    Args:
        prototype: the prototype of the operator. If it has a common type, 0-d operands become 1-d.
        function: the implementation, which takes and returns tensors.

    Returns:
        The adapted function. It raises UnsupportedDtypeError if PyTorch has no kernel for an element type.
    """
    has_out, promotes = takes_out(function), bool(prototype.common_type)

    def call_with_tensors(arguments: Sequence[Any], out: Sequence[OutSpec]) -> Sequence[Any]:
        """Call the function; raise UnsupportedDtypeError if PyTorch has no kernel for the element types."""
        keywords = {"out": out_keyword(prototype, out)} if has_out else {}
        try:
            operands = _raise_zero_dim(arguments) if promotes else arguments
            with current_observation():
                return split_results(prototype, function(*operands, **keywords))
        except (RuntimeError, NotImplementedError) as error:
            if NO_KERNEL in str(error):
                raise UnsupportedDtypeError(f"PyTorch: {error}") from error
            raise

    return call_with_tensors


def _raise_zero_dim(operands: Sequence[Any]) -> Sequence[Any]:
    """Return the operands with 0-d tensors as 1-d tensors, but only if some operand has axes.

    In PyTorch's type promotion, 0-d tensors have less weight than tensors with axes. The standard treats both equally.
    """
    ranks = [operand.ndim for operand in operands if isinstance(operand, torch.Tensor)]
    if 0 not in ranks or not any(ranks):
        return operands
    return [
        operand.reshape(1) if isinstance(operand, torch.Tensor) and operand.ndim == 0 else operand
        for operand in operands
    ]


def torch_dtype(dtype: Dtype) -> torch.dtype:
    """Return PyTorch's element type."""
    return DTYPES[dtype]


DTYPES: dict[Dtype, torch.dtype] = {dtype: getattr(torch, dtype.name) for dtype in Dtype if hasattr(torch, dtype.name)}
"""PyTorch's element types."""
