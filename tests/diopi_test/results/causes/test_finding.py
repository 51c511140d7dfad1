"""The main finding of a failed case: its symptom, and the place of the wrong elements."""

from __future__ import annotations

from dataclasses import replace

import pytest
from case_records import case_record
from failed_cases import wrong_values

from diopi_test.execution.difference import Pattern, PatternKind
from diopi_test.results.causes.finding import find_main_finding


@pytest.mark.parametrize(
    ("message", "error_code", "symptom"),
    [
        ("no memory for the workspace", "OutOfMemory", "error"),
        ("ErrorOccurred: corrupted", "", "error"),
        ("the vendor raised an exception", "", "exception"),
    ],
)
def test_a_call_without_results_returned_an_error_or_raised(message: str, error_code: str, symptom: str) -> None:
    record = replace(case_record("diopiAdd[float32-a]", "failed", message), error_code=error_code)
    assert find_main_finding(record).symptom == symptom


@pytest.mark.parametrize(
    ("wrong_count", "total", "place"),
    [(2, 2, ""), (1, 2, ""), (1, 3, "single"), (2, 3, "tail"), (3, 3, ""), (99, 100, "tail"), (100, 100, "")],
)
def test_places_count_in_tensors_of_three_elements_that_are_partly_wrong(
    wrong_count: int, total: int, place: str
) -> None:
    patterns = [Pattern(PatternKind.tail, "the last elements")]
    record = wrong_values("diopiAdd[float32-a]", {"wrong_value": wrong_count}, patterns=patterns, total=total)
    assert find_main_finding(record).pattern == place
