"""The budgets of sums cover float32 sums that are added one value after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from references import call_with_remarks

from diopi_proto.types import Dtype, Reduction
from diopi_test.oracle.budget import K
from diopi_test.oracle.reference.reduction import cumsum
from diopi_test.oracle.reference.sums import equal_pair_share, mean_repetition_at, sum_terms
from lib_rt.formats import ulp

COLUMNS = 300


def rows(count: int, different: int) -> NDArray[np.float32]:
    """Return rows of which only some differ, in any order."""
    rng = np.random.default_rng(count + different)
    return rng.standard_normal((different, COLUMNS)).astype(np.float32)[rng.integers(0, different, count)]


def in_units(float32_sums: NDArray[Any], exact: NDArray[Any], terms: NDArray[Any]) -> NDArray[Any]:
    """Return errors in units of a budget, without the part of it that allows for rounded inputs."""
    unit = ulp(exact, Dtype.float32) + np.finfo(np.float32).eps * terms
    return np.abs(float32_sums - exact) / unit


@pytest.mark.parametrize("count", [64, 1000, 20_000])
@pytest.mark.parametrize("different", [1, 3, 20])
def test_sums_of_repeated_values_are_within_the_budget(count: int, different: int) -> None:
    values = rows(count, different)
    exact = values.astype(np.float64)
    units = in_units(np.cumsum(values, 0)[-1], exact.sum(0), sum_terms(exact, 0))
    assert np.sqrt(np.mean(units**2)) < 1
    assert units.max() < K


@pytest.mark.parametrize("spread", [1e-5, 1e-3, 1e-1])
def test_sums_of_almost_equal_values_are_within_the_budget(spread: float) -> None:
    values = np.random.default_rng(3).normal(0.7, spread, (40_000, COLUMNS)).astype(np.float32)
    exact = values.astype(np.float64)
    units = in_units(np.cumsum(values, 0)[-1], exact.sum(0), sum_terms(exact, 0))
    assert np.sqrt(np.mean(units**2)) < 1
    assert units.max() < K


def test_running_sums_of_repeated_values_are_within_the_budget() -> None:
    values = rows(2000, 2)
    running = cumsum(values.astype(np.float64), 0)
    units = in_units(np.cumsum(values, 0), running.value, running.terms)
    assert np.sqrt(np.mean(units**2)) < 1
    assert units.max() < K


@pytest.mark.parametrize("different", [1, 3])
def test_accumulated_index_put_of_repeated_values_is_within_the_budget(different: int) -> None:
    values, places = rows(20_000, different), np.arange(20_000) % 3
    float32_sums = np.array([np.cumsum(values[places == place], 0)[-1] for place in range(3)])
    result = call_with_remarks("diopiIndexPut", np.zeros((3, COLUMNS)), values.astype(np.float64), [places], True)
    units = in_units(float32_sums, result.value, result.terms)
    assert np.sqrt(np.mean(units**2)) < 1
    assert units.max() < K


@pytest.mark.parametrize("reduction", [Reduction.none, Reduction.mean])
def test_cross_entropy_over_many_classes_is_within_the_budget(reduction: Reduction) -> None:
    logits = np.random.default_rng(3).uniform(-1, 1, (300, 32_003)).astype(np.float32)
    target = np.arange(300) * 100
    total = np.cumsum(np.exp(logits), 1)[:, -1]
    losses = np.log(total) - logits[np.arange(300), target]
    float32_sums = losses if reduction == Reduction.none else np.cumsum(losses)[-1:] / np.float32(300)
    result = call_with_remarks("diopiCrossEntropyLoss", logits.astype(np.float64), target, None, reduction, -100, 0.0)
    units = in_units(float32_sums, result.value, result.terms + result.stored)
    assert np.sqrt(np.mean(units**2)) < 1
    assert units.max() < K


def test_mean_repetition_at_counts_equal_values_per_position() -> None:
    places, values = np.array([0, 0, 0, 1, 1, 2, 0]), np.array([0.5, 0.5, 2.0, 0.5, 2.0, 0.5, 0.0])
    counted = mean_repetition_at(places, values, np.array([3, 2, 1, 0]))
    assert counted.tolist() == [1 + 2 / 3, 1, 1, 1]


def test_equal_pair_share_is_the_share_of_pairs_of_equal_values() -> None:
    values = rows(10_000, 4).astype(np.float64)
    assert equal_pair_share(values, 0) == pytest.approx(np.full(COLUMNS, 0.25), abs=0.1)
    assert equal_pair_share(values.reshape(100, 100, COLUMNS), (0, -2)).shape == (COLUMNS,)
    assert equal_pair_share(values, 1).max() == 0
    assert equal_pair_share(np.zeros((100, 2)), 0).max() == 0
    assert equal_pair_share(np.ones((5, 2)), 0).tolist() == [0, 0]
    assert equal_pair_share(np.ones(7), None) == 1
    assert equal_pair_share(np.empty((0, 7)), 0).shape == (7,)
