"""A failed check names the worst element, its inputs, and how the call was made."""

from collections.abc import Callable
from typing import Any

import faulty
import numpy as np
import pytest
from faulty import FaultyVendor
from trials import outcome_of

from diopi_test.baseline.codec import from_json, to_json
from diopi_test.execution.difference import Difference, PatternKind
from diopi_test.execution.verdict import CheckResult, Outcome
from diopi_test.results.details import details

Change = Callable[[Any], None]


def outcome(change: Change, function: str = "diopiAdd", label: str = "float32-row") -> Outcome:
    """Return the outcome of a case whose results are changed."""
    return outcome_of(
        FaultyVendor("faulty", lambda arguments: change(faulty._result(arguments).view())), function, label
    )


def failed_checks(outcome: Outcome) -> dict[str, CheckResult]:
    """Return the results of the failed checks by check."""
    return {finding.check: finding for finding in outcome.check_results if not finding.passed}


def odd_columns(view: Any) -> None:
    """Make every second column wrong, and one element by far."""
    view[:, 1::2] *= np.float32(1.001)
    view[2, 3] *= np.float32(2)


def test_the_difference_has_the_worst_element_its_inputs_and_the_call() -> None:
    (place,) = failed_checks(outcome(odd_columns))["values"].differences
    assert (place.tensor, place.problem, place.wrong_count, place.total) == ("out", "are wrong", 8, 20)
    assert place.index == (2, 3)
    assert float(place.actual) == pytest.approx(2 * float(place.expected), rel=0.01)
    assert place.error == pytest.approx(abs(float(place.actual) - float(place.expected)), rel=1e-6)
    assert place.ratio is not None and place.ratio > 1e4
    assert [pattern.kind for pattern in place.patterns] == [PatternKind.slice]
    assert float(place.inputs["input"]) - 0.75 * float(place.inputs["other"]) == pytest.approx(float(place.expected))
    assert place.arguments == {
        "out": "float32 (4, 5), strides (5, 1)",
        "input": "float32 (4, 5), strides (5, 1)",
        "other": "float32 (5,), strides (1,)",
        "alpha": "-0.75",
    }
    assert place.call == ""
    assert place.map is not None
    assert place.map.rows[2][3] == "9"
    assert [{row[0], row[2], row[4]} <= set("01234") for row in place.map.rows] == [True] * 4


def test_the_message_names_the_worst_element_and_the_pattern() -> None:
    message = failed_checks(outcome(odd_columns))["values"].message
    assert message.startswith("out: 8 of 20 elements are wrong, the worst at (2, 3): ")
    assert " (exactly [:, 1::2]); " in message


def test_an_element_that_is_not_finite_is_the_worst() -> None:
    def change(view: Any) -> None:
        view[0, 0] = 1e30
        view[3, 1] = np.nan

    (place,) = failed_checks(outcome(change))["values"].differences
    assert (place.index, place.error) == ((3, 1), np.inf)


def test_the_worst_integer_has_the_largest_error() -> None:
    def change(view: Any) -> None:
        view[1, 1] += 1
        view[1, 4] += 9

    (place,) = failed_checks(outcome(change, label="int32-row"))["values"].differences
    assert (place.index, place.error, place.budget) == ((1, 4), 9, None)


def test_special_inputs_are_named() -> None:
    def flush(view: Any) -> None:
        view[np.isnan(view)] = 0

    (place,) = failed_checks(outcome(flush, "diopiSin", "float32-special"))["values"].differences
    assert "only where expected is NaN" in place.pattern_suffix


def test_the_detail_locates_a_root_mean_square_that_is_too_large() -> None:
    def change(view: Any) -> None:
        view[...] = view.astype("bfloat16").astype(np.float16)

    finding = failed_checks(outcome(change, "diopiSin", "float16-long"))["values"]
    (place,) = finding.differences
    assert "root mean square" in finding.message
    assert place.problem == "have errors above 1 unit"
    assert place.ratio is not None and 1 / 8 < place.ratio < 1


def test_a_second_call_is_named_and_its_offsets_shown() -> None:
    calls = []

    def change(view: Any) -> None:
        calls.append(view)
        if len(calls) > 1:
            odd_columns(view)

    (place,) = failed_checks(outcome(change))["repeat"].differences
    assert place.call == "a second call"
    assert place.arguments["input"] == "float32 (4, 5), strides (5, 1), offset 64"


def test_different_bits_in_the_second_call_are_located() -> None:
    calls = []

    def change(view: Any) -> None:
        calls.append(view)
        if len(calls) == 2:
            view[-1, -1] = np.nextafter(view[-1, -1], np.float32(9))

    (place,) = failed_checks(outcome(change))["repeat"].differences
    assert (place.problem, place.index, place.call) == ("have other bits", (3, 4), "a second call")


def test_changed_inputs_and_unwritten_results_are_located() -> None:
    written = outcome_of(FaultyVendor("faulty", faulty.flip_bit_of_input), "diopiSqrt", "float32-matrix")
    (place,) = failed_checks(written)["inputs"].differences
    assert (place.tensor, place.problem, place.index, place.inputs) == ("input", "changed", (0, 0), {})
    left = outcome_of(FaultyVendor("faulty", faulty.restore_last_element), "diopiSqrt", "float32-matrix")
    (place,) = failed_checks(left)["written"].differences
    assert (place.problem, place.index, place.actual) == ("were not written", (6, 4), "nan")


def test_at_most_three_entries_of_an_array_of_tensors_are_listed() -> None:
    def change(arguments: dict[str, Any]) -> None:
        for tensor in arguments["outs"]:
            tensor.view()[...] += 1

    found = outcome_of(FaultyVendor("faulty", change), "diopiSplitWithSizes", "float32-rows")
    places = failed_checks(found)["values"].differences
    assert 1 < len(places) <= 3
    assert [place.tensor for place in places] == [f"outs.{number}" for number in range(len(places))]


def test_a_difference_survives_a_round_trip_through_json() -> None:
    for place in failed_checks(outcome(odd_columns))["values"].differences:
        assert from_json(Difference, to_json(place)) == place


def test_details_describe_the_element_its_inputs_and_the_call() -> None:
    found = outcome(odd_columns)
    element, inputs, call = details(found.check_results)
    assert element.startswith("out[2, 3]: ") and element.endswith(" times the budget")
    assert inputs.startswith("computed from input = ") and "; other = " in inputs
    assert call.startswith("called with out float32 (4, 5), strides (5, 1); ") and call.endswith("; alpha -0.75")
    assert list(details(outcome(lambda view: None).check_results)) == []
