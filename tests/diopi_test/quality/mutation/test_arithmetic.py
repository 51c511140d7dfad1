"""Mutants of vendors that declare their arithmetic, and mutants that are correct in a declared arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from diopi_impl import Numerics, find_numerics
from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.cases.selection import select_cases
from diopi_test.oracle.arithmetic.declared_case import derive_declared_case
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.records import BaselineCase
from diopi_test.quality.mutation.algorithms import algorithm_mutants
from diopi_test.quality.mutation.arithmetic import deviates, simulate_call
from diopi_test.quality.mutation.caching import TYPES, caching_mutants
from diopi_test.quality.mutation.matrix import run_mutant
from diopi_test.quality.mutation.mutant import Effect, Mutant
from diopi_test.quality.mutation.precision import precision_mutants
from diopi_test.quality.mutation.results import result_mutants

FFT = Numerics(name="fft", convolutions=frozenset({"direct", "fft"}))
HALF = Numerics(name="half", half_accumulation="half")
TF32 = find_numerics("tf32")


def case_of(function: str, label: str) -> BaselineCase:
    """Return the computed case with this label."""
    (case,) = (case for case in select_cases(function, "full") if case.label == label)
    return compute_baseline_case(lookup(function), case)


def mutant_named(function: str, name: str) -> Mutant:
    """Return the mutant of a function with this name."""
    mutants = (*algorithm_mutants(function), *precision_mutants(), *result_mutants(function))
    (mutant,) = (mutant for mutant in mutants if mutant.name == name)
    return mutant


def test_a_convolution_by_fourier_transforms_is_wrong_unless_it_is_declared() -> None:
    mutant = mutant_named("diopiConvolution2d", "convolved by Fourier transforms")
    case = case_of("diopiConvolution2d", "float32-plain-exact")
    assert run_mutant(mutant, [case]).killed_by == (case.label, ("values",))
    declared = run_mutant(mutant, [derive_declared_case(case, FFT)])
    assert (declared.killed_by, declared.effects) == (None, {Effect.changed: 1})
    assert [mutant.is_permitted(numerics) for numerics in (FFT, TF32, HALF)] == [True, False, False]


def test_a_convolution_in_float64_has_no_transforms_in_float32() -> None:
    mutant = mutant_named("diopiConvolution2d", "convolved by Fourier transforms")
    label = next(case.label for case in select_cases("diopiConvolution2d", "full") if case.dtype is Dtype.float64)
    assert run_mutant(mutant, [case_of("diopiConvolution2d", label)]).effects == {Effect.not_applicable: 1}


def test_sums_in_half_precision_are_wrong_unless_they_are_declared() -> None:
    mutant = mutant_named("diopiMm", "accumulated in half precision")
    labels = [case.label for case in select_cases("diopiMm", "full") if case.dtype is Dtype.float16]
    cases = [case_of("diopiMm", label) for label in labels]
    assert run_mutant(mutant, cases).killed_by is not None
    assert [mutant.is_permitted(numerics) for numerics in (FFT, TF32, HALF)] == [False, False, True]


def test_a_mutated_vendor_computes_in_the_declared_arithmetic() -> None:
    case = derive_declared_case(case_of("diopiMm", "float32-odd"), TF32)
    exact, rounded = (simulate_call(case, numerics).results["out"][0] for numerics in (find_numerics("ieee"), TF32))
    differences = np.abs(exact - rounded) / np.abs(exact).max()
    assert 2.0**-16 < differences.max() < 2.0**-9


@pytest.mark.parametrize("name", ["first element wrong", "off by 1e-3", "off by 4 %", "inputs rounded to bfloat16"])
def test_mutants_of_a_vendor_with_tf32_are_killed_by_its_budgets(name: str) -> None:
    cases = [
        derive_declared_case(case_of("diopiMm", case.label), TF32)
        for case in select_cases("diopiMm", "full")
        if case.dtype is Dtype.float32
    ]
    assert run_mutant(mutant_named("diopiMm", name), cases, TF32).killed_by is not None
    unchanged = Mutant(name="none", corrupt_memory=lambda inputs, results: Effect.not_applicable)
    assert run_mutant(unchanged, cases, TF32).killed_by is None


def test_a_value_cached_from_a_case_without_declared_errors_corrupts_a_case_with_them() -> None:
    (mutant,) = (m for m in caching_mutants("diopiPagedAttention") if m.kind == TYPES)
    split = Numerics(name="split", float32_products="bf16x3")
    cases = [derive_declared_case(case_of("diopiPagedAttention", label), split) for label in ("float16", "float32")]
    assert [deviates(case, split) for case in cases] == [False, True]
    assert run_mutant(mutant, cases, split).killed_by == ("float32", ("values",))
