"""Declarations that the fingerprint contradicts, in both directions, and the command that reports them."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from commands import run_here
from sampling import sampled
from small_vendor import Array, small_vendor

pytest.importorskip("torch", reason="the vendors change torch_cpu, which needs PyTorch: pip install 'diopi[torch]'")

from declared_vendors import EMULATED  # imports PyTorch

from diopi_impl import find_vendor
from diopi_impl.numerics import IEEE, ErrorBound, Numerics, shipped_numerics
from diopi_proto.types import RoundMode
from diopi_test.fingerprint.numerics import find_contradictions, measure_numerics

FIELDS = {
    "tf32": {"float32_products", "convolution_products"},
    "half-accumulation": {"half_accumulation"},
    "winograd-f4": {"convolutions"},
    "fast-math": {"elementary"},
    "split-k": {"sum_order"},
}
"""The fields in which the arithmetic of a vendor contradicts IEEE 754 arithmetic."""


@pytest.mark.parametrize("name", sampled(FIELDS, 1, slow=1))
def test_an_undeclared_mode_is_reported_and_a_declared_mode_is_not(name: str) -> None:
    vendor = EMULATED[name]
    measured = measure_numerics(vendor)
    undeclared = find_contradictions(measured, IEEE)
    assert {contradiction.field for contradiction in undeclared} == FIELDS[name]
    assert all(contradiction.is_undeclared for contradiction in undeclared)
    assert find_contradictions(measured, vendor.emulated) == []


def test_a_declaration_without_effect_is_reported() -> None:
    declared = Numerics(
        name="wide",
        float32_products="bf16",
        half_accumulation="half",
        convolutions=frozenset({"direct", "fft"}),
        elementary={"exp": (ErrorBound(ulp=100),), "erf": (ErrorBound(ulp=2),)},
        subnormals="flush-results",
        signed_zeros="ignore",
        sum_order={"linalg": "run-to-run", "norm": "run-to-run"},
        float64="emulated",
    )
    found = find_contradictions(measure_numerics(find_vendor("torch_cpu")), declared)
    assert [contradiction.field for contradiction in found] == [
        "float32_products",
        "convolution_products",
        "half_accumulation",
        "convolutions",
        "elementary",
        "subnormals",
        "signed_zeros",
        "float64",
        "sum_order",
    ]
    assert not any(contradiction.is_undeclared for contradiction in found)
    assert str(found[0]) == (
        "declared, but not used: products in bfloat16 are declared, but matrix products: factors of float32 are not "
        "rounded; attention: factors of float32 are not rounded"
    )


def test_the_precision_of_convolutions_is_compared_separately() -> None:
    declared = Numerics(name="convolutions-only", convolution_products="tf32")
    found = find_contradictions(measure_numerics(EMULATED["tf32"], ["float32_products"]), declared)
    assert [(contradiction.field, contradiction.is_undeclared) for contradiction in found] == [
        ("float32_products", True)
    ]
    assert 'declare float32_products = "tf32"' in str(found[0])


def test_strictly_kept_subnormal_numbers_are_checked() -> None:
    declared = Numerics(name="strict", subnormals="keep")
    flushing, keeping = (
        find_contradictions(measure_numerics(vendor, ["subnormals"]), declared)
        for vendor in (EMULATED["flush-results"], find_vendor("torch_cpu"))
    )
    assert [contradiction.is_undeclared for contradiction in flushing] == [True]
    assert keeping == []


def lose_signs(input: Array) -> Array:
    """Return the negated numbers, without the signs of zeros."""
    return 0 - input


def divide_in_pairs(input: Array, other: Array, rounding_mode: RoundMode) -> Array:
    """Return the quotients as sums of two float32 numbers."""
    quotient = input / other
    leading = quotient.astype(np.float32)
    return leading.astype(np.float64) + (quotient - leading).astype(np.float32)


@pytest.mark.parametrize(
    ("field", "implementations", "value"),
    [
        ("signed_zeros", {"diopiNeg": lose_signs}, "ignore"),
        ("float64", {"diopiDiv": divide_in_pairs}, "emulated"),
    ],
)
def test_undeclared_signs_of_zeros_and_float64_are_reported(
    field: str, implementations: dict[str, Callable[..., Array]], value: str
) -> None:
    measured = measure_numerics(small_vendor(**implementations), [field])
    (found,) = find_contradictions(measured, IEEE)
    assert (found.field, found.is_undeclared) == (field, True)
    assert find_contradictions(measured, Numerics(name="declared", **{field: value})) == []


def test_shipped_declarations_are_compared_with_torch_cpu() -> None:
    measured = measure_numerics(find_vendor("torch_cpu"))
    assert find_contradictions(measured, IEEE) == []
    assert {entry.field for entry in find_contradictions(measured, shipped_numerics("cuda-default"))} == {
        "convolution_products",
        "convolutions",
        "sum_order",
    }


@pytest.mark.slow
def test_the_command_prints_a_declaration(tmp_path: Path) -> None:
    done = run_here("fingerprint", "--vendor", "declared_vendors:hf32", "--declare")
    assert (done.returncode, done.stderr) == (0, "")
    assert 'float32_products = "hf32"' in done.stdout.splitlines()
    file = tmp_path / "my_chip.toml"
    file.write_text(done.stdout.replace('"measured"', '"my_chip"'), "utf-8")
    checked = run_here("fingerprint", "--vendor", "declared_vendors:hf32", "--check", "--numerics", file)
    assert (checked.returncode, checked.stdout) == (0, "hf32 2.13.0+cpu computes as declared: numerics my_chip\n")


def test_the_command_fails_only_for_an_undeclared_arithmetic() -> None:
    undeclared = run_here("fingerprint", "--vendor", "declared_vendors:hf32", "--check")
    unused = run_here("fingerprint", "--vendor", "torch_cpu", "--check", "--numerics", "tf32")
    assert (undeclared.returncode, unused.returncode) == (1, 0)
    assert undeclared.stdout.startswith(
        "used, but not declared: matrix products: factors of float32 keep 12 significant"
    )
    assert unused.stdout.startswith("declared, but not used: products in TF32 are declared, but matrix products: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--declare", "--check"], "--declare and --check exclude each other"),
        (["--declare", "--json", "x.json"], "--json writes the fingerprint"),
        (["--numerics", "tf32"], "use it with --check"),
    ],
)
def test_options_that_do_not_fit_are_rejected(arguments: list[str], message: str) -> None:
    done = run_here("fingerprint", "--vendor", "torch_cpu", *arguments)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
