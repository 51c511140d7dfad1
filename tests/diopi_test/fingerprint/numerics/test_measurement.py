"""The narrowest declaration that fits: vendors with a known arithmetic, and vendors that lack functions."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from sampling import sampled
from small_vendor import Array, small_vendor

pytest.importorskip("torch", reason="the vendors change torch_cpu, which needs PyTorch: pip install 'diopi[torch]'")

from declared_vendors import EMULATED  # imports PyTorch

from diopi_impl import UnsupportedDtypeError, find_vendor
from diopi_impl.numerics import Numerics, read_numerics
from diopi_proto.types import RoundMode
from diopi_test.fingerprint.numerics import MeasuredNumerics, measure_numerics

BY_FIELD = {
    "float32_products": ("tf32", "tf32-truncated", "hf32", "bf16x3", "bf16"),
    "half_accumulation": ("half-accumulation",),
    "convolutions": ("winograd-f2", "winograd-f4", "fft"),
    "subnormals": ("flush-results", "flush-inputs", "fast-math"),
    "sum_order": ("split-k",),
}
"""The vendors whose arithmetic a field describes."""


@pytest.mark.parametrize(
    ("field", "name"), sampled([(field, name) for field, names in BY_FIELD.items() for name in names], 2, slow=3)
)
def test_the_field_of_an_emulated_mode_is_declared(field: str, name: str) -> None:
    measured = measure_numerics(EMULATED[name], [field])
    expected = replace(EMULATED[name].emulated, name="measured", elementary={}, sources=())
    if field == "sum_order":  # the fingerprint has probes for a part of the families
        assert measured.numerics.sum_order
        assert measured.numerics.sum_order.items() <= expected.sum_order.items()
        expected = replace(expected, sum_order=measured.numerics.sum_order)
    assert measured.numerics == expected
    assert measured.problems == []
    assert measured.evidence[field]


@pytest.mark.parametrize(
    ("field", "name"), sampled(product(BY_FIELD, ["torch_cpu", "tf32", "half-accumulation"]), 2, slow=4)
)
def test_fields_of_ieee_arithmetic_are_not_declared(field: str, name: str) -> None:
    vendor = EMULATED.get(name) or find_vendor(name)
    if name not in BY_FIELD[field]:
        assert measure_numerics(vendor, [field]).numerics == Numerics()


def test_jax_cpu_flushes_subnormal_numbers_and_has_ieee_products() -> None:
    measured = measure_numerics(find_vendor("jax_cpu"), ["float32_products", "subnormals", "signed_zeros", "float64"])
    assert measured.numerics == Numerics(name="measured", subnormals="flush-inputs")


def largest_ulp(measured: MeasuredNumerics) -> dict[str, float]:
    """Return the largest measured bound of each elementary function, in ulps."""
    return {name: max(bound.ulp for bound in bounds) for name, bounds in measured.numerics.elementary.items()}


@pytest.mark.parametrize(("name", "ulp"), [("two-ulp", 2.0), ("four-ulp", 4.0)])
def test_functions_with_errors_of_some_ulp_are_declared(name: str, ulp: float) -> None:
    found = largest_ulp(measure_numerics(EMULATED[name], ["elementary"]))
    declared = EMULATED[name].emulated.elementary
    assert set(found) == set(declared) - {"atan2", "exp2"}  # no function of the standard computes only these
    assert set(found.values()) == {ulp}


def test_intrinsics_are_declared_with_ranges() -> None:
    elementary = measure_numerics(EMULATED["fast-math"], ["elementary"]).numerics.elementary
    (tanh,) = elementary["tanh"]
    assert 2**-12 < tanh.relative < 2**-10.5
    near_zero = next(bound for bound in elementary["sin"] if bound.minimum < 0 < bound.maximum)
    assert 3.5e-7 < near_zero.absolute < 8e-7
    assert max(bound.ulp for bound in elementary["exp"]) > 4 * min(
        bound.ulp for bound in elementary["exp"] if bound.ulp
    )
    assert [bound.ulp for bound in elementary["divide"]] == [2]


def test_the_printed_declaration_can_be_read(tmp_path: Path) -> None:
    measured = measure_numerics(EMULATED["tf32"])
    file = tmp_path / "measured.toml"
    file.write_text(measured.to_toml(), "utf-8")
    assert read_numerics(file).digest == measured.numerics.digest
    assert (
        "# float32_products: matrix products: factors of float32 keep 11 significant bits: TF32" in measured.to_toml()
    )


def test_a_missing_function_is_stated() -> None:
    measured = measure_numerics(small_vendor())
    assert measured.numerics == Numerics()
    assert "# convolutions: not measured, because the vendor lacks the functions" in measured.to_toml()
    assert not measured.evidence


def multiply(a: Array, b: Array) -> Array:
    """Return the product of two matrices."""
    return np.matmul(a, b)


@pytest.mark.parametrize(
    ("bits", "text"),
    [
        (11, "keep 11 significant bits, truncated: TF32"),
        (10, "keep 9 significant bits: bfloat16"),
        (6, "keep 5 significant bits, which no declaration permits"),
    ],
)
def test_truncated_factors_are_described(bits: int, text: str) -> None:
    def mm(input: Array, mat2: Array) -> Array:
        mask = np.uint32(0xFFFFFFFF << (24 - bits) & 0xFFFFFFFF)
        a, b = ((factor.view(np.uint32) & mask).view(np.float32) for factor in (input, mat2))
        return multiply(a, b)

    measured = measure_numerics(small_vendor(diopiMm=mm), ["float32_products"])
    (evidence,) = measured.evidence["float32_products"]
    assert evidence == f"matrix products: factors of float32 {text}"
    assert measured.problems == ([evidence] if bits == 6 else [])


def test_a_lost_sign_of_zero_is_declared() -> None:
    measured = measure_numerics(small_vendor(diopiNeg=lambda input: 0 - input), ["signed_zeros"])
    assert measured.numerics.signed_zeros == "ignore"
    assert measured.evidence["signed_zeros"] == ["−0 is lost by diopiNeg"]


def divide(input: Array, other: Array, rounding_mode: RoundMode) -> Array:
    """Return the quotient without rounding."""
    return input / other


def test_absent_and_emulated_float64_are_declared() -> None:
    def without_float64(input: Array, other: Array, rounding_mode: RoundMode) -> Array:
        if input.dtype == np.float64:
            raise UnsupportedDtypeError("no float64")
        return divide(input, other, rounding_mode)

    def in_pairs(input: Array, other: Array, rounding_mode: RoundMode) -> Array:
        quotient = divide(input, other, rounding_mode)
        leading = quotient.astype(np.float32)
        return leading.astype(np.float64) + (quotient - leading).astype(np.float32)

    def in_float32(input: Array, other: Array, rounding_mode: RoundMode) -> Array:
        return divide(input, other, rounding_mode).astype(np.float32).astype(input.dtype)

    absent, emulated, narrow, ieee = (
        measure_numerics(small_vendor(diopiDiv=function), ["float64"])
        for function in (without_float64, in_pairs, in_float32, divide)
    )
    assert [found.numerics.float64 for found in (absent, emulated, narrow, ieee)] == [
        "absent",
        "emulated",
        "emulated",
        "ieee",
    ]
    assert [bool(found.problems) for found in (absent, emulated, narrow, ieee)] == [False, False, True, False]
