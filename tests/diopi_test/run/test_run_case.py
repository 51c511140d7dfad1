"""One case on one vendor: the intended check detects every kind of defect."""

import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import faulty
import numpy as np
import pytest

from diopi_impl import Vendor
from diopi_proto.interface import lookup
from diopi_proto.types import Dtype
from diopi_test.cases.selection import select_cases
from diopi_test.execution.verdict import Outcome, Verdict
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.records import BaselineCase
from diopi_test.quality.stub_vendor import StubVendor
from diopi_test.run.run_case import run_case


@cache
def cases(function: str) -> dict[str, BaselineCase]:
    """Return all computed cases of a function by label."""
    prototype = lookup(function)
    return {case.label: compute_baseline_case(prototype, case) for case in select_cases(function, "full")}


@pytest.fixture
def run_vendor_case() -> Iterator[Callable[..., Outcome]]:
    """Run one case on a vendor; assert that nothing stays allocated on its device."""
    devices = []

    def run(vendor: Vendor, function: str, label: str) -> Outcome:
        device = vendor.open_device()
        devices.append(device)
        outcome = run_case(vendor, device, cases(function)[label])
        assert device.live_blocks == 0
        return outcome

    yield run
    for device in devices:
        device.close()


def make_corrupting_vendor(corrupt: Any) -> Vendor:
    """Return a vendor that corrupts the expected results."""
    return faulty.FaultyVendor("faulty", corrupt)


def stub_vendor() -> StubVendor:
    """Return a vendor that returns the expected results."""
    vendor = make_corrupting_vendor(lambda arguments: None)
    assert isinstance(vendor, StubVendor)
    return vendor


def test_correct_results_pass(run_vendor_case: Callable[..., Outcome]) -> None:
    outcome = run_vendor_case(stub_vendor(), "diopiSin", "float32-strided")
    assert outcome.verdict is Verdict.passed
    of_one_call = ["form", "written", "values", "inputs", "gaps", "guards"]
    assert [finding.check for finding in outcome.check_results] == [*of_one_call, "repeat", "order", "layout", "leaks"]


@pytest.mark.parametrize(
    ("corrupt", "check", "label"),
    [
        (faulty.move_last_element_up(16), "values", "float32-matrix"),
        (faulty.move_last_element_up(1), "values", "float32-exact"),
        (faulty.restore_last_element, "written", "float32-matrix"),
        (faulty.restore_last_element, "written", "bool-matrix"),
        (faulty.flip_bit_of_input, "inputs", "float32-matrix"),
        (faulty.flip_bit_after_storage, "guards", "float32-matrix"),
        (faulty.flip_bit_after_storage, "guards", "float32-empty"),
        (faulty.flip_bit_before_storage, "guards", "int8-scalar"),
        (faulty.flip_bit_in_gap, "gaps", "float32-strided"),
    ],
)
def test_each_fault_is_detected_by_its_check(
    run_vendor_case: Callable[..., Outcome], corrupt: Any, check: str, label: str
) -> None:
    function = (
        "diopiFloor" if label == "float32-exact" else "diopiLogicalNot" if label.startswith("bool") else "diopiSqrt"
    )
    outcome = run_vendor_case(make_corrupting_vendor(corrupt), function, label.replace("exact", "matrix"))
    assert outcome.verdict is Verdict.failed
    assert check in [finding.check for finding in outcome.check_results if not finding.passed]
    assert outcome.message


def test_a_small_error_within_the_budget_passes(run_vendor_case: Callable[..., Outcome]) -> None:
    outcome = run_vendor_case(make_corrupting_vendor(faulty.move_last_element_up(4)), "diopiSqrt", "float32-matrix")
    assert outcome.verdict is Verdict.passed
    assert max(finding.ratio or 0 for finding in outcome.check_results) > 0.1


@pytest.mark.parametrize(
    ("corrupt", "verdict"),
    [
        (faulty.return_error, Verdict.failed),
        (faulty.return_no_implement, Verdict.not_implemented),
        (faulty.return_dtype_not_supported, Verdict.unsupported),
    ],
)
def test_error_codes_determine_the_verdict(
    run_vendor_case: Callable[..., Outcome], corrupt: Any, verdict: Verdict
) -> None:
    outcome = run_vendor_case(make_corrupting_vendor(corrupt), "diopiSin", "float32-matrix")
    assert outcome.verdict is verdict
    assert "corrupted" in outcome.message


def test_a_missing_function_is_not_implemented(run_vendor_case: Callable[..., Outcome]) -> None:
    vendor = Vendor("empty", "1", stub_vendor().runtime)
    outcome = run_vendor_case(vendor, "diopiSin", "float32-matrix")
    assert outcome.verdict is Verdict.not_implemented
    assert outcome.message == "empty does not implement diopiSin"


def test_the_root_mean_square_reveals_arithmetic_of_the_wrong_width(run_vendor_case: Callable[..., Outcome]) -> None:
    def through_bfloat16(arguments: dict[str, Any]) -> None:
        view = arguments["out"].view()
        view[...] = view.astype("bfloat16").astype(np.float16)

    outcome = run_vendor_case(make_corrupting_vendor(through_bfloat16), "diopiSin", "float16-long")
    values = next(finding for finding in outcome.check_results if finding.check == "values")
    assert outcome.verdict is Verdict.failed
    assert values.rms is not None
    assert values.rms > 1
    assert values.ratio is not None
    assert values.ratio < 1


def test_the_cases_of_a_function_cover_its_dtypes() -> None:
    assert {case.dtype for case in cases("diopiSin").values()} == set(lookup("diopiSin").dtypes)
    assert Dtype.bfloat16 in {case.dtype for case in cases("diopiSin").values()}


def test_results_that_change_after_they_were_read_are_reported(
    run_vendor_case: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The results are written while the suite waits after it has read them."""
    unfinished: list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]] = []

    def finish_later(arguments: dict[str, Any]) -> None:
        view = arguments["out"].view()
        unfinished.append((view, view.copy()))
        view[...] = 3

    def finish(seconds: float) -> None:
        while unfinished:
            np.copyto(*unfinished.pop())

    monkeypatch.setattr(time, "sleep", finish)
    outcome = run_vendor_case(make_corrupting_vendor(finish_later), "diopiSin", "float32-matrix")
    assert [finding.problems for finding in outcome.check_results if finding.check == "order"] == [("written_late",)]
