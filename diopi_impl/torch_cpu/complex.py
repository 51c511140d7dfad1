"""Complex numbers from real ones, and their parts."""

from __future__ import annotations

import torch
from torch import Tensor

from diopi_impl.torch_cpu import vendor


@vendor.implements("diopiComplex")
def complex_(real: Tensor, imag: Tensor) -> Tensor:
    return torch.complex(real, imag)


@vendor.implements("diopiPolar")
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    return torch.polar(abs, angle)


@vendor.implements("diopiConj")
def conj(input: Tensor) -> Tensor:
    return torch.conj_physical(input)


@vendor.implements("diopiReal")
def real(input: Tensor) -> Tensor:
    return torch.real(input)


@vendor.implements("diopiImag")
def imag(input: Tensor) -> Tensor:
    return torch.imag(input)
