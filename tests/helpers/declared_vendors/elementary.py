"""Elementary functions in float32 with errors up to a bound, and arithmetic that flushes subnormal numbers to zero."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch._decomp import get_decompositions

from declared_vendors.emulation import Replacement, Replacements
from diopi_impl.numerics import ErrorBound

Bounds = Mapping[str, Sequence[ErrorBound]]
"""The error bounds of elementary functions by name."""

_NAMES = """
acos acosh asin asinh atan atan2 atanh cos cosh erf erfinv exp exp2 expm1 log log10 log1p log2 pow reciprocal rsqrt
sigmoid sin sinh sqrt tan tanh
"""
"""Elementary functions with equal names in `torch`, in ATen and in declarations."""

FUNCTIONS: Mapping[str, Callable[..., Tensor]] = {
    "divide": torch.divide,
    **{name: getattr(torch, name) for name in _NAMES.split()},
}
"""The functions of which the errors can be enlarged."""

_OPERATORS = {"divide": "div"}
"""The names of ATen operators that differ from the names of the functions."""

_SATURATING = ("erf", "expm1", "sigmoid", "tanh")
"""Functions whose results are exact where they round to 1 or −1."""

_COMPOSED = (
    "_log_softmax elu gelu gelu_backward log_sigmoid_forward mish sigmoid_backward silu silu_backward _softmax softplus"
)
"""Operators that are computed from elementary functions."""


def inexact_replacements(bounds: Bounds) -> dict[str, Callable[..., Any]]:
    """Return the replacements by which functions have errors up to their bounds, in float32 and half precision."""
    return {_OPERATORS.get(name, name): partial(_compute_inexactly, name, bounds[name]) for name in bounds}


def compositions() -> dict[str, Callable[..., Any]]:
    """Return the decompositions of operators that are computed from elementary functions."""
    operators = [getattr(torch.ops.aten, name) for name in _COMPOSED.split()]
    return {operator.overloadpacket.__name__: f for operator, f in get_decompositions(operators).items()}


def _compute_inexactly(name: str, bounds: Sequence[ErrorBound], func: Any, *operands: Any, **keywords: Any) -> Any:
    """Return the result of a function with errors as large as the bounds permit.

    Args:
        name: the name of the function, a key of `FUNCTIONS`.
        bounds: the error bounds.
        func: the operator of PyTorch.
        *operands: the operands.
        **keywords: the keyword arguments.

    Returns:
        The result.
    """
    exact = func(*operands, **keywords)
    # PyTorch copies the base for the exponent 1, and multiplies for the exponent 2
    if name == "pow" and not isinstance(operands[1], Tensor) and operands[1] in (1, 2):
        return exact
    tensors = [operand for operand in operands if isinstance(operand, Tensor)]
    if exact.dtype not in (torch.float32, torch.float16, torch.bfloat16) or keywords.get("rounding_mode"):
        return exact
    double_operands = [operand.double() if isinstance(operand, Tensor) else operand for operand in operands]
    truth = FUNCTIONS[name](*double_operands)
    argument = (
        double_operands[-1] if name == "divide" and isinstance(double_operands[-1], Tensor) else tensors[0].double()
    )
    error = _largest_errors(bounds, argument.expand(truth.shape), truth) * _scramble(truth)
    result = (truth + error).float().to(exact.dtype)
    is_ordinary = torch.isfinite(exact) & (truth != 0) & torch.isfinite(result) & (error != 0)
    is_saturated = exact.abs() == 1 if name in _SATURATING else torch.zeros_like(is_ordinary)
    return torch.where(is_ordinary & ~is_saturated, result, exact)


def _largest_errors(bounds: Sequence[ErrorBound], argument: Tensor, truth: Tensor) -> Tensor:
    """Return the error that each result may have before it is rounded to float32; 0 where no bound applies."""
    exponent = torch.frexp(truth)[1].clamp(min=-125)
    ulp = torch.ldexp(torch.ones_like(truth), exponent - 24)
    errors = torch.zeros_like(truth)
    for bound in bounds:
        size = bound.ulp * ulp + bound.relative * truth.abs() + bound.absolute
        errors = torch.where((argument >= bound.minimum) & (argument <= bound.maximum), size.maximum(errors), errors)
    return (errors - ulp).clamp(min=0)


_FIRST_MULTIPLIER, _SECOND_MULTIPLIER = 0x9E3779B97F4A7C15 - 2**64, 0x94D049BB133111EB - 2**64
"""The multipliers of the generator SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), as signed numbers."""


def _scramble(values: Tensor) -> Tensor:
    """Return numbers from −1 to 1 that depend on the bits of the values and seem to be random."""
    bits = values.contiguous().view(torch.int64)
    mixed = (bits ^ (bits >> 29)) * _FIRST_MULTIPLIER
    mixed = (mixed ^ (mixed >> 32)) * _SECOND_MULTIPLIER
    return (mixed >> 11).double() * 2.0**-52


_FLUSHING = """
add sub mul div exp expm1 log sqrt rsqrt reciprocal sin tan tanh sigmoid sum mean mm bmm addmm baddbmm convolution
addcmul addcdiv pow rsub _softmax silu gelu
"""
"""Operators of which the arguments and results are flushed."""


def flush_replacements(replacements: Replacements, *, arguments: bool) -> dict[str, Replacement]:
    """Return the replacements by which arithmetic flushes subnormal numbers to zero.

    Args:
        replacements: how the operators compute apart from flushing.
        arguments: whether arguments are flushed, and not only results.
    """
    names = {*_FLUSHING.split(), *replacements}
    return {name: partial(_compute_flushing, arguments, replacements.get(name)) for name in names}


def _compute_flushing(
    arguments: bool, replacement: Replacement | None, func: Any, *operands: Any, **keywords: Any
) -> Any:
    """Return the result of a function with subnormal numbers flushed to zero.

    Args:
        arguments: whether subnormal arguments are flushed, too.
        replacement: computes the function instead of PyTorch; None for PyTorch.
        func: the operator of PyTorch.
        *operands: the operands.
        **keywords: the keyword arguments.

    Returns:
        The result.
    """
    compute = partial(replacement, func) if replacement else func
    values = [flush_to_zero(operand) for operand in operands] if arguments else operands
    return flush_to_zero(compute(*values, **keywords))


def flush_to_zero(value: Any) -> Any:
    """Return a tensor of float32 or bfloat16 with zeros of the same sign for subnormal numbers; else the value."""
    if not isinstance(value, Tensor) or value.dtype not in (torch.float32, torch.bfloat16):
        return value
    is_subnormal = value.abs() < torch.finfo(torch.float32).tiny
    return torch.where(is_subnormal, torch.copysign(torch.zeros_like(value), value), value)
