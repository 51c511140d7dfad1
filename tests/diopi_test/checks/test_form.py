"""The memory layout of a result that the callee allocates counts if the caller requests a memory format."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from diopi_impl import Vendor
from diopi_impl.host_runtime import HostRuntime
from diopi_proto.interface import lookup
from diopi_test.cases.selection import select_cases
from diopi_test.execution.verdict import Outcome, Verdict
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.run.run_case import run_case

Array = np.ndarray[Any, Any]


@pytest.fixture
def run_vendor_case() -> Iterator[Callable[[str, str, Callable[..., Array]], Outcome]]:
    """Run one case on a vendor with only this implementation of its function."""
    vendor = Vendor("one function", "1", HostRuntime().functions(), host_addressable=True)
    device = vendor.open_device()

    def run(function: str, label: str, implementation: Callable[..., Array]) -> Outcome:
        vendor.implements(function)(implementation)
        case = next(case for case in select_cases(function, "full") if case.label == label)
        return run_case(vendor, device, compute_baseline_case(lookup(function), case))

    yield run
    device.close()


def test_a_result_in_the_wrong_order_fails(run_vendor_case: Callable[..., Outcome]) -> None:
    def row_by_row(input: Array, memoryFormat: int) -> Array:
        return np.ascontiguousarray(input)

    outcome = run_vendor_case("diopiContiguous", "float32-channels-last", row_by_row)
    assert outcome.verdict is Verdict.failed
    assert outcome.message == "form: out has strides (12, 4, 2, 1), expected (12, 1, 6, 3)"


def test_a_result_in_the_requested_order_passes(run_vendor_case: Callable[..., Outcome]) -> None:
    def channels_innermost(input: Array, memoryFormat: int) -> Array:
        return np.moveaxis(np.ascontiguousarray(np.moveaxis(input, 1, -1)), -1, 1)

    assert run_vendor_case("diopiContiguous", "float32-channels-last", channels_innermost).verdict is Verdict.passed


def test_any_order_passes_if_the_caller_requests_none(run_vendor_case: Callable[..., Outcome]) -> None:
    def column_by_column(in_: Array, format: int) -> Array:
        return np.asfortranarray(in_)

    assert run_vendor_case("diopiNativeMemoryFormatCast", "float32-matrix", column_by_column).verdict is Verdict.passed
