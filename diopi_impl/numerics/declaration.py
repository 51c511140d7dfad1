"""The declaration of a vendor's arithmetic. Each field cites the definition of its values.

The suite derives error budgets for the declared arithmetic (docs/budgets.md). The default of each field is IEEE 754
arithmetic, as the standard requires it where a vendor declares nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Literal, final

from diopi_impl.numerics.digest import compute_digest
from diopi_impl.numerics.validation import (
    NumericsError,
    bound_problems,
    contradictions,
    deviating_fields,
    value_problems,
)

# The possible values of the fields of a declaration; the attributes of `Numerics` explain them.
Products = Literal["ieee", "tf32", "hf32", "bf16x3", "bf16"]
"""The precision of the factors of float32 products."""

Accumulation = Literal["float32", "half"]
"""The type in which half-precision sums are accumulated."""

Convolution = Literal["direct", "winograd-f2", "winograd-f4", "fft"]
"""The algorithm of convolutions."""

Subnormals = Literal["keep", "flush-results", "flush-inputs"]
"""Whether subnormal numbers are kept, or flushed to zero as results or also as inputs."""

SignedZeros = Literal["keep", "ignore"]
"""Whether the signs of zeros are kept."""

SumOrder = Literal["fixed", "run-to-run"]
"""Whether the order of sums is the same in every run."""

Float64 = Literal["ieee", "absent", "emulated"]
"""Whether float64 is IEEE arithmetic, absent, or emulated with a lower precision."""


def _define(definition: str) -> dict[str, Any]:
    """Return the metadata of a field whose values the cited documents define."""
    return {"definition": definition}


_LABEL = _define("none: the value is text for people")
"""The metadata of fields whose values have no definition."""

_PRODUCT_FORMATS = _define(
    "PTX ISA 8.7, section 5.2.3, alternate floating-point data formats (tf32, bf16); CANN, ATC option --allow_hf32 "
    "(hf32); Henry, Tang and Heinecke, Leveraging the bfloat16 artificial intelligence datatype for higher-precision "
    "computations, ARITH 2019, section III (bf16x3)"
)
"""The metadata of fields whose values are formats of factors."""


@final
@dataclass(frozen=True, kw_only=True)
class ErrorBound:
    """The largest error of an elementary function for arguments in a range.

    The error is at most `ulp` units in the last place of the result, plus `relative` times the result, plus `absolute`.
    The range concerns the only argument, the divisor of `divide`, the base of `pow`, and the first argument of `atan2`.

    Attributes:
        ulp: the part of the bound in units in the last place of the result.
        relative: the part of the bound relative to the result.
        absolute: the absolute part of the bound.
        minimum: the smallest argument for which the bound holds.
        maximum: the largest argument for which the bound holds.

    Raises:
        NumericsError: if a value is invalid, or if the bound permits a relative error above 0.1.
    """

    ulp: float = 0.0
    relative: float = 0.0
    absolute: float = 0.0
    minimum: float = -math.inf
    maximum: float = math.inf

    def __post_init__(self) -> None:
        _raise_problems(bound_problems(self))
        for bound in fields(self):
            object.__setattr__(self, bound.name, float(getattr(self, bound.name)))


@final
@dataclass(frozen=True, kw_only=True)
class Numerics:
    """The arithmetic of a vendor.

    Attributes:
        name: the name of the declaration, as reports show it.
        sources: the documents that describe the vendor's arithmetic.
        float32_products: the precision to which the factors of products of float32 are rounded in matrix products,
            convolutions and attention. `tf32` keeps 10 explicit bits of the significand, `hf32` keeps 11, and `bf16`
            keeps 7. `bf16x3` splits each factor into two bfloat16 numbers and adds three of the four products.
        convolution_products: the same for convolutions only; None if `float32_products` applies to them.
        half_accumulation: the type in which products and sums of half precision are accumulated.
        convolutions: the algorithms that convolutions may use.
        elementary: the error bounds of elementary functions in float32, by the name of the function. If several ranges
            contain an argument, the largest bound applies. If none does, the result is as for IEEE 754 arithmetic.
        subnormals: whether subnormal numbers are kept, results are flushed to zero, or inputs and results are flushed
            to zero; None if results may be flushed to zero, as the standard permits.
        signed_zeros: whether the sign of a zero is that of IEEE 754.
        sum_order: whether the order of additions may vary between equal calls, by family of functions.
        float64: whether the vendor has float64, and whether it emulates it with pairs of float32 numbers.

    Raises:
        NumericsError: if a value is invalid, or if two fields contradict each other.
    """

    name: str = field(default="ieee", metadata=_LABEL)
    sources: tuple[str, ...] = field(default=(), metadata=_LABEL)
    float32_products: Products = field(default="ieee", metadata=_PRODUCT_FORMATS)
    convolution_products: Products | None = field(default=None, metadata=_PRODUCT_FORMATS)
    half_accumulation: Accumulation = field(
        default="float32",
        metadata=_define("PTX ISA 8.7, section 9.7.14, mma: the type of the accumulator, .f16 or .f32"),
    )
    convolutions: frozenset[Convolution] = field(
        default=frozenset({"direct"}),
        metadata=_define(
            "Lavin and Gray, Fast algorithms for convolutional neural networks, CVPR 2016, section 4 (winograd-f2 is "
            "F(2x2,3x3), winograd-f4 is F(4x4,3x3)); Mathieu, Henaff and LeCun, Fast training of convolutional "
            "networks through FFTs, ICLR 2014 (fft)"
        ),
    )
    elementary: Mapping[str, tuple[ErrorBound, ...]] = field(
        default_factory=dict,
        metadata=_define(
            "ISO/IEC 9899:2018 (C17), section 7.12 (the functions); Muller, On the definition of ulp(x), INRIA "
            "RR-5504, 2005 (the unit in the last place)"
        ),
    )
    subnormals: Subnormals | None = field(
        default=None,
        metadata=_define("IEEE 754-2019, section 7.5; PTX ISA 8.7, section 9.7.3, .ftz (flush-inputs flushes both)"),
    )
    signed_zeros: SignedZeros = field(default="keep", metadata=_define("IEEE 754-2019, section 6.3"))
    sum_order: Mapping[str, SumOrder] = field(
        default_factory=dict,
        metadata=_define("Demmel and Nguyen, Fast reproducible floating-point summation, ARITH 2013, section I"),
    )
    float64: Float64 = field(
        default="ieee",
        metadata=_define(
            "IEEE 754-2019, section 3.3, binary64 (ieee); Dekker, A floating-point technique for extending the "
            "available precision, Numerische Mathematik 18, 1971 (emulated)"
        ),
    )

    def __post_init__(self) -> None:
        _raise_problems(value_problems(self))
        elementary = {name: tuple(sorted(bounds, key=_range_of)) for name, bounds in sorted(self.elementary.items())}
        sum_order = {family: order for family, order in sorted(self.sum_order.items()) if order != "fixed"}
        products = None if self.convolution_products == self.float32_products else self.convolution_products
        object.__setattr__(self, "sources", tuple(self.sources))
        object.__setattr__(self, "convolutions", frozenset(self.convolutions))
        object.__setattr__(self, "convolution_products", products)
        object.__setattr__(self, "elementary", elementary)
        object.__setattr__(self, "sum_order", sum_order)
        _raise_problems(contradictions(self))

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of the arithmetic. Declarations that differ only in name and sources have the same digest."""
        return compute_digest(self)

    @property
    def is_ieee(self) -> bool:
        """Whether the declaration permits nothing that the standard forbids where a vendor declares nothing."""
        return not deviating_fields(self)

    def __hash__(self) -> int:
        return hash((self.name, self.digest))

    def products_of(self, family: str) -> Products:
        """Return the precision of the factors of float32 products in functions of a family."""
        return self.convolution_products or self.float32_products if family == "conv" else self.float32_products


def _range_of(bound: ErrorBound) -> tuple[float, float]:
    """Return the range of arguments of a bound, by which bounds are sorted."""
    return bound.minimum, bound.maximum


def _raise_problems(problems: list[str]) -> None:
    """Raise NumericsError if there are problems."""
    if problems:
        raise NumericsError("\n".join(problems))


IEEE = Numerics(sources=("IEEE 754-2019",))
"""The arithmetic of a vendor that declares nothing."""
