"""Cases of in-place use: an argument's tensor is also passed as a result."""

from functools import cache
from typing import Any

import pytest

from diopi_impl import BaseVendor, find_vendor
from diopi_impl.host_runtime import HostRuntime
from diopi_proto.interface import lookup
from diopi_proto.types import Dtype, Error
from diopi_test.cases.case import CaseClass
from diopi_test.cases.selection import select_cases
from diopi_test.execution.aliased import aliased_labels, make_aliased_case
from diopi_test.execution.call import Call
from diopi_test.execution.description import describe_arguments
from diopi_test.execution.verdict import Outcome, Verdict
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.records import BaselineCase
from diopi_test.run.run_case import run_case
from lib_rt import Context, Device, Tensor

ROTARY = "diopiRotaryEmbedding"


@cache
def basic_cases(function: str) -> tuple[BaselineCase, ...]:
    cases = [case for case in select_cases(function, "full") if case.smoke and case.dtype is Dtype.float32]
    return tuple(compute_baseline_case(lookup(function), case) for case in cases)


def aliased(function: str, label: str) -> BaselineCase:
    base = dict(aliased_labels(lookup(function), basic_cases(function)))[label]
    return make_aliased_case(next(c for c in basic_cases(function) if c.label == base), label, lookup(function))


def run(vendor: BaseVendor, case: BaselineCase) -> Outcome:
    with vendor.open_device() as device:
        return run_case(vendor, device, case)


class EarlyWriter(BaseVendor):
    """A vendor that rotates correctly, unless the result overwrites elements that are read later.

    Attributes:
        shares_tensor: whether the latest call had one tensor for `out` and `x`.
    """

    def __init__(self) -> None:
        super().__init__("early", "1")
        self.shares_tensor = False

    def has(self, name: str) -> bool:
        return name == ROTARY

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        out, x, cos, sin, *_ = arguments
        context.stream.synchronize()
        self.shares_tensor = out is x
        views = [tensor.view() for tensor in (out, x, cos, sin) if isinstance(tensor, Tensor)]
        result, argument, cosines, sines = views
        half = argument.shape[-1] // 2
        result[..., :half] = argument[..., :half] * cosines - argument[..., half:] * sines
        result[..., half:] = argument[..., half:] * cosines + argument[..., :half] * sines
        return Error.Success

    def last_error(self) -> str:
        return ""

    def open_device(self) -> Device:
        return Device(HostRuntime().functions(), host_addressable=True)


def test_a_vendor_that_overwrites_its_input_too_early_fails() -> None:
    vendor, case = EarlyWriter(), aliased(ROTARY, "callers-out-is-x")
    outcome = run(vendor, case)
    assert vendor.shares_tensor
    assert outcome.verdict is Verdict.failed
    assert [finding.check for finding in outcome.check_results if not finding.passed] == ["values"]


def test_the_same_vendor_passes_with_separate_tensors() -> None:
    vendor = EarlyWriter()
    (base,) = (case for case in basic_cases(ROTARY) if not case.arguments["conj"] and case.label == "float32")
    assert run(vendor, base).verdict is Verdict.passed
    assert not vendor.shares_tensor


@pytest.mark.parametrize(
    ("function", "label"),
    [
        (ROTARY, "callers-out-is-x"),
        ("diopiMul", "callers-out-is-input"),
        ("diopiMul", "callers-out-is-other"),
        ("diopiGeluBackward", "callers-grad_input-is-grad_output"),
        ("diopiAddScalar", "callers-out-is-input"),
    ],
)
def test_the_built_in_vendor_supports_aliased_results(function: str, label: str) -> None:
    case = aliased(function, label)
    assert (case.case_class, case.smoke) == (CaseClass.callers, False)
    assert run(find_vendor("jax_cpu"), case).verdict is Verdict.passed


def test_results_that_depend_on_other_elements_have_no_aliased_call() -> None:
    for function in ("diopiSoftmax", "diopiMm", "diopiRotaryEmbeddingV2", "diopiAddInp", "diopiEqual"):
        assert not lookup(function).aliases


def test_results_of_another_type_have_no_aliased_call() -> None:
    """A comparison may only overwrite an argument of truth values."""
    assert lookup("diopiEq").aliases == {"out": ("input", "other")}
    assert aliased_labels(lookup("diopiEq"), basic_cases("diopiEq")) == []


def test_the_report_names_the_shared_tensor() -> None:
    case, vendor = aliased(ROTARY, "callers-out-is-x"), find_vendor("jax_cpu")
    with vendor.open_device() as device, Call(vendor, device, case) as call:
        assert describe_arguments(call.run())["x"] == "the tensor of out"
