"""The check detects vendors whose second call differs: in bits, because of the first call, or because of addresses."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from faulty import (
    Corruption,
    FaultyVendor,
    flip_bit_after_storage,
    flip_bit_in_gap,
    flip_bit_of_input,
    move_last_element_up,
)
from trials import baseline_case, failed_checks, outcome_of

from diopi_proto.types import Error
from diopi_test.execution.verdict import Verdict

off_by_an_ulp = move_last_element_up(1)


class Calls:
    """A vendor that corrupts the calls with the numbers in `corrupted`, counted from 1."""

    def __init__(self, corrupt: Corruption, corrupted: Callable[[int], bool]) -> None:
        self.number = 0
        self._corrupt = corrupt
        self._corrupted = corrupted

    def __call__(self, arguments: dict[str, Any]) -> Any:
        self.number += 1
        return self._corrupt(arguments) if self._corrupted(self.number) else None


def run_corrupted(corrupt: Corruption, function: str = "diopiSqrt", label: str = "float32-matrix") -> Any:
    """Run a case on a vendor whose results a function corrupts."""
    return outcome_of(FaultyVendor("faulty", corrupt), function, label)


def test_equal_results_pass() -> None:
    calls = Calls(off_by_an_ulp, lambda number: True)  # wrong by an ulp, which the budget allows, each time
    outcome = run_corrupted(calls)
    assert outcome.verdict is Verdict.passed
    assert "repeat" in [finding.check for finding in outcome.check_results]
    assert calls.number == 3  # the third is for the check of layouts


def test_different_results_within_the_budget_fail() -> None:
    outcome = run_corrupted(Calls(off_by_an_ulp, lambda number: number == 2))
    assert failed_checks(outcome) == ["repeat"]
    assert "out: 1 of 35 elements have other bits, the first at (6, 4)" in outcome.message


def test_a_vendor_whose_calls_depend_on_earlier_ones_fails() -> None:
    def doubled(arguments: dict[str, Any]) -> None:
        arguments["out"].view()[...] *= 2

    calls = Calls(doubled, lambda number: number > 1)
    outcome = run_corrupted(calls)
    assert failed_checks(outcome) == ["repeat"]
    assert "repeat: a second call: values: out: 35 of 35 elements are wrong" in outcome.message
    assert calls.number == 3  # the third call shows that the copies of the inputs are not the reason


def test_an_error_in_the_second_call_fails() -> None:
    outcome = run_corrupted(Calls(lambda arguments: Error.ErrorOccurred, lambda number: number > 1))
    assert failed_checks(outcome) == ["repeat"]
    assert "repeat: a second call: ErrorOccurred: corrupted" in outcome.message


@pytest.mark.parametrize(
    ("corrupt", "check"), [(flip_bit_after_storage, "guards"), (flip_bit_of_input, "inputs"), (flip_bit_in_gap, "gaps")]
)
def test_a_write_to_memory_in_the_second_call_fails_the_check_for_it(corrupt: Corruption, check: str) -> None:
    outcome = run_corrupted(Calls(corrupt, lambda number: number > 1))
    assert failed_checks(outcome) == [check]
    assert f"{check}: in a second call, " in outcome.message


def test_a_vendor_that_depends_on_storage_offsets_fails() -> None:
    def start_of_storage(arguments: dict[str, Any]) -> None:
        """Read the input from the start of its storage, where the first element of most tensors is."""
        out, input = arguments["out"], arguments["input"]
        contents = input.storage().view(np.float32)[: input.numel]
        with np.errstate(invalid="ignore"):
            np.copyto(out.view(), np.sqrt(contents).reshape(out.shape))

    outcome = run_corrupted(start_of_storage)
    assert failed_checks(outcome) == ["repeat"]


def test_a_second_call_may_return_another_valid_result() -> None:
    """Equal elements may have any order, and another order in each call."""
    calls = Calls(_equal_neighbors_swapped, lambda number: number == 2)
    assert run_corrupted(calls, "diopiSort", "bool-rows").verdict is Verdict.passed
    assert calls.number == 2


def _equal_neighbors_swapped(arguments: dict[str, Any]) -> None:
    """Swap the positions of two equal neighbors in the result of a sort."""
    values, indices = arguments["values"].view(), arguments["indices"].view()
    axis = arguments["dim"]
    sorted_values, positions = np.moveaxis(values, axis, -1), np.moveaxis(indices, axis, -1)
    rows = np.argwhere(sorted_values[..., 1:] == sorted_values[..., :-1])
    assert len(rows), "the case has no equal elements"
    *row, column = rows[0]
    pair = (*row, slice(column, column + 2))
    positions[pair] = positions[pair][::-1].copy()


def test_a_failed_call_is_not_repeated() -> None:
    calls = Calls(move_last_element_up(100), lambda number: True)
    outcome = run_corrupted(calls)
    assert failed_checks(outcome) == ["values"]
    assert "repeat" not in [finding.check for finding in outcome.check_results]
    assert calls.number == 1


def test_only_cases_of_the_smoke_level_are_repeated() -> None:
    assert not baseline_case("diopiSqrt", "float32-scalar").smoke
    calls = Calls(off_by_an_ulp, lambda number: number > 1)
    assert run_corrupted(calls, label="float32-scalar").verdict is Verdict.passed
    assert calls.number == 1
