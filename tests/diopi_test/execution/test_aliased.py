"""Cases of aliasing: one tensor is passed for several parameters, or inputs have a common storage."""

import re
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from diopi_impl import BaseVendor, find_vendor
from diopi_impl.host_runtime import HostRuntime
from diopi_proto.interface import lookup
from diopi_proto.sharing import find_input_pairs
from diopi_proto.types import Dtype, Error
from diopi_test.cases.case import CaseClass
from diopi_test.cases.selection import select_cases
from diopi_test.execution.aliased import aliased_labels, aliased_targets, make_aliased_case
from diopi_test.execution.call import Call
from diopi_test.execution.description import describe_arguments
from diopi_test.execution.evaluated import DerivationError, evaluate_with_arguments
from diopi_test.execution.verdict import Outcome, Verdict
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.records import BaselineCase, expected_arrays
from diopi_test.run.run_case import run_case
from lib_rt import Context, Device, Tensor

ROTARY = "diopiRotaryEmbedding"


@cache
def basic_cases(function: str) -> tuple[BaselineCase, ...]:
    """Return the computed float32 smoke cases of a function."""
    cases = [case for case in select_cases(function, "full") if case.smoke and case.dtype is Dtype.float32]
    return tuple(compute_baseline_case(lookup(function), case) for case in cases)


def aliased_case(function: str, label: str) -> BaselineCase:
    """Return the case with aliased arguments that has this label."""
    base = dict(aliased_labels(lookup(function), basic_cases(function)))[label]
    return make_aliased_case(next(c for c in basic_cases(function) if c.label == base), label, lookup(function))


def run(vendor: BaseVendor, case: BaselineCase) -> Outcome:
    """Run a case on a new device of a vendor."""
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
    vendor, case = EarlyWriter(), aliased_case(ROTARY, "aliased-out-is-x")
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
        (ROTARY, "aliased-out-is-x"),
        ("diopiMul", "aliased-out-is-input"),
        ("diopiMul", "aliased-out-is-other"),
        ("diopiGeluBackward", "aliased-grad_input-is-grad_output"),
        ("diopiAddScalar", "aliased-out-is-input"),
    ],
)
def test_the_built_in_vendor_supports_aliased_results(function: str, label: str) -> None:
    case = aliased_case(function, label)
    assert (case.case_class, case.smoke) == (CaseClass.aliased, False)
    assert run(find_vendor("jax_cpu"), case).verdict is Verdict.passed


def test_results_that_depend_on_other_elements_have_no_aliased_call() -> None:
    for function in ("diopiSoftmax", "diopiMm", "diopiRotaryEmbeddingV2", "diopiEqual"):
        assert not lookup(function).aliases


def test_results_of_another_type_have_no_aliased_call() -> None:
    """A comparison may only overwrite an argument of truth values."""
    assert lookup("diopiEq").aliases == {"out": ("input", "other")}
    labels = [label for label, _ in aliased_labels(lookup("diopiEq"), basic_cases("diopiEq"))]
    assert labels == ["aliased-other-is-input", "aliased-other-overlaps-input"]


def test_the_report_names_the_shared_tensor() -> None:
    case, vendor = aliased_case(ROTARY, "aliased-out-is-x"), find_vendor("jax_cpu")
    with vendor.open_device() as device, Call(vendor, device, case) as call:
        assert describe_arguments(call.run())["x"] == "the tensor of out"


class SquareShortcut(BaseVendor):
    """Multiplies correctly, unless both inputs are one tensor: its shortcut for squares returns the input."""

    def __init__(self) -> None:
        super().__init__("shortcut", "1")
        self.storages: set[int] = set()

    def has(self, name: str) -> bool:
        return name == "diopiMul"

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        out, first, second = arguments
        context.stream.synchronize()
        self.storages = {first.storage_ptr, second.storage_ptr}
        out.view()[...] = first.view() if first is second else first.view() * second.view()
        return Error.Success

    def last_error(self) -> str:
        return ""

    def open_device(self) -> Device:
        return Device(HostRuntime().functions(), host_addressable=True)


def test_a_wrong_shortcut_for_equal_inputs_fails() -> None:
    case = aliased_case("diopiMul", "aliased-other-is-input")
    values = case.arguments["input"].values
    (expected,) = expected_arrays(case.expected["out"])
    assert (values == case.arguments["other"].values).all()
    assert (expected.values == values.astype(float) ** 2).all()
    outcome = run(SquareShortcut(), case)
    assert [finding.check for finding in outcome.check_results if not finding.passed] == ["values"]


def test_overlapping_inputs_are_in_one_storage() -> None:
    vendor, case = SquareShortcut(), aliased_case("diopiMul", "aliased-other-overlaps-input")
    assert run(vendor, case).verdict is Verdict.passed
    assert len(vendor.storages) == 1
    overlap = case.overlap
    assert overlap is not None
    first, second = (case.arguments[name].values.ravel() for name in (overlap.first, overlap.second))
    shared = first[overlap.shift :]
    assert 0 < shared.size < first.size
    assert (shared == second[: shared.size]).all()


@pytest.mark.parametrize(
    ("function", "label"),
    [
        ("diopiMulInp", "aliased-input-is-other"),
        ("diopiMul", "aliased-out-is-input-and-other"),
        ("diopiMm", "aliased-mat2-overlaps-input"),
        ("diopiStack", "aliased-tensors-repeats-a-tensor"),
        ("diopiSoftmaxBackward", "aliased-output-is-grad_output"),
    ],
)
def test_the_built_in_vendor_supports_shared_inputs(function: str, label: str) -> None:
    assert run(find_vendor("jax_cpu"), aliased_case(function, label)).verdict is Verdict.passed


def test_values_come_from_the_input_whose_values_are_valid_for_both() -> None:
    """A gradient may have any value; an output of softmax may not. Standard deviations must not be negative."""
    (pair,) = find_input_pairs(lookup("diopiSoftmaxBackward"))
    assert pair.sources == ("output",)
    case = aliased_case("diopiBCELoss", "aliased-target-is-input")
    assert ((case.arguments["input"].values >= 0) & (case.arguments["input"].values <= 1)).all()


def test_positions_are_shared_only_by_pointwise_functions() -> None:
    (pair,) = find_input_pairs(lookup("diopiGather"))
    assert (pair.accepts(Dtype.float32), pair.accepts(Dtype.int64)) == (True, False)
    assert find_input_pairs(lookup("diopiBitwiseAnd"))[0].accepts(Dtype.bool)


def test_equal_values_on_a_boundary_are_not_tried() -> None:
    assert not find_input_pairs(lookup("diopiPointsInPolygonsMmcv"))


def test_truth_values_of_equal_inputs_are_specified() -> None:
    for label in ("aliased-other-is-input", "aliased-input-is-other"):
        function = "diopiEq" if label == "aliased-other-is-input" else "diopiEqInp"
        case = aliased_case(function, label)
        (expected,) = (entry for value in case.expected.values() for entry in expected_arrays(value))
        assert expected.specified is None
        assert expected.values.all()


def test_arguments_without_a_result_are_reported() -> None:
    (case, *_) = (case for case in basic_cases("diopiMm") if case.arguments["input"].values.size > 1)
    shorter = replace(case.arguments["mat2"], values=case.arguments["mat2"].values[:-1])
    with pytest.raises(DerivationError, match=f"rejects the arguments of {re.escape(case.id)}"):
        evaluate_with_arguments(case, {"mat2": shorter})


def transposed_case(function: str, label: str) -> BaselineCase:
    """Return a case in which one input of a function transposes another one, derived from its case `float32-square`."""
    (square,) = (case for case in select_cases(function, "full") if case.label == "float32-square")
    return make_aliased_case(compute_baseline_case(lookup(function), square), label, lookup(function))


class SameAddress(BaseVendor):
    """Multiplies matrices correctly, unless both have one address: it assumes that they are the same tensor."""

    def __init__(self) -> None:
        super().__init__("same_address", "1")

    def has(self, name: str) -> bool:
        return name == "diopiMm"

    def call(self, name: str, context: Context, *arguments: Any) -> Error:
        out, first, second = arguments
        context.stream.synchronize()
        out.view()[...] = first.view() @ (first if first.data_ptr == second.data_ptr else second).view()
        return Error.Success

    def last_error(self) -> str:
        return ""

    def open_device(self) -> Device:
        return Device(HostRuntime().functions(), host_addressable=True)


def test_a_matrix_and_its_transposed_view_have_one_address() -> None:
    case = transposed_case("diopiMm", "aliased-mat2-transposes-input")
    assert (case.arguments["mat2"].values == case.arguments["input"].values.T).all()
    assert run(find_vendor("jax_cpu"), case).verdict is Verdict.passed
    outcome = run(SameAddress(), case)
    assert [finding.check for finding in outcome.check_results if not finding.passed] == ["values"]


def test_products_of_other_factors_than_the_first_two_inputs_have_transposed_factors() -> None:
    assert "aliased-mat2-transposes-mat1" in aliased_targets(lookup("diopiAddmm"))


def test_rows_without_two_axes_are_not_transposed() -> None:
    for function in ("diopiMul", "diopiGather"):
        vectors = [case for case in basic_cases(function) if len(case.arguments["input"].values.shape) < 2]
        labels = {label for label, _ in aliased_labels(lookup(function), vectors)}
        assert not any("transposes" in label for label in labels)


VAR_LEN = "diopiFlashAttentionVarLen"
SHARED_STARTS = "aliased-cum_seq_kv-is-cum_seq_q"


@pytest.mark.parametrize("function", [VAR_LEN, f"{VAR_LEN}Backward"])
def test_queries_and_keys_of_equal_lengths_have_one_tensor_of_starts(function: str) -> None:
    case = aliased_case(function, SHARED_STARTS)
    assert case.aliases == {"cum_seq_kv": "cum_seq_q"}
    vendor = find_vendor("jax_cpu")
    with vendor.open_device() as device, Call(vendor, device, case) as call:
        assert describe_arguments(call.run())["cum_seq_kv"] == "the tensor of cum_seq_q"
    assert run(vendor, case).verdict is Verdict.passed


def test_queries_and_keys_of_different_lengths_have_no_common_starts() -> None:
    (causal,) = (case for case in basic_cases(VAR_LEN) if case.label == "float32-causal")
    starts = causal.arguments["cum_seq_kv"]
    moved = replace(starts, values=starts.values + np.array([0, 1, 0, 0], starts.values.dtype))
    with pytest.raises(KeyError, match="can't be derived"):
        make_aliased_case(
            replace(causal, arguments={**causal.arguments, "cum_seq_kv": moved}), SHARED_STARTS, lookup(VAR_LEN)
        )
    (unequal,) = (case for case in basic_cases(VAR_LEN) if case.label == "float32")
    assert SHARED_STARTS not in {label for label, _ in aliased_labels(lookup(VAR_LEN), [unequal])}
