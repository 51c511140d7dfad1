"""Faults in operators of PyTorch, each for one operator, one element type and one shape, on any device.

A fault receives the function that computes the correct result, and the arguments of the operator. It returns the
incorrect result.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

Change = Callable[[Callable[[], Any], Sequence[Any]], Any]
"""Returns the faulty result for a function that computes the correct one and the arguments of the call."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A fault in the calls of an operator whose first tensor has an element type and a shape.

    Attributes:
        operator: the name of the operator, with the overload unless that is `default`.
        dtype: the element type of the first tensor.
        shape: the shape of the first tensor.
        change: the fault.
        description: the fault in words.
    """

    operator: str
    dtype: torch.dtype
    shape: tuple[int, ...]
    change: Change
    description: str


class PlantedFaults(TorchDispatchMode):  # type: ignore[no-untyped-call]  # PyTorch does not annotate it
    """Calls operators with faults.

    Attributes:
        triggered: the faults that changed a call.
    """

    def __init__(self, faults: Collection[Fault]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # PyTorch does not annotate it
        self._faults = {(fault.operator, fault.dtype, fault.shape): fault for fault in faults}
        self.triggered: set[Fault] = set()

    def __torch_dispatch__(
        self, operator: Any, types: object, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        def compute() -> Any:
            """Return the correct result."""
            return operator(*args, **(kwargs or {}))

        name = str(operator).removeprefix("aten.").removesuffix(".default")
        first = next((value for value in args if isinstance(value, Tensor)), None)
        fault = None if first is None else self._faults.get((name, first.dtype, tuple(first.shape)))
        if fault is None:
            return compute()
        self.triggered.add(fault)
        return fault.change(compute, args)


def _in_bfloat16(compute: Callable[[], Any], args: Sequence[Any]) -> Any:
    """Round the result to bfloat16."""
    result = compute()
    return result.copy_(result.to(torch.bfloat16))


def _with_zero_row(compute: Callable[[], Any], args: Sequence[Any]) -> Any:
    """Set the last row of the result to 0."""
    result = compute()
    result[-1] = 0
    return result


def _scaled(factor: float, place: int | None = None) -> Change:
    """Return a fault that scales the result, or one of several results."""

    def change(compute: Callable[[], Any], args: Sequence[Any]) -> Any:
        result = compute()
        (result if place is None else result[place]).mul_(factor)
        return result

    return change


def _products_in_half(compute: Callable[[], Any], args: Sequence[Any]) -> Any:
    """Multiply the matrices in half precision."""
    return torch.bmm(args[0].half(), args[1].half()).to(args[0].dtype)


def _gelu_by_tanh(compute: Callable[[], Any], args: Sequence[Any]) -> Any:
    """Compute GELU with the approximation by tanh."""
    return torch.ops.aten.gelu(args[0], approximate="tanh")


def _unbiased_layer_norm(compute: Callable[[], Any], args: Sequence[Any]) -> Any:
    """Divide the variance by n - 1 instead of n."""
    result, mean, inverse = compute()
    size = args[0].shape[-1]
    return result * ((size - 1) / size) ** 0.5, mean, inverse


def _last_gradient_of_equal_indices(compute: Callable[[], Any], args: Sequence[Any]) -> Any:
    """Use only the last of the gradients that belong to one row of an embedding."""
    result = compute()
    result[args[1].flatten()] = args[0].flatten(0, -2)
    return result


def _second_best_first(compute: Callable[[], Any], args: Sequence[Any]) -> Any:
    """Return the indices of the two largest elements in the wrong order."""
    values, indices = compute()
    return values, torch.cat([indices[:, 1:2], indices[:, :1], indices[:, 2:]], 1)


F32, BF16 = torch.float32, torch.bfloat16


def _fault(operator: str, dtype: torch.dtype, shape: tuple[int, ...], change: Change, description: str) -> Fault:
    """Return a fault; the arguments in the order of its attributes keep the table below legible."""
    return Fault(operator=operator, dtype=dtype, shape=shape, change=change, description=description)


FAULTS = (
    _fault("addmm", BF16, (48,), _scaled(1.02), "the result is 2 % too large"),
    _fault("mm", F32, (48, 24), _with_zero_row, "the last row is not written"),
    _fault("bmm", F32, (6, 8, 8), _products_in_half, "computed in float16"),
    _fault("_softmax", F32, (3, 2, 8, 8), _in_bfloat16, "rounded to bfloat16"),
    _fault("_softmax_backward_data", BF16, (3, 2, 8, 8), _scaled(0.9), "the gradient is 10 % too small"),
    _fault("gelu", F32, (3, 8, 32), _gelu_by_tanh, "the approximation by tanh"),
    _fault("native_layer_norm", F32, (1, 2, 16), _unbiased_layer_norm, "variance with n - 1 instead of n"),
    _fault("native_layer_norm_backward", F32, (3, 8, 16), _scaled(1.001, 1), "the gradient of the weight is 0.1 % off"),
    _fault("_log_softmax", F32, (24, 29), _in_bfloat16, "rounded to bfloat16"),
    _fault("embedding_dense_backward", F32, (3, 8, 16), _last_gradient_of_equal_indices, "equal indices are not added"),
    _fault("lerp_.Scalar", F32, (16, 32), _in_bfloat16, "the moment is rounded to bfloat16"),
    _fault("topk", F32, (1, 29), _second_best_first, "the first two indices are exchanged"),
)
"""Twelve faults that `small_language_model` meets: in the forward pass, gradients, the optimizer and generation."""
