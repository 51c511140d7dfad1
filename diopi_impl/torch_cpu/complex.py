"""Complex numbers from real ones, and their parts.

The decorator of a function names the standard functions that it implements; `diopi_proto/functions` documents their
arguments. The function takes the arguments that it uses by name, as PyTorch tensors and Python values, with None for
an omitted argument. It returns the results.
"""

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
