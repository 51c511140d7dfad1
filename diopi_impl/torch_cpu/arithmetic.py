"""Binary and ternary element-wise functions: arithmetic, bounds, comparison and logic, with their scalar forms.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as PyTorch tensors and Python values, with None for
an omitted argument. It returns the results.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from diopi_impl.torch_cpu import vendor
from diopi_proto.types import RoundMode

Operand = Tensor | float
"""An operand: a tensor, or a number if the form of the function takes a number."""

BINARY: dict[str, Callable[..., Tensor]] = {
    "diopiMul": torch.mul,
    "diopiRemainderTensor": torch.remainder,
    "diopiRemainder": torch.remainder,
    "diopiMaximum": torch.maximum,
    "diopiMinimum": torch.minimum,
    "diopiEq": torch.eq,
    "diopiNe": torch.ne,
    "diopiGe": torch.ge,
    "diopiGt": torch.gt,
    "diopiLe": torch.le,
    "diopiLt": torch.lt,
    "diopiLogicalAnd": torch.logical_and,
    "diopiLogicalOr": torch.logical_or,
    "diopiBitwiseAnd": torch.bitwise_and,
    "diopiBitwiseOr": torch.bitwise_or,
}
"""The PyTorch function of each function of two operands."""


def _make_binary_function(function: Callable[..., Tensor]) -> Callable[[Operand, Operand], Tensor]:
    """Return an implementation that applies a function of PyTorch to `input` and `other`."""

    def apply(input: Operand, other: Operand) -> Tensor:
        """Apply the function to both operands."""
        return function(input, other)

    return apply


for _name, _function in BINARY.items():
    vendor.implements(_name)(_make_binary_function(_function))


@vendor.implements("diopiAdd")
def add(input, other, alpha):
    """Return input + alpha · other; for Booleans, the logical or of input and (alpha and other)."""
    return torch.add(input, other, alpha=alpha)


@vendor.implements("diopiSub")
def sub(input, other, alpha):
    """Return input − alpha · other."""
    return torch.add(input, other, alpha=-alpha)  # torch.sub rejects bool


@vendor.implements("diopiDiv")
def div(input, other, rounding_mode):
    """Return input / other, rounded down or toward zero if `rounding_mode` requests it."""
    name = None if rounding_mode == RoundMode.none else RoundMode(rounding_mode).name
    return torch.div(input, other, rounding_mode=name)


@vendor.implements("diopiAddcmul")
def addcmul(input, tensor1, tensor2, value):
    """Return input + value · tensor1 · tensor2; `value` is truncated for integers."""
    return torch.addcmul(input, tensor1, tensor2, value=value)


@vendor.implements("diopiAddcdiv")
def addcdiv(input, tensor1, tensor2, value):
    """Return input + value · tensor1 / tensor2."""
    return torch.addcdiv(input, tensor1, tensor2, value=value)


@vendor.implements("diopiEqual")
def equal(input, other):
    """Return one Boolean: whether both tensors have the same shape and elements."""
    return input.shape == other.shape and bool(torch.eq(input, other).all())  # torch.equal requires equal types


@vendor.implements("diopiForeachaddScalar")
def foreach_add(inputs, other):
    """Return the sum of each tensor and a number."""
    return list(torch._foreach_add(inputs, other)) if inputs else []


@vendor.implements("diopiForeachmulScalar")
def foreach_mul(inputs, other):
    """Return the product of each tensor and a number."""
    return list(torch._foreach_mul(inputs, other)) if inputs else []


@vendor.implements("diopiForeachmulTensor")
def foreach_mul_by_tensor(inputs, other):
    """Return the product of each tensor and the element of `other`, a tensor of one element."""
    return list(torch._foreach_mul(inputs, other.reshape(()))) if inputs else []
