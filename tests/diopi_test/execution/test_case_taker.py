"""Test vendors receive the case of every call before the call."""

from __future__ import annotations

from typing import Any

from trials import baseline_case, outcome_of

from diopi_impl.host_runtime import HostRuntime
from diopi_proto.types import Error
from diopi_test.cases.case import CaseClass
from diopi_test.execution.case_taker import CaseTaker
from diopi_test.execution.ignored import make_ignored_case
from diopi_test.execution.negative_cases import make_negative_case
from diopi_test.execution.verdict import Outcome, Verdict
from diopi_test.oracle.records import BaselineCase
from diopi_test.quality.stub_vendor import StubVendor
from diopi_test.quality.stub_vendor import vendor as stub
from diopi_test.run.run_case import run_case
from diopi_test.run.run_negative_case import run_negative_case
from lib_rt import Context


class Noting(StubVendor):
    """A vendor that records the case of each call."""

    def __init__(self) -> None:
        super().__init__("noting", "1", HostRuntime().functions(), host_addressable=True)
        self.noted_cases: list[tuple[str, BaselineCase | None]] = []

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        self.noted_cases.append((name, self.case))
        return super().call(name, context, *arguments)


def test_every_call_is_assigned_to_its_case() -> None:
    vendor = Noting()
    assert isinstance(vendor, CaseTaker)
    assert outcome_of(vendor, "diopiSqrtInp", "float32-matrix").verdict is Verdict.passed
    assert {name for name, _ in vendor.noted_cases} == {"diopiSqrtInp", "diopiSqrt"}  # the latter to agree with
    assert all(case is not None and case.function == name for name, case in vendor.noted_cases)


def test_a_negative_call_is_assigned_to_a_negative_case() -> None:
    vendor = Noting()
    negative = make_negative_case(baseline_case("diopiSqrt", "float32-matrix"), "negative-out-shape")
    with vendor.open_device() as device:
        assert run_negative_case(vendor, device, negative).verdict is Verdict.passed
    assert vendor.noted_cases == [("diopiSqrt", negative.case)]
    assert negative.case.case_class is CaseClass.negative


def test_a_call_with_an_ignored_argument_has_a_separate_case() -> None:
    base = baseline_case("diopiLayerNormBackward", "float32-plain")
    vendor = Noting()
    with vendor.open_device() as device:
        outcome: Outcome = run_case(vendor, device, make_ignored_case(base, "callers-bias-dtype"))
    assert outcome.verdict is Verdict.passed
    assert {case.label for _, case in vendor.noted_cases if case} == {"callers-bias-dtype"}


def test_stub_vendor_fails_a_call_without_a_case() -> None:
    fresh = StubVendor("fresh", "1", stub.runtime, host_addressable=True)
    with fresh.open_device() as device, Context(device) as context:
        assert fresh.call("diopiSqrt", context) is Error.ErrorOccurred
    assert "diopiSqrt" in fresh.last_error()
