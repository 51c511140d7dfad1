"""The check detects vendors that read inputs as if they had another layout."""

from typing import Any

import numpy as np
import pytest
from faulty import Corruption, FaultyVendor, flip_bit_of_input
from trials import baseline_case, failed_checks, outcome_of

from diopi_proto.types import Error
from diopi_test.execution.verdict import Verdict


def run_corrupted(corrupt: Corruption, label: str = "float32-matrix") -> Any:
    """Run a case of `diopiSqrt` on a vendor whose results a function corrupts."""
    return outcome_of(FaultyVendor("faulty", corrupt), "diopiSqrt", label)


def is_contiguous(tensor: Any) -> bool:
    """Return whether the elements of a tensor lie in row-major order without gaps."""
    return bool(tensor.view().flags.c_contiguous)


def strides_ignored(arguments: dict[str, Any]) -> None:
    """Read the elements in memory order."""
    out, input = arguments["out"], arguments["input"]
    contents = input.storage().view(input.view().dtype)[input.storage_offset :][: input.numel]
    with np.errstate(invalid="ignore"):
        np.copyto(out.view(), np.sqrt(contents).reshape(out.shape))


def test_a_vendor_that_ignores_strides_fails() -> None:
    outcome = run_corrupted(strides_ignored)
    assert failed_checks(outcome) == ["layout"]
    assert "layout: with inputs in another layout: values: out: " in outcome.message


def test_a_correct_vendor_passes_with_another_layout() -> None:
    outcome = run_corrupted(lambda arguments: None)
    assert outcome.verdict is Verdict.passed
    assert "layout" in [finding.check for finding in outcome.check_results]


def test_only_one_element_type_is_checked() -> None:
    outcome = run_corrupted(strides_ignored, "float16-matrix")
    assert baseline_case("diopiSqrt", "float16-matrix").smoke
    assert outcome.verdict is Verdict.passed
    assert "layout" not in [finding.check for finding in outcome.check_results]


@pytest.mark.parametrize(("code", "failed"), [(Error.ErrorOccurred, ["layout"]), (Error.NoImplement, [])])
def test_another_layout_may_be_unimplemented_but_not_fail(code: Error, failed: list[str]) -> None:
    outcome = run_corrupted(lambda arguments: None if is_contiguous(arguments["input"]) else code)
    assert failed_checks(outcome) == failed


def test_a_changed_input_fails_the_check_of_inputs() -> None:
    outcome = run_corrupted(
        lambda arguments: None if is_contiguous(arguments["input"]) else flip_bit_of_input(arguments)
    )
    assert failed_checks(outcome) == ["inputs"]
    assert "inputs: in a call with inputs in another layout, " in outcome.message
