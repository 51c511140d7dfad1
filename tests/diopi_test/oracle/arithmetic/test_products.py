"""Test the budgets of products of float32 numbers whose factors are rounded to a narrower format."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sampling import sampled

from diopi_impl import Numerics
from diopi_impl.numerics.declaration import Products
from diopi_test.oracle.arithmetic.products import (
    FACTOR_FORMATS,
    SPLIT,
    derive_deviations,
    largest_rounding_errors,
    make_product_rules,
    move_unrepresentable,
    round_to,
)
from diopi_test.oracle.arithmetic.signs import ROUNDS, Signs
from diopi_test.oracle.budget import K
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
)
"""Functions of which a correct TF32 implementation must pass every case."""

SAMPLE = [*sampled(FUNCTIONS, 1, slow=1), pytest.param("diopiMultiHeadAttention", marks=pytest.mark.slow)]
"""Some of these functions, and a further one whose cases take ten times as long."""

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


@pytest.mark.parametrize("function", SAMPLE)
def test_rounding_to_tf32_passes_if_it_is_declared(function: str) -> None:
    cases = declare(cases_of(function, "float32"), TF32)
    rule = multiply_rounded(to_tf32)
    assert [problem for case in cases for problem in find_failures(case, compute_results(case, rule))] == []


@pytest.mark.parametrize("function", SAMPLE)
def test_rounding_to_tf32_fails_if_it_is_not_declared(function: str) -> None:
    rule = multiply_rounded(to_tf32)
    assert any(find_failures(case, compute_results(case, rule)) for case in cases_of(function, "float32", "smoke"))


@pytest.mark.parametrize("function", SAMPLE)
def test_a_declaration_of_tf32_does_not_cover_bfloat16(function: str) -> None:
    cases = declare(cases_of(function, "float32"), TF32)
    rule = multiply_rounded(lambda numbers: round_significand(numbers, 8))
    assert any(find_failures(case, compute_results(case, rule)) for case in cases)


@pytest.mark.parametrize("function", SAMPLE)
def test_a_missing_factor_fails_although_tf32_is_declared(function: str) -> None:
    def without_first_element(numbers: NDArray[np.float32]) -> NDArray[np.float32]:
        changed = to_tf32(numbers).copy()
        changed.reshape(-1)[:1] = 0
        return changed

    cases = declare(cases_of(function, "float32", "smoke"), TF32)
    rule = multiply_rounded(without_first_element)
    assert any(find_failures(case, compute_results(case, rule)) for case in cases)


@pytest.mark.parametrize("function", ["diopiCholeskyBackward", "diopiTriangularSolveBackward"])
def test_gradients_of_decompositions_may_multiply_in_tf32(function: str) -> None:
    cases = cases_of(function, "float32", "smoke")
    rule = multiply_rounded(to_tf32)
    assert any(find_failures(case, compute_results(case, rule)) for case in cases)
    declared = declare(cases, TF32)
    assert [problem for case in declared for problem in find_failures(case, compute_results(case, rule))] == []


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


def apply_signs(errors: Array, signs: Sequence[int]) -> Array:
    """Return errors with signs; complex errors take the signs of their real parts first."""
    if errors.dtype.kind != "c":
        return np.asarray(errors * np.reshape(signs, errors.shape))
    real, imaginary = np.reshape(signs, (2, *errors.shape))
    return np.asarray(errors.real * real + 1j * errors.imag * imaginary)


@pytest.mark.parametrize("kinds", [(float, float), (float, complex), (complex, complex)])
def test_the_standard_deviation_of_a_sum_is_that_over_all_signs_of_the_errors(kinds: tuple[type, type]) -> None:
    rng = np.random.default_rng(5)

    def draw(shape: tuple[int, int], kind: type) -> Array:
        """Return random numbers, complex ones if `kind` is complex."""
        numbers = rng.normal(size=shape)
        return numbers + 1j * rng.normal(size=shape) if kind is complex else numbers

    a, b = draw((1, 2), kinds[0]), draw((2, 1), kinds[1])
    errors_a, errors_b = draw((1, 2), kinds[0]), draw((2, 1), kinds[1])
    signs = [product((-1, 1), repeat=errors.size * (1 + np.iscomplexobj(errors))) for errors in (errors_a, errors_b)]
    changes = np.array(
        [
            (apply_signs(errors_a, signs_a) @ b + a @ apply_signs(errors_b, signs_b)).item()
            for signs_a, signs_b in product(*signs)
        ]
    )
    deviation = derive_deviations(np.matmul, [a, b], [errors_a, errors_b]).item()
    assert deviation.real == pytest.approx(np.sqrt(np.mean(changes.real**2)))
    assert deviation.imag == pytest.approx(np.sqrt(np.mean(changes.imag**2)))


def test_products_without_second_bfloat16_numbers_add_to_the_standard_deviation() -> None:
    numbers, zeros = np.array([[3.0]]), np.zeros((1, 1))
    dropped = [np.array([[2.0]]), np.array([[-5.0]])]
    assert derive_deviations(np.matmul, [numbers, numbers], [zeros, zeros], dropped).item() == pytest.approx(10)


@pytest.mark.parametrize("unit", [1.0, 1j])
def test_a_part_of_a_complex_sum_without_errors_has_the_standard_deviation_0(unit: complex) -> None:
    rng = np.random.default_rng(6)
    a, b = rng.normal(size=(9, 7)) * unit, rng.normal(size=(7, 8)) * (1 + 0j)
    deviation = derive_deviations(np.matmul, [a, b], [a / 1000, b / 1000])
    assert ((deviation.imag == 0) if unit == 1 else (deviation.real == 0)).all()
    assert (np.abs(deviation) > 0).all()


def test_the_error_of_a_sum_of_few_products_is_within_the_budget_if_the_moves_of_all_factors_cancel() -> None:
    rng = np.random.default_rng(12)  # draws a sum whose moves nearly cancel in all rounds but the last
    a, b = rng.normal(size=(50_000, 3)).astype(np.float32), rng.normal(size=(3, 5)).astype(np.float32)
    factors = [a.astype(np.float64), b.astype(np.float64)]
    exact = np.matmul(*factors)

    def find_change(number: int) -> Array:
        """Return the change of the sums in a round."""
        rule = make_product_rules("tf32", Signs(np.random.default_rng(2), number))[np.matmul, "__call__"]
        return np.asarray(np.abs(rule(np.matmul, factors, {}) - exact))

    by_factors = np.max([find_change(number) for number in range(ROUNDS)], 0)
    by_sums = find_change(ROUNDS)
    errors = np.abs(np.matmul(*(to_tf32(factor).astype(np.float64) for factor in (a, b))) - exact)
    assert (errors > K * by_factors).any()
    assert (errors < K / 4 * np.maximum(by_factors, by_sums)).all()


def test_sums_of_products_that_a_format_represents_do_not_move() -> None:
    factors = [np.array([[1.0, np.inf, np.nan]]), np.ones((3, 1))]
    assert (largest_rounding_errors(factors[0], FACTOR_FORMATS["tf32"]) == 0).all()
    for products in ("tf32", "bf16x3"):
        rule = make_product_rules(products, Signs(np.random.default_rng(2), ROUNDS))[np.matmul, "__call__"]
        assert rule(np.matmul, [factors[0][:, :1], factors[1][:1]], {}) == 1
        assert np.isnan(rule(np.matmul, factors, {}))
