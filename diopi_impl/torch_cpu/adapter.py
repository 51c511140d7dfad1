"""The adapter of torch_cpu, which converts NumPy arrays to tensors and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from diopi_impl.errors import UnsupportedDtypeError
from diopi_impl.functional import Adapted, OutSpec, out_keyword, split_results
from diopi_proto.implementations import takes_out
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from lib_rt.dtypes import to_numpy

_BFLOAT16 = to_numpy(Dtype.bfloat16)

NO_KERNEL = "not implemented for"
"""Part of PyTorch's message if an operator does not support an element type."""


def adapt_to_tensors(prototype: Prototype, function: Callable[..., Any]) -> Adapted:
    """Return a function of arrays that calls a function of tensors.

    Args:
        prototype: the prototype of the operator. If it has a common type, 0-d operands become 1-d.
        function: the implementation, which takes and returns tensors.

    Returns:
        The adapted function. It raises UnsupportedDtypeError if PyTorch has no kernel for an element type.
    """
    has_out = takes_out(function)

    def call_with_tensors(arguments: Sequence[Any], out: Sequence[OutSpec]) -> Sequence[Any]:
        """Call the function with tensors, and return its results as arrays."""
        keywords = {"out": out_keyword(prototype, out)} if has_out else {}
        try:
            tensors = map(to_torch, _raise_zero_dim(arguments) if prototype.common_type else arguments)
            results = split_results(prototype, function(*tensors, **keywords))
        except (RuntimeError, NotImplementedError) as error:
            if NO_KERNEL in str(error):
                raise UnsupportedDtypeError(f"PyTorch: {error}") from error
            raise
        return [from_torch(result) for result in results]

    return call_with_tensors


def _raise_zero_dim(operands: Sequence[Any]) -> Sequence[Any]:
    """Return the operands with 0-d arrays as 1-d arrays, but only if some operand has axes.

    In PyTorch's type promotion, 0-d tensors have less weight than tensors with axes. The standard treats both alike.
    """
    is_array = [isinstance(operand, np.ndarray) for operand in operands]
    if not any(flag and operand.ndim for flag, operand in zip(is_array, operands, strict=True)):
        return operands
    return [np.atleast_1d(operand) if flag else operand for flag, operand in zip(is_array, operands, strict=True)]


def torch_dtype(dtype: Dtype) -> torch.dtype:
    """Return PyTorch's element type."""
    found: torch.dtype = getattr(torch, dtype.name)
    return found


def to_torch(value: Any) -> Any:
    """Return arrays, and lists of arrays, as tensors that own their memory; return other values unchanged."""
    if isinstance(value, list):
        return [to_torch(entry) for entry in value]
    if not isinstance(value, np.ndarray):
        return value
    dense = np.array(
        value, order="C" if 0 in value.strides else "K"
    )  # keeps dense layouts; expanded arrays become row-major
    if value.dtype == _BFLOAT16:
        return torch.from_numpy(dense.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(dense)


def from_torch(value: Any) -> Any:
    """Return tensors as arrays, and lists and tuples of tensors as lists; return other values unchanged."""
    if isinstance(value, list | tuple):
        return [from_torch(entry) for entry in value]
    if not isinstance(value, torch.Tensor):
        return value
    value = value.detach().resolve_conj().resolve_neg()
    if value.dtype is torch.bfloat16:
        return value.view(torch.int16).numpy().view(_BFLOAT16)
    return value.numpy()
