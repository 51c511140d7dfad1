"""Vendors with the arithmetic of accelerators fail unless they declare it; the declared budgets still kill mutants."""

from __future__ import annotations

import pytest
from sampling import sampled

pytest.importorskip("torch", reason="the vendors change torch_cpu, which needs PyTorch: pip install 'diopi[torch]'")

from declaration_effects import MIN_KILLED, PERMITTED, Options, measure  # imports PyTorch
from declared_vendors import EMULATED

PRODUCTS = ("diopiMm", "diopiBmm", "diopiLinear", "diopiMatmul", "diopiBaddbmm", "diopiConvolution2d")
ELEMENTARY = ("diopiTanh", "diopiExp", "diopiSigmoid", "diopiErf", "diopiSin", "diopiSoftmax", "diopiGelu")

DECLARED = [
    (name, function) for name in ("tf32", "tf32-truncated", "hf32", "bf16x3", "bf16") for function in PRODUCTS
] + [("fast-math", function) for function in ("diopiTanh", "diopiExp", "diopiSin")]  # its sigmoid is within the budgets


@pytest.mark.parametrize(("name", "function"), sampled(DECLARED, 3))
def test_a_vendor_passes_only_if_it_declares_its_arithmetic(name: str, function: str) -> None:
    row = measure(EMULATED[name], [function], Options(mutants=False))
    assert row.functions == [function]
    assert row.failures_if_undeclared > 0
    assert row.failures_if_declared == []


@pytest.mark.parametrize("function", sampled(ELEMENTARY, 2))
def test_functions_within_two_ulps_pass_undeclared_and_declared(function: str) -> None:
    row = measure(EMULATED["two-ulp"], [function], Options(mutants=False))
    assert (row.failures_if_undeclared, row.failures_if_declared) == (0, [])


@pytest.mark.parametrize("name", PERMITTED)
def test_flushed_subnormal_numbers_need_no_declaration(name: str) -> None:
    row = measure(EMULATED[name], ["diopiMul"], Options(mutants=False))
    assert row.functions == ["diopiMul"]
    assert (row.failures_if_undeclared, row.failures_if_declared) == (0, [])


@pytest.mark.parametrize(
    ("name", "function"),
    sampled([("tf32", "diopiMm"), ("hf32", "diopiBmm"), ("bf16x3", "diopiLinear"), ("two-ulp", "diopiTanh")], 1),
)
def test_declared_budgets_kill_the_mutants_that_ieee_budgets_kill(name: str, function: str) -> None:
    row = measure(EMULATED[name], [function], Options())
    assert row.mutants > 20
    assert row.killed_share >= MIN_KILLED
