"""Vendors with the arithmetic of accelerators fail unless they declare it; the declared budgets still kill mutants."""

from __future__ import annotations

import pytest
from sampling import sampled

pytest.importorskip("torch", reason="the vendors change torch_cpu, which needs PyTorch: pip install 'diopi[torch]'")

from declaration_effects import MIN_KILLED, Options, is_affected, measure  # imports PyTorch
from declared_vendors import EMULATED

from diopi_test.baseline.location import package_folder

SUMS = ("diopiMm", "diopiSum", "diopiMean")
PRODUCTS = ("diopiMm", "diopiBmm", "diopiLinear", "diopiMatmul", "diopiBaddbmm", "diopiConvolution2d")
ELEMENTARY = ("diopiTanh", "diopiExp", "diopiSigmoid", "diopiErf", "diopiSin", "diopiSoftmax", "diopiGelu")

DECLARED = [
    (name, function) for name in ("tf32", "tf32-truncated", "hf32", "bf16x3", "bf16") for function in PRODUCTS
] + [
    ("bf16", "diopiFlashAttention"),
    *(("fast-math", function) for function in ("diopiTanh", "diopiExp", "diopiSin", "diopiGelu", "diopiGeluBackward")),
]  # the sigmoid of fast-math is within the budgets


@pytest.mark.parametrize(("name", "function"), sampled(DECLARED, 1, slow=2))
def test_a_vendor_passes_only_if_it_declares_its_arithmetic(name: str, function: str) -> None:
    (row,) = measure([EMULATED[name]], Options(functions=(function,)))
    assert row.functions == [function]
    assert row.failures_if_undeclared > 0
    assert row.failures_if_declared == []


@pytest.mark.parametrize("function", sampled(ELEMENTARY, 1, slow=1))
def test_functions_within_two_ulps_pass_undeclared_and_declared(function: str) -> None:
    (row,) = measure([EMULATED["two-ulp"]], Options(functions=(function,)))
    assert (row.failures_if_undeclared, row.failures_if_declared) == (0, [])


@pytest.mark.parametrize("name", ["flush-results", "flush-inputs"])
def test_flushed_subnormal_numbers_need_no_declaration(name: str) -> None:
    (row,) = measure([EMULATED[name]], Options(functions=("diopiMul",)))
    assert row.functions == ["diopiMul"]
    assert (row.failures_if_undeclared, row.failures_if_declared) == (0, [])


MUTATED = [
    *((name, function) for name in ("tf32", "hf32", "bf16x3", "bf16") for function in PRODUCTS),
    *((name, "diopiConvolution2d") for name in ("winograd-f2", "winograd-f4", "fft")),
    *((name, function) for name in ("fast-math", "two-ulp", "four-ulp") for function in ELEMENTARY),
    *(
        (name, function)
        for name in ("half-accumulation", "split-k")
        for function in ("diopiMm", "diopiSum", "diopiMean")
    ),
]


@pytest.mark.parametrize(("name", "function"), sampled(MUTATED, 1, slow=2))
def test_declared_budgets_kill_the_mutants_that_ieee_budgets_kill(name: str, function: str) -> None:
    options = Options(functions=(function,), runs=False, level="smoke", data=package_folder(), mutants=20)
    (row,) = measure([EMULATED[name]], options)
    assert row.mutants > 10
    assert row.killed_share >= MIN_KILLED, row.survivors


@pytest.mark.parametrize(
    ("name", "function", "expected"),
    [
        ("tf32", "diopiMm", True),  # the declaration changes budgets
        ("tf32", "diopiAdd", False),
        ("flush-inputs", "diopiMul", True),  # only the results of the vendor differ
        ("flush-inputs", "diopiCopyInp", False),
        ("half-accumulation", "diopiErfinv", False),
    ],
)
def test_a_function_is_affected_if_its_budgets_or_results_differ(name: str, function: str, expected: bool) -> None:
    assert is_affected(EMULATED[name], function) is expected
