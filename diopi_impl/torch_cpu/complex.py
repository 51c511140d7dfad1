"""Complex numbers from real ones, and their parts."""

from __future__ import annotations

import torch

from diopi_impl.torch_cpu import vendor


@vendor.implements("diopiConj")
def conj(input):
    """Return the complex conjugate."""
    return torch.conj_physical(input)


@vendor.implements("diopiReal")
def real(input):
    """Return the real part."""
    return torch.real(input)


@vendor.implements("diopiImag")
def imag(input):
    """Return the imaginary part."""
    return torch.imag(input)
