"""Test what declared arithmetics permit beyond errors of products: sums, float64, subnormals, zeros, order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from diopi_impl import ErrorBound, Numerics
from diopi_impl.numerics.declaration import Products
from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.cases.case import CaseClass
from diopi_test.cases.selection import select_cases
from diopi_test.checks.values import compare
from diopi_test.oracle.arithmetic.declared_case import derive_declared_case, find_deviations
from diopi_test.oracle.budget import Budget
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.records import BaselineCase, Expected
from diopi_test.oracle.validators import CompletedCall, find_validator
from lib_rt.formats import ulp
from tests.helpers.honest_products import cases_of, declare, find_failures

Array = NDArray[np.float64]


def expected_out(case: BaselineCase) -> Expected:
    """Return the expected result `out` of a case."""
    expected = case.expected["out"]
    assert isinstance(expected, Expected)
    return expected


def units(case: BaselineCase) -> Array:
    """Return the budget units of the result `out`."""
    budget = expected_out(case).budget
    assert budget is not None
    return budget.unit


def accumulate_in_float16(case: BaselineCase) -> Array:
    """Return the matrix product, accumulated in float16."""
    a, b = (case.plain_arguments()[name].astype(np.float16) for name in ("input", "mat2"))
    total = np.zeros((a.shape[0], b.shape[1]), np.float16)
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(a.shape[1]):
            total = total + (a[:, k, np.newaxis] * b[np.newaxis, k])
    return total


def test_sums_in_float16_pass_only_if_they_are_declared() -> None:
    numerics = Numerics(name="half", half_accumulation="half")
    halves = cases_of("diopiMm", "float16")
    ordinary = [case for case in halves if case.case_class is not CaseClass.special]
    cases = [case for case in ordinary if case.label != "float16-exact"]
    results = [accumulate_in_float16(case) for case in cases]
    declared = declare(cases, numerics)
    assert any(find_failures(case, [out]) for case, out in zip(cases, results, strict=True))
    assert [p for case, out in zip(declared, results, strict=True) for p in find_failures(case, [out])] == []


def test_float32_keeps_its_budgets_if_half_precision_is_accumulated_in_half_precision() -> None:
    numerics = Numerics(name="half", half_accumulation="half")
    cases = cases_of("diopiMm", "float32")
    assert all(new is old for old, new in zip(cases, declare(cases, numerics), strict=True))


def test_emulated_float64_has_the_precision_of_pairs_of_float32() -> None:
    case = next(case for case in cases_of("diopiMm", "float64") if expected_out(case).budget is not None)
    declared = derive_declared_case(case, Numerics(name="pairs", float64="emulated"))
    spacing = ulp(expected_out(case).values, Dtype.float64)
    assert np.median(units(declared) / spacing) > 2**5
    assert np.median(units(declared) / spacing) < 2**12


@pytest.mark.parametrize(
    ("function", "dtype", "products", "applied"),
    [
        ("diopiFlashAttention", "float16", "bf16x3", "bf16x3"),
        ("diopiFlashAttention", "float16", "tf32", "tf32"),
        ("diopiFlashAttention", "float16", "bf16", "ieee"),
        ("diopiFlashAttention", "bfloat16", "bf16", "bf16"),
        ("diopiMm", "float16", "bf16x3", "ieee"),
        ("diopiMm", "float32", "bf16x3", "bf16x3"),
    ],
)
def test_products_in_float32_of_half_precision_factors_are_as_declared(
    function: str, dtype: str, products: Products, applied: Products
) -> None:
    case = cases_of(function, dtype, "smoke")[0]
    assert find_deviations(case, Numerics(name="products", float32_products=products)).products == applied


@pytest.mark.parametrize("function", ["diopiExp", "diopiSigmoid", "diopiTanh", "diopiSqrt", "diopiRsqrt"])
def test_a_declared_error_of_a_function_is_within_its_budget(function: str) -> None:
    names = {"diopiSigmoid": "exp", "diopiRsqrt": "rsqrt"}
    bound = ErrorBound(ulp=100)
    numerics = Numerics(name="fast", elementary={names.get(function, function[5:].lower()): (bound,)})
    for case in cases_of(function, "float32", "smoke"):
        if expected_out(case).budget is None or not expected_out(case).values.size:
            continue
        declared = derive_declared_case(case, numerics)
        finite = np.isfinite(expected_out(case).values) & (expected_out(case).values != 0)
        assert (units(declared)[finite] >= units(case)[finite]).all()
        assert np.mean(units(declared)[finite] > units(case)[finite]) > 0.5  # a logistic function of 1 has no error
        extra = (units(declared) - units(case)) / ulp(expected_out(case).values, Dtype.float32)
        assert (extra[finite] <= 201).all()


def test_dropout_that_drops_nothing_has_the_declared_error_of_a_division() -> None:
    (described,) = (case for case in select_cases("diopiDropoutInp", "full") if case.label == "float32-p-0")
    case = compute_baseline_case(lookup("diopiDropoutInp"), described)
    numerics = Numerics(name="mine", elementary={"divide": (ErrorBound(ulp=2),)})
    exact, declared = (tested.expected["input"] for tested in (case, derive_declared_case(case, numerics)))
    assert isinstance(exact, Expected) and isinstance(declared, Expected)
    inexact = np.nextafter(exact.values.astype(np.float32), np.float32(np.inf))
    assert compare(inexact, exact).is_wrong.all()
    assert not compare(inexact, declared).is_wrong.any()


@pytest.mark.parametrize(
    ("function", "label", "is_power"),
    [("diopiNormBackward", "float32-order-1.5", True), ("diopiNorm", "float32-rows", False)],
)
def test_a_power_of_one_half_has_the_declared_error_of_powers(function: str, label: str, is_power: bool) -> None:
    """The gradient of a norm of order 1.5 contains powers of 0.5; a norm of order 2 is a square root."""
    (described,) = (case for case in select_cases(function, "full") if case.label == label)
    case = compute_baseline_case(lookup(function), described)
    declared = derive_declared_case(case, Numerics(name="mine", elementary={"pow": (ErrorBound(relative=1e-4),)}))
    (exact,), (wider,) = (tested.expected.values() for tested in (case, declared))
    assert isinstance(exact, Expected) and isinstance(wider, Expected) and exact.budget and wider.budget
    added = wider.budget.unit - exact.budget.unit
    assert (added >= 0.99e-4 * np.abs(exact.values)).all() if is_power else not added.any()


def test_a_bound_applies_only_in_its_range() -> None:
    case = cases_of("diopiExp", "float32", "smoke")[0]
    bound = ErrorBound(ulp=8, minimum=0.0)
    declared = derive_declared_case(case, Numerics(name="fast", elementary={"exp": (bound,)}))
    x = case.plain_arguments()["input"]
    assert np.array_equal(units(declared) > units(case), x >= 0)


def example(values: list[float], budget: Budget | None) -> Expected:
    """Return an expected float32 result with this budget."""
    return Expected(values=np.array(values), dtype=Dtype.float32, budget=budget)


@pytest.mark.parametrize("budget", [None, Budget(np.full(2, 2.0**-149))])
def test_subnormals_may_be_flushed_unless_the_vendor_keeps_them(budget: Budget | None) -> None:
    expected = example([1e-40, 2e-40], budget)
    actual = np.zeros(2, np.float32)
    assert not compare(actual, expected).is_wrong.any()
    assert compare(actual, replace(expected, may_flush=False)).is_wrong.all()


@pytest.mark.parametrize("budget", [None, Budget(np.full(2, 2.0**-149))])
def test_signs_of_zeros_do_not_matter_if_the_vendor_declares_it(budget: Budget | None) -> None:
    expected = example([0.0, -0.0], budget)
    actual = np.array([-0.0, 0.0], np.float32)
    assert compare(actual, expected).is_wrong.all()
    assert not compare(actual, replace(expected, has_signed_zeros=False)).is_wrong.any()


def test_order_of_sums_may_vary_only_in_declared_families() -> None:
    numerics = Numerics(name="atomics", sum_order={"linalg": "run-to-run"})
    product, total = cases_of("diopiMm", "float32", "smoke")[0], cases_of("diopiSum", "float32", "smoke")[0]
    assert derive_declared_case(product, numerics).has_unordered_sums
    assert derive_declared_case(total, numerics) is total


def test_kept_subnormals_and_ignored_zeros_are_recorded_in_each_expectation() -> None:
    case = cases_of("diopiAdd", "float32", "smoke")[0]
    strict = expected_out(derive_declared_case(case, Numerics(name="keep", subnormals="keep")))
    assert (strict.may_flush, strict.has_signed_zeros, strict.flushed) == (False, True, None)
    ignored = expected_out(derive_declared_case(case, Numerics(name="zeros", signed_zeros="ignore")))
    assert (ignored.may_flush, ignored.has_signed_zeros) == (True, False)


def weights_of(case: BaselineCase, factor: float) -> Array:
    """Return attention weights with half of them dropped, and the others multiplied by a factor."""
    q, k = (case.plain_arguments()[name][0].swapaxes(0, 1) for name in ("q", "k"))
    weights = np.exp(case.arguments["softmax_scale"] * q @ k.swapaxes(1, 2))
    weights *= factor / weights.sum(-1, keepdims=True) / (1 - case.arguments["p_dropout"])
    return np.where(np.random.default_rng(4).random(weights.shape) < 0.5, 0, weights).swapaxes(0, 1)[np.newaxis]


def test_attention_with_dropout_is_judged_by_the_declared_arithmetic() -> None:
    prototype = lookup("diopiFlashAttention")
    (described,) = (case for case in select_cases(prototype.name, "full") if case.label == "float32-dropout")
    case = compute_baseline_case(prototype, described)
    declared = derive_declared_case(case, Numerics(name="mine", float32_products="tf32"))

    def problems(tested: BaselineCase, factor: float) -> list[str]:
        expected = tested.expected["attention_out"]
        assert isinstance(expected, Expected)
        changes = {} if expected.change is None else {"attention_out": expected.change}
        call = CompletedCall(
            arguments=tested.plain_arguments(),
            results={"attention_out": weights_of(tested, factor)},
            expected={"attention_out": expected.values},
            dtypes={"attention_out": Dtype.float32},
            changes=changes,
        )
        found = find_validator(lookup("diopiFlashAttention"))(call)
        return [problem for problem in found if "attention weight" in problem]

    assert problems(case, 1.0) == problems(declared, 1.0) == []
    rounded = 1 + 2.0**-12
    assert problems(case, rounded)
    assert problems(declared, rounded) == []
    assert problems(declared, 1 + 2.0**-7)
