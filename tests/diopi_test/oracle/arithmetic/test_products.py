"""Test the budgets of products of float32 numbers whose factors are rounded to a narrower format."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sampling import sampled

from diopi_impl import Numerics
from diopi_impl.numerics.declaration import Products
from diopi_test.oracle.arithmetic.products import FACTOR_FORMATS, SPLIT, move_unrepresentable, round_to
from diopi_test.oracle.arithmetic.signs import ROUNDS, Signs
from diopi_test.oracle.records import BaselineCase, Expected
from tests.helpers.honest_products import (
    cases_of,
    compute_results,
    declare,
    find_failures,
    multiply_rounded,
    round_significand,
    to_tf32,
)

TF32 = Numerics(name="tf32", float32_products="tf32")

FUNCTIONS = (
    "diopiMm",
    "diopiBmm",
    "diopiLinear",
    "diopiMatmul",
    "diopiAddmm",
    "diopiConvolution2d",
    "diopiMultiHeadAttention",
)
"""Functions of which a correct TF32 implementation must pass every case."""

Array = NDArray[np.float64]

UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""Examples may take any time: a busy machine is not a failure."""


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


@pytest.mark.parametrize("function", sampled(FUNCTIONS, 1, slow=1))
def test_rounding_to_tf32_passes_if_it_is_declared(function: str) -> None:
    cases = declare(cases_of(function, "float32"), TF32)
    rule = multiply_rounded(to_tf32)
    assert [problem for case in cases for problem in find_failures(case, compute_results(case, rule))] == []


@pytest.mark.parametrize("function", sampled(FUNCTIONS, 1, slow=1))
def test_rounding_to_tf32_fails_if_it_is_not_declared(function: str) -> None:
    rule = multiply_rounded(to_tf32)
    assert any(find_failures(case, compute_results(case, rule)) for case in cases_of(function, "float32", "smoke"))


@pytest.mark.parametrize("function", sampled(FUNCTIONS, 1, slow=1))
def test_a_declaration_of_tf32_does_not_cover_bfloat16(function: str) -> None:
    cases = declare(cases_of(function, "float32"), TF32)
    rule = multiply_rounded(lambda numbers: round_significand(numbers, 8))
    assert any(find_failures(case, compute_results(case, rule)) for case in cases)


@pytest.mark.parametrize("function", sampled(FUNCTIONS, 1, slow=1))
def test_a_missing_factor_fails_although_tf32_is_declared(function: str) -> None:
    def without_first_element(numbers: NDArray[np.float32]) -> NDArray[np.float32]:
        changed = to_tf32(numbers).copy()
        changed.reshape(-1)[:1] = 0
        return changed

    cases = declare(cases_of(function, "float32", "smoke"), TF32)
    rule = multiply_rounded(without_first_element)
    assert any(find_failures(case, compute_results(case, rule)) for case in cases)


def test_products_of_small_integers_stay_exact() -> None:
    (case,) = [case for case in cases_of("diopiMm", "float32") if case.label == "float32-exact"]
    (declared,) = declare([case], TF32)
    assert expected_out(case).budget is None
    assert expected_out(declared).budget is None


def test_half_precision_and_float64_keep_their_budgets() -> None:
    for dtype in ("float16", "bfloat16", "float64", "int64"):
        cases = cases_of("diopiMm", dtype)
        assert all(declared is case for case, declared in zip(cases, declare(cases, TF32), strict=True))


def test_budgets_of_functions_without_matrix_products_do_not_change() -> None:
    for function in ("diopiCholesky", "diopiUpsampleLinear", "diopiAdd"):
        cases = cases_of(function, "float32", "smoke")
        assert all(declared is case for case, declared in zip(cases, declare(cases, TF32), strict=True))


def test_budgets_of_tf32_are_as_sharp_as_those_of_ieee() -> None:
    """The root mean square of correct results, in units, is of the same order in both arithmetics."""
    cases = [
        case for case in cases_of("diopiMm", "float32") if "exact" not in case.label and "special" not in case.label
    ]
    cases = [case for case in cases if expected_out(case).values.size >= 20]

    def mean_error(judged: list[BaselineCase], rounds: bool) -> float:
        """Return the median over cases of the root mean square error in units."""
        rule = multiply_rounded(to_tf32 if rounds else lambda numbers: numbers.astype(np.float32))
        means = []
        for case in judged:
            (actual,) = compute_results(case, rule)
            errors = (actual.astype(np.float64) - expected_out(case).values) / units(case)
            means.append(float(np.sqrt(np.mean(errors**2))))
        return float(np.median(means))

    declared, ieee = mean_error(declare(cases, TF32), rounds=True), mean_error(cases, rounds=False)
    assert ieee / 4 < declared < 1 / 2


@pytest.mark.parametrize(("products", "bits"), [("tf32", 11), ("hf32", 12), ("bf16", 8)])
def test_a_coarser_format_has_a_proportionally_wider_budget(products: Products, bits: int) -> None:
    (case,) = [case for case in cases_of("diopiMm", "float32") if case.label == "float32-square"]
    (declared,) = declare([case], Numerics(name=products, float32_products=products))
    extra = float(np.median(units(declared) - units(case)))
    scale = float(np.median(np.abs(expected_out(case).values)))
    assert 0.1 < extra / (scale * 2.0**-bits) < 10


def test_bf16x3_is_between_tf32_and_ieee() -> None:
    (case,) = [case for case in cases_of("diopiMm", "float32") if case.label == "float32-square"]
    split, tf32 = (
        declare([case], Numerics(name=products, float32_products=products))[0] for products in ("bf16x3", "tf32")
    )
    assert (units(split) >= units(case)).all()
    assert np.median(units(split)) < np.median(units(tf32)) / 16


@UNTIMED
@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False, allow_subnormal=False), min_size=1))
def test_round_to_agrees_with_rounding_of_bit_patterns(numbers: list[float]) -> None:
    array = np.array(numbers)
    with np.errstate(over="ignore"):
        for form, bits in ((FACTOR_FORMATS["tf32"], 11), (FACTOR_FORMATS["bf16"], 8)):
            rounded = round_significand(array, bits).astype(np.float64)
            assert np.array_equal(round_to(array, form)[np.isfinite(rounded)], rounded[np.isfinite(rounded)])


@UNTIMED
@given(st.floats(width=32, allow_nan=False, allow_infinity=False, allow_subnormal=False))
def test_only_unrepresentable_factors_move_and_by_less_than_their_spacing(number: float) -> None:
    exact = np.array([number])
    for form in (*FACTOR_FORMATS.values(), SPLIT):
        moved = move_unrepresentable(exact, form, np.ones(1))
        is_representable = bool((round_to(exact, form) == exact).all())
        assert (moved == exact).all() == is_representable
        assert np.abs(round_to(exact, form) - exact) <= np.abs(moved - exact) or is_representable


def test_directions_of_two_factors_agree_and_differ_in_some_rounds() -> None:
    def draw(number: int) -> tuple[Array, Array]:
        signs = Signs(np.random.default_rng(3), number)
        return signs.draw((50, 1), parity=0), signs.draw((1, 50), parity=1)

    agreements = np.sum([first == second for first, second in map(draw, range(ROUNDS))], axis=0)
    assert agreements.shape == (50, 50)
    assert set(np.unique(agreements)) <= set(range(1, ROUNDS))
