"""Unary element-wise functions, such as the square root, the sine and the test for NaN."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from diopi_impl.torch_cpu import vendor

UNARY: dict[str, Callable[[Tensor], Tensor]] = {
    "diopiAbs": torch.abs,
    "diopiNeg": torch.neg,
    "diopiSign": torch.sign,
    "diopiSgn": torch.sgn,
    "diopiFloor": torch.floor,
    "diopiCeil": torch.ceil,
    "diopiSqrt": torch.sqrt,
    "diopiRsqrt": torch.rsqrt,
    "diopiReciprocal": torch.reciprocal,
    "diopiSin": torch.sin,
    "diopiCos": torch.cos,
    "diopiTan": torch.tan,
    "diopiAsin": torch.asin,
    "diopiAcos": torch.acos,
    "diopiAtan": torch.atan,
    "diopiSinh": torch.sinh,
    "diopiCosh": torch.cosh,
    "diopiTanh": torch.tanh,
    "diopiAsinh": torch.asinh,
    "diopiAcosh": torch.acosh,
    "diopiAtanh": torch.atanh,
    "diopiExp": torch.exp,
    "diopiExpm1": torch.expm1,
    "diopiLog": torch.log,
    "diopiLog2": torch.log2,
    "diopiLog10": torch.log10,
    "diopiLog1p": torch.log1p,
    "diopiErf": torch.erf,
    "diopiErfinv": torch.erfinv,
    "diopiIsNan": torch.isnan,
    "diopiBitwiseNot": torch.bitwise_not,
    "diopiLogicalNot": torch.logical_not,
}
"""The functions of PyTorch that implement functions of one tensor."""


def _make_unary_function(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Return an implementation that applies a function of PyTorch to the input."""

    def apply(input: Tensor) -> Tensor:
        """Apply the function."""
        return function(input)

    return apply


for _name, _function in UNARY.items():
    vendor.implements(_name)(_make_unary_function(_function))
