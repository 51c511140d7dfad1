"""The check detects vendors whose in-place form does not agree with their out-of-place form."""

from typing import Any

import numpy as np
import pytest
from trials import baseline_case, failed_checks, outcome_of

from diopi_impl import Vendor
from diopi_impl.host_runtime import HostRuntime
from diopi_proto.types import Dtype, Error
from diopi_test.execution.out_of_place import derive_out_of_place_case
from diopi_test.execution.verdict import Verdict
from diopi_test.quality.stub_vendor import StubVendor
from lib_rt import Context

Array = np.ndarray[Any, Any]


class DisagreeingFormsVendor(StubVendor):
    """A vendor with one wrong element: above the expected one in place, below it out of place.

    Args:
        share: the error as a share of the budget.
    """

    def __init__(self, share: float) -> None:
        super().__init__("disagreeing forms", "1", HostRuntime().functions(), host_addressable=True)
        self._share = share

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        """Call a function and move its first result element by a share of the budget, in-place forms upwards."""
        code = super().call(name, context, *arguments)
        limit = baseline_case("diopiSqrtInp", "float32-matrix").expected["input"].budget.limit
        view = arguments[0].view()
        sign = 1 if name.endswith("Inp") else -1
        view.flat[0] += sign * self._share * limit.flat[0]
        return code


def test_results_that_differ_by_less_than_the_budget_agree() -> None:
    outcome = outcome_of(DisagreeingFormsVendor(0.4), "diopiSqrtInp", "float32-matrix")
    assert outcome.verdict is Verdict.passed
    assert "inplace" in [finding.check for finding in outcome.check_results]


def test_results_that_differ_by_more_than_the_budget_fail() -> None:
    outcome = outcome_of(DisagreeingFormsVendor(0.6), "diopiSqrtInp", "float32-matrix")
    assert failed_checks(outcome) == ["inplace"]
    assert "input: 1 of 35 elements differ, the first at (0, 0)" in outcome.message
    assert "out of place" in outcome.message
    (difference,) = next(finding.differences for finding in outcome.check_results if not finding.passed)
    assert (difference.tensor, difference.index, difference.problem) == ("input", (0, 0), "differ")


def test_exact_results_must_be_equal() -> None:
    """Here, the results of the in-place form are correct, and those of the out-of-place form are not."""
    vendor = Vendor("two functions", "1", HostRuntime().functions(), host_addressable=True)

    @vendor.implements_raw("diopiFloor")
    def floor(ctx: Context, out: Any, input: Any) -> None:
        ctx.stream.synchronize()
        out.view()[...] = np.floor(input.view()) + 1

    @vendor.implements_raw("diopiFloorInp")
    def floor_in_place(ctx: Context, input: Any) -> None:
        ctx.stream.synchronize()
        input.view()[...] = np.floor(input.view())

    outcome = outcome_of(vendor, "diopiFloorInp", "float32-matrix")
    assert failed_checks(outcome) == ["inplace"]


def test_a_vendor_without_the_out_of_place_form_is_not_checked() -> None:
    vendor = Vendor("one function", "1", HostRuntime().functions(), host_addressable=True)

    @vendor.implements_raw("diopiFloorInp")
    def floor_in_place(ctx: Context, input: Any) -> None:
        ctx.stream.synchronize()
        input.view()[...] = np.floor(input.view())

    outcome = outcome_of(vendor, "diopiFloorInp", "float32-matrix")
    assert outcome.verdict is Verdict.passed
    assert "inplace" not in [finding.check for finding in outcome.check_results]


@pytest.mark.parametrize(
    ("function", "out_of_place"),
    [
        ("diopiAddInp", "diopiAdd"),
        ("diopiAddInpScalar", "diopiAddScalar"),
        ("diopiPowInp", "diopiPow"),
        ("diopiForeachaddInpScalar", "diopiForeachaddScalar"),
        ("diopiScatterInpScalar", "diopiScatterScalar"),
    ],
)
def test_out_of_place_case_calls_the_out_of_place_form(function: str, out_of_place: str) -> None:
    case = derive_out_of_place_case(first_case(function))
    assert case is not None
    assert case.function == out_of_place
    assert not case.smoke


def test_out_of_place_case_has_the_result_type_of_the_standard() -> None:
    case = derive_out_of_place_case(first_case("diopiEqInp"))
    assert case is not None
    result = case.expected["out"]
    assert not isinstance(result, list)
    assert result is not None
    assert result.dtype is Dtype.bool


@pytest.mark.parametrize("function", ["diopiAdd", "diopiAddScalar", "diopiSort"])
def test_functions_that_are_not_in_place_have_no_out_of_place_case(function: str) -> None:
    assert derive_out_of_place_case(first_case(function)) is None


def first_case(function: str) -> Any:
    """Return the first smoke case of a function."""
    from diopi_test.cases.selection import select_cases

    return baseline_case(function, select_cases(function, "smoke")[0].label)
