"""Vendors with a known arithmetic: torch_cpu, changed to compute as accelerators do. They declare nothing.

Tests and benchmarks measure with them whether the suite finds an undeclared arithmetic, and accepts a declared one.
Each vendor of `EMULATED` has an attribute `emulated`: the declaration that describes its arithmetic. In a process that
has `tests/helpers` on its path, `declared_vendors:tf32` names a vendor.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

from declared_vendors.convolutions import fft_replacements, winograd_replacements
from declared_vendors.elementary import FUNCTIONS, compositions, flush_replacements, inexact_replacements
from declared_vendors.emulation import EmulatedVendor
from declared_vendors.products import (
    HALF,
    SINGLE,
    Multiply,
    accumulate_in_half,
    multiply_in_changing_order,
    multiply_in_three_parts,
    multiply_rounded,
    multiply_truncated,
    product_replacements,
    round_significand,
)
from declared_vendors.sums import sum_in_changing_order, sum_in_half, sum_replacements
from diopi_impl.numerics import ErrorBound, Numerics, shipped_numerics
from diopi_impl.numerics.declaration import Products
from diopi_proto.types import Dtype

OF_FACTORS = {"tf32": "tf32-factors", "hf32": "hf32-factors", "bf16": "bfloat16-factors", "bf16x3": "split-factors"}
"""The ends of the diagnoses that name a format of the factors of products."""

SIGNIFICANT_BITS = {"tf32": 11, "hf32": 12, "bf16": 8}
"""The significant bits of the factors of products, by declared format."""

CORRECTLY_ROUNDED = ("divide", "reciprocal", "sqrt")
"""Functions that are correctly rounded where others have errors of several units in the last place."""


def _with_products(name: Products, multiply: Multiply, unchanged: Collection[Dtype] = ()) -> EmulatedVendor:
    """Return a vendor that computes products of float32 factors by `multiply`, as a device with this format does."""
    declared, replacements = Numerics(name=name, float32_products=name), product_replacements(multiply, SINGLE)
    return EmulatedVendor(name, declared, replacements, unchanged=unchanged, diagnoses=_naming_factors(name))


def _naming_factors(name: Products) -> Sequence[str]:
    """Return the diagnoses of products with factors of a format. With dropout, the weights of attention show less."""
    return f"products-of-{OF_FACTORS[name]}", "inaccurate-attention-weights"


def _with_errors(name: str, bounds: dict[str, tuple[ErrorBound, ...]]) -> EmulatedVendor:
    """Return a vendor whose elementary functions have errors up to these bounds."""
    declared = Numerics(name=name, elementary=bounds)
    return EmulatedVendor(name, declared, inexact_replacements(bounds), compositions())


tf32 = _with_products("tf32", partial(multiply_rounded, SIGNIFICANT_BITS["tf32"]))
tf32_truncated = EmulatedVendor(
    "TF32 by truncation",
    Numerics(name="tf32-truncated", float32_products="tf32"),
    product_replacements(partial(multiply_truncated, SIGNIFICANT_BITS["tf32"]), SINGLE),
    diagnoses=_naming_factors("tf32"),
)
hf32 = _with_products("hf32", partial(multiply_rounded, SIGNIFICANT_BITS["hf32"]))
bf16 = _with_products("bf16", partial(multiply_rounded, SIGNIFICANT_BITS["bf16"]), unchanged=(Dtype.float16,))
"""Does not round factors of float16 that torch_cpu converts to float32: bfloat16 has fewer bits than float16."""
bf16x3 = _with_products("bf16x3", multiply_in_three_parts)
half_accumulation = EmulatedVendor(
    "half accumulation",
    Numerics(name="half-accumulation", half_accumulation="half"),
    product_replacements(accumulate_in_half, HALF) | sum_replacements(sum_in_half, HALF),
    diagnoses=["half-accumulated-in-half"],
)
winograd_f2 = EmulatedVendor(
    "winograd F(2x2, 3x3)",
    Numerics(name="winograd-f2", convolutions=frozenset({"direct", "winograd-f2"})),
    winograd_replacements(2),
    diagnoses=["winograd-convolution"],
)
winograd_f4 = EmulatedVendor(
    "winograd F(4x4, 3x3)",
    Numerics(name="winograd-f4", convolutions=frozenset({"direct", "winograd-f4"})),
    winograd_replacements(4),
    diagnoses=["winograd-convolution"],
)
fft = EmulatedVendor(
    "FFT convolutions",
    Numerics(name="fft", convolutions=frozenset({"direct", "fft"})),
    fft_replacements(),
    diagnoses=["fourier-convolution"],
)


def _winograd_in_tf32() -> EmulatedVendor:
    """Return a vendor whose convolutions use F(4 × 4, 3 × 3) or direct sums, and multiply in TF32."""
    bits = SIGNIFICANT_BITS["tf32"]
    direct = product_replacements(partial(multiply_rounded, bits), SINGLE)
    transformed = winograd_replacements(4, partial(round_significand, bits=bits))["convolution"]

    def convolution(func: Any, *operands: Any) -> Any:
        """Replace ATen's `convolution`; direct sums multiply in TF32, too."""
        return transformed(partial(direct["convolution"], func), *operands)

    declared = Numerics(
        name="winograd-f4-tf32", convolutions=frozenset({"direct", "winograd-f4"}), convolution_products="tf32"
    )
    replacements = {"convolution": convolution, "convolution_backward": direct["convolution_backward"]}
    return EmulatedVendor(declared.name, declared, replacements, diagnoses=_naming_factors("tf32"))


winograd_f4_tf32 = _winograd_in_tf32()

_FAST_MATH = shipped_numerics("fast-math")
"""The declaration of a device whose elementary functions are fast intrinsics, such as CUDA's with -use_fast_math."""

fast_math = EmulatedVendor(
    "intrinsics",
    _FAST_MATH,
    flush_replacements(inexact_replacements(_FAST_MATH.elementary), arguments=True),
    compositions(),
    diagnoses=["inaccurate-approximation", "intrinsic-outside-its-range", "tanh-approximation"],
)
two_ulp = _with_errors("two-ulp", {name: (ErrorBound(ulp=2),) for name in FUNCTIONS if name not in CORRECTLY_ROUNDED})
four_ulp = _with_errors("four-ulp", {name: (ErrorBound(ulp=4),) for name in FUNCTIONS if name not in CORRECTLY_ROUNDED})
flush_results = EmulatedVendor(
    "flushed results",
    Numerics(name="flush-results", subnormals="flush-results"),
    flush_replacements({}, arguments=False),
)
flush_inputs = EmulatedVendor(
    "flushed inputs and results",
    Numerics(name="flush-inputs", subnormals="flush-inputs"),
    flush_replacements({}, arguments=True),
)
SUMMING_FAMILIES = ["attention", "conv", "linalg", "llm", "lmdeploy", "loss", "norm", "pool", "reduction", "sparse"]
"""The families with functions in which torch_cpu calls an operator that multiplies matrices, or sums or averages."""

changing_order = EmulatedVendor(
    "split-K",
    Numerics(name="split-k", sum_order=dict.fromkeys(SUMMING_FAMILIES, "run-to-run")),
    product_replacements(multiply_in_changing_order, SINGLE)
    | sum_replacements(sum_in_changing_order, (*SINGLE, *HALF)),
    diagnoses=["sums-in-changing-order"],
)

EMULATED = {
    vendor.emulated.name: vendor
    for vendor in (
        tf32,
        tf32_truncated,
        hf32,
        bf16x3,
        bf16,
        half_accumulation,
        winograd_f2,
        winograd_f4,
        fft,
        winograd_f4_tf32,
        fast_math,
        two_ulp,
        four_ulp,
        flush_results,
        flush_inputs,
        changing_order,
    )
}
"""All vendors, by the name of the declaration that describes them."""
