"""The declaration of a vendor's arithmetic. Each field cites the definition of its values.

The suite derives error budgets for the declared arithmetic (docs/budgets.md). The default of each field is IEEE 754
arithmetic, as the standard requires it where a vendor declares nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, final

Products = Literal["ieee", "tf32", "hf32", "bf16x3", "bf16"]
Accumulation = Literal["float32", "half"]
Convolution = Literal["direct", "winograd-f2", "winograd-f4", "fft"]
Subnormals = Literal["keep", "flush-results", "flush-inputs"]
SignedZeros = Literal["keep", "ignore"]
SumOrder = Literal["fixed", "run-to-run"]
Float64 = Literal["ieee", "absent", "emulated"]


@final
@dataclass(frozen=True, kw_only=True)
class ErrorBound:
    """The largest error of an elementary function for arguments in a range.

    The error is at most `ulp` units in the last place of the result, plus `relative` times the result, plus `absolute`.

    Attributes:
        ulp: the part of the bound in units in the last place of the result.
        relative: the part of the bound relative to the result.
        absolute: the absolute part of the bound.
        minimum: the smallest argument for which the bound holds.
        maximum: the largest argument for which the bound holds.
    """

    ulp: float = 0.0
    relative: float = 0.0
    absolute: float = 0.0
    minimum: float = -math.inf
    maximum: float = math.inf


@final
@dataclass(frozen=True, kw_only=True)
class Numerics:
    """The arithmetic of a vendor.

    Attributes:
        name: the name of the declaration, as reports show it.
        float32_products: the precision to which the factors of products of float32 are rounded in matrix products,
            convolutions and attention. `tf32` keeps 10 explicit bits of the significand, `bf16` keeps 7, and `bf16x3`
            splits each factor into two bfloat16 numbers and adds three of the four products.
        half_accumulation: the type in which products and sums of half precision are accumulated.
        convolutions: the algorithms that convolutions may use.
        elementary: the error bounds of elementary functions in float32, by the name of the function.
        subnormals: whether subnormal numbers are kept; None if they may be flushed to zero, as the standard permits.
        signed_zeros: whether the sign of a zero is that of IEEE 754.
        sum_order: whether the order of additions may vary between equal calls, by family of functions.
        float64: whether the vendor has float64, and whether it emulates it with pairs of float32 numbers.
    """

    name: str = "ieee"
    float32_products: Products = "ieee"
    half_accumulation: Accumulation = "float32"
    convolutions: frozenset[Convolution] = frozenset({"direct"})
    elementary: Mapping[str, tuple[ErrorBound, ...]] = field(default_factory=dict)
    subnormals: Subnormals | None = None
    signed_zeros: SignedZeros = "keep"
    sum_order: Mapping[str, SumOrder] = field(default_factory=dict)
    float64: Float64 = "ieee"


IEEE = Numerics()
"""The arithmetic of a vendor that declares nothing."""
