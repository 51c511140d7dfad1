"""Defects of FlagGems, whose kernels Triton's interpreter runs on the CPU.

Each function returns the actual result of a call; its decorator states the call and the expected result.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from defects.registry import Array, Library, float32, float64, format_result, int64, nan, register_defect

FLAG_GEMS = Library("FlagGems", ("flag_gems", "triton", "torch"))


def flag_gems(name: str, *operands: Any) -> Array:
    """Return the result of a function of the library, or the first of its results."""
    import torch

    sys.path.insert(0, str(Path(__file__).parents[1] / "flag_gems"))
    from flag_gems_cpu import import_for_cpu

    function = getattr(import_for_cpu(), name)
    result = function(*[torch.from_numpy(value) if isinstance(value, np.ndarray) else value for value in operands])
    values: Array = (result[0] if isinstance(result, tuple) else result).numpy()
    return values


@register_defect(FLAG_GEMS, "relu of NaN", float32([nan]), "torch.relu: max(0, x), which is NaN for NaN in PyTorch")
def relu_of_nan() -> Array:
    return flag_gems("relu", float32([nan]))


@register_defect(
    FLAG_GEMS,
    "exp of float64 0.3",
    float64([1.3498588075760032]),
    "eˣ, in float64; cos, erf, gelu, log, rsqrt, sigmoid, silu, sin and tanh also compute float64 in float32",
)
def exponential_of_float64() -> Array:
    return flag_gems("exp", float64([0.3]))


@register_defect(
    FLAG_GEMS,
    "log of int64 [2, 3]",
    float32([0.6931472, 1.0986123]),
    "torch.log of integers has the default floating-point type",
)
def logarithm_of_integers() -> Array:
    return flag_gems("log", int64([2, 3]))


@register_defect(FLAG_GEMS, "pow of int64 3, 20", int64([3**20]), "torch.pow is defined for int64; 3^20 fits")
def power_of_int64() -> Array:
    return flag_gems("pow_tensor_tensor", int64([3]), int64([20]))


@register_defect(
    FLAG_GEMS, "clamp of int64 2^24 + 1 to 0 and 2^40", int64([2**24 + 1]), "a number between the bounds is itself"
)
def clamp_of_int64() -> Array:
    return flag_gems("clamp", int64([2**24 + 1]), 0, 2**40)


@register_defect(FLAG_GEMS, "triu of int64 2^24 + 1", int64([[2**24 + 1]]), "torch.triu copies elements")
def triangle_of_int64() -> Array:
    return flag_gems("triu", int64([[2**24 + 1]]))


@register_defect(
    FLAG_GEMS, "topk of [1, NaN, 2] with k = 1", float32([nan]), "torch.topk: NaN counts as the largest number"
)
def largest_with_nan() -> Array:
    return flag_gems("topk", float32([1, nan, 2]), 1)


@register_defect(FLAG_GEMS, "mean of no elements", "NaN", "torch.mean of no elements is NaN")
def mean_of_nothing() -> str:
    try:
        return format_result(flag_gems("mean", float32([])))
    except ZeroDivisionError:
        return "ZeroDivisionError"
