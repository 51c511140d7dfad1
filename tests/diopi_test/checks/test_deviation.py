"""A `Deviation` classifies wrong elements and recognizes their relation to the expected ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from diopi_proto.types import Dtype
from diopi_test.checks.deviation import IncorrectTensor, derive_deviation
from diopi_test.execution.deviation import Deviation, DeviationKind, ValueRelation
from lib_rt.dtypes import to_numpy

GENERATOR = np.random.default_rng(5)
VALUES = GENERATOR.normal(size=40)


def deviation(
    actual: Any, expected: Any, dtype: Dtype = Dtype.float32, budget: float | None = 1e-6, **inputs: NDArray[Any]
) -> Deviation:
    """Return the deviation of a tensor, whose wrong elements are those that differ from the expected ones."""
    found, wanted = np.asarray(actual).astype(to_numpy(dtype)), np.asarray(expected)
    exact = wanted.astype(to_numpy(dtype))
    is_wrong = (found != exact) & ~(np.isnan(found) & np.isnan(exact)) if found.dtype.kind == "f" else found != exact
    if not is_wrong.any():
        is_wrong = np.signbit(found) != np.signbit(exact)
    budgets = None if budget is None else np.full(found.shape, budget)
    typed_inputs = {name: (array, Dtype.float64) for name, array in inputs.items()}
    return derive_deviation(
        IncorrectTensor(
            is_wrong=is_wrong,
            actual=found,
            expected=wanted,
            dtype=dtype,
            budget=budgets,
            before=None,
            inputs=typed_inputs,
        )
    )


@pytest.mark.parametrize(
    ("actual", "expected", "kind"),
    [
        (1.5, 2.5, DeviationKind.wrong_value),
        (1.0001, 1.0, DeviationKind.rounding),
        (0.0, np.nan, DeviationKind.lost_nan),
        (np.nan, 0.5, DeviationKind.invented_nan),
        (3.4e38, np.inf, DeviationKind.lost_infinity),
        (-np.inf, 1.0, DeviationKind.invented_infinity),
        (-np.inf, np.inf, DeviationKind.wrong_value),
        (0.0, -0.0, DeviationKind.sign_of_zero),
        (0.0, 1e-40, DeviationKind.flushed),
    ],
)
def test_each_kind_of_wrong_element_is_recognized(actual: float, expected: float, kind: DeviationKind) -> None:
    assert deviation([actual], [expected]).kinds == {kind.value: 1}


def test_errors_within_four_budgets_of_a_narrow_type_are_rounding() -> None:
    assert deviation([1.25], [1.0], Dtype.bfloat16, budget=0.07).has(DeviationKind.rounding)
    assert deviation([1.25], [1.0], Dtype.float32).has(DeviationKind.wrong_value)


def test_integers_are_never_rounded() -> None:
    assert deviation([10**6 + 1], [10**6], Dtype.int64).kinds == {"wrong_value": 1}


@pytest.mark.parametrize(
    ("actual", "relation", "value"),
    [
        (0 * VALUES, ValueRelation.zero, 0.0),
        (-VALUES, ValueRelation.negated, -1.0),
        (1.25 * VALUES, ValueRelation.scaled, 1.25),
        (VALUES + 3, ValueRelation.shifted, 3.0),
        (np.full(40, 7.0), ValueRelation.constant, 7.0),
        (np.full(40, np.finfo(np.float32).max), ValueRelation.saturated, float(np.finfo(np.float32).max)),
        (np.roll(VALUES, 3), ValueRelation.misplaced, None),
        (VALUES[::-1], ValueRelation.rearranged, None),
        (np.trunc(VALUES), ValueRelation.integral, None),
        (VALUES.astype(np.float16), ValueRelation.float16, None),
        (VALUES.astype(to_numpy(Dtype.bfloat16)), ValueRelation.bfloat16, None),
        (GENERATOR.normal(size=40), None, None),
    ],
)
def test_relations_of_floating_point_numbers(actual: Any, relation: ValueRelation | None, value: float | None) -> None:
    found = deviation(actual, VALUES.astype(np.float32))
    if relation is ValueRelation.integral and (np.trunc(VALUES) == 0).all():
        relation = ValueRelation.zero
    assert found.relation is relation
    assert found.value == (None if value is None else pytest.approx(value, rel=1e-6))


def test_integers_at_the_ends_of_their_range_are_saturated() -> None:
    expected = np.arange(-600, 600, 40)
    wrapped = expected.astype(np.int8)
    found = deviation(np.clip(expected, -128, 127), wrapped, Dtype.int8, budget=None)
    assert found.relation is ValueRelation.saturated
    single = deviation([127, 5, 6], [-100, 5, 6], Dtype.int8, budget=None)
    assert single.relation is not ValueRelation.saturated


LONG = GENERATOR.normal(size=70_001)


@pytest.mark.parametrize("limit", [2**15, 2**16])
def test_elements_at_wrapped_offsets_are_recognized(limit: int) -> None:
    offsets = np.arange(LONG.size) % limit
    written = np.zeros_like(LONG)
    written[offsets] = LONG
    assert deviation(LONG[offsets], LONG).relation is ValueRelation.wrapped
    assert deviation(written, LONG).relation is ValueRelation.wrapped


def test_moved_elements_are_not_at_wrapped_offsets() -> None:
    assert deviation(np.roll(LONG, 5000), LONG).relation is ValueRelation.misplaced


def test_wrong_elements_with_their_former_values_are_partly_unchanged() -> None:
    before, expected = GENERATOR.normal(size=(2, 40)).astype(np.float32)
    actual = np.where(np.arange(40) < 30, expected, before)
    incorrect = IncorrectTensor(
        is_wrong=actual != expected,
        actual=actual,
        expected=expected,
        dtype=Dtype.float32,
        budget=np.full(40, 1e-6),
        before=before,
        inputs={},
    )
    assert derive_deviation(incorrect).relation is ValueRelation.partly_unchanged


TRUTHS = (np.arange(35) * 7919 % 13 < 6).reshape(5, 7)


@pytest.mark.parametrize(
    ("actual", "relation"),
    [
        (TRUTHS.T.reshape(5, 7), ValueRelation.rearranged),
        (np.repeat(TRUTHS, 2)[:35].reshape(5, 7), ValueRelation.rearranged),
        (TRUTHS.reshape(-1)[::-1].reshape(5, 7), ValueRelation.rearranged),
        (~TRUTHS, None),
        (TRUTHS ^ (np.arange(35) % 9 == 0).reshape(5, 7), None),
    ],
)
def test_truth_values_in_a_simple_order_are_rearranged(actual: Any, relation: ValueRelation | None) -> None:
    assert deviation(actual, TRUTHS, Dtype.bool).relation is relation


def test_two_wrong_values_that_occur_elsewhere_are_chance() -> None:
    actual = np.where(np.median(VALUES) > VALUES, VALUES[np.arange(40) % 2], VALUES)
    assert deviation(actual, VALUES.astype(np.float32)).relation is None


LARGE = np.array([2**53 + 12_345_679, 2**60 + 7, 5 * 2**54 + 3], np.int64)


@pytest.mark.parametrize(
    ("actual", "relation"),
    [
        (LARGE.astype(np.float64).astype(np.int64), ValueRelation.through_float64),
        (LARGE.astype(np.float32).astype(np.int64), ValueRelation.through_float32),
        (LARGE.astype(np.int32).astype(np.int64), ValueRelation.in_32_bits),
    ],
)
def test_relations_between_wrong_integers_are_found(actual: NDArray[np.int64], relation: ValueRelation) -> None:
    assert deviation(actual, LARGE, Dtype.int64).relation is relation


def test_the_range_of_an_input_is_found() -> None:
    values = np.linspace(-20, 20, 400)
    actual = np.where(values < -8, 0.5, np.sin(values))
    (region,) = (region for region in deviation(actual, np.sin(values), x=values).regions if region.parameter == "x")
    assert region.condition == "below"
    assert region.inside is not None and region.outside is not None
    assert region.inside < -8 < region.outside


def test_the_magnitude_of_an_input_is_found() -> None:
    values = np.concatenate([np.linspace(-9, 9, 200), [1e3, -1e4, 1e5, -1e6]])
    actual = np.where(np.abs(values) > 100, 0.5, np.sin(values))
    regions = deviation(actual, np.sin(values), x=values).regions
    assert [region.condition for region in regions if region.parameter == "x"] == ["far_from_zero"]


def test_special_values_of_an_input_are_found() -> None:
    values = np.where(np.arange(300) % 50 == 0, np.nan, 1.0 + np.arange(300))
    regions = deviation(np.nan_to_num(values), values, x=values).regions
    assert {(region.parameter, region.condition) for region in regions} == {("x", "NaN"), ("expected", "NaN")}


def test_a_factor_of_all_elements_is_found_if_few_wrong_elements_have_different_values() -> None:
    ones = np.ones(12, np.float32)
    assert deviation(1.001 * ones, ones).relation is ValueRelation.scaled
    assert deviation(np.where(np.arange(12) < 6, 1.001, 1.0), ones).relation is None


def test_scaled_elements_may_have_rounding_errors_within_their_budgets() -> None:
    noise = 1e-6 * GENERATOR.uniform(-1, 1, size=40)
    scaled = deviation(1.04 * VALUES + noise, VALUES, budget=2e-6)
    assert scaled.relation is ValueRelation.scaled
    assert scaled.value == pytest.approx(1.04, rel=1e-3)
    assert deviation(VALUES + 4 * noise, VALUES, budget=2e-6).relation is None


def test_zeros_state_whether_the_correct_elements_are_zero_too() -> None:
    expected = np.where(np.arange(40) % 2 == 0, VALUES, 0.0)
    assert deviation(0 * VALUES, expected).is_whole
    assert not deviation(np.where(np.arange(40) < 20, 0.0, VALUES), VALUES).is_whole


def test_results_of_rounded_integers_have_passed_through_their_type() -> None:
    inputs = GENERATOR.integers(2**40, 2**60, size=20)
    found = deviation(inputs.astype(np.float64).astype(np.int64) & -8, inputs & -8, Dtype.int64, budget=None)
    assert found.relation is ValueRelation.through_float64
