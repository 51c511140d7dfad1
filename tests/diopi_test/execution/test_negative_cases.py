"""Negative cases: how they are derived from valid cases, and how vendors can handle them incorrectly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import negative_test_vendors
import numpy as np
import pytest
from derivation import derived_labels, find_base
from sampling import draw_sample

from diopi_impl import BaseVendor, find_vendor
from diopi_proto.interface import lookup, prototypes
from diopi_proto.types import Dtype, Error, Reduction
from diopi_test.cases.selection import select_cases
from diopi_test.execution.negative_cases import MUTATIONS, make_negative_case, negative_labels
from diopi_test.execution.verdict import Outcome, Verdict
from diopi_test.oracle.evaluation import compute_baseline_case
from diopi_test.oracle.records import BaselineCase, BaselineTensor, Expected
from diopi_test.run.run_negative_case import run_negative_case
from lib_rt import Tensor

SAMPLE = [
    *("diopiPad", "diopiBatchNormBackward", "diopiCrossEntropyLoss", "diopiBCELossBackward", "diopiCTCLossBackward"),
    *("diopiAdd", "diopiAddInp", "diopiPolar", "diopiSoftmax", "diopiSoftmaxBackward", "diopiEqual", "diopiSum"),
    *("diopiConvolution2d", "diopiMaxPool2dWithIndices", "diopiAdaptiveAvgPool2d", "diopiUpsampleNearestBackward"),
    *("diopiCat", "diopiStack", "diopiSplitWithSizes", "diopiMeshGrid", "diopiExpand", "diopiTranspose", "diopiOneHot"),
    *("diopiIndex", "diopiIndexPut", "diopiNonzero", "diopiTopk", "diopiUnique", "diopiGroupNorm", "diopiMSELoss"),
    *("diopiForeachmulTensor", "diopiFusedAdamW", "diopiClipGradNorm", "diopiCholesky", "diopiNms", "diopiDropout"),
    *("diopiIm2Col", "diopiAmpUpdateScaleInp", "diopiNormal", "diopiCastDtype", "diopiLayerNormBackward"),
]
"""Functions of every kind."""


labels, base_of = partial(derived_labels, negative_labels), partial(find_base, negative_labels)


def names(function: str) -> set[str]:
    """Return the labels of the negative cases of a function without their prefix."""
    return {label.removeprefix("negative-") for label in labels(function)}


# What is made.


def test_softmax_has_the_expected_negative_cases() -> None:
    assert list(labels("diopiSoftmax")) == [
        "negative-out-null",
        "negative-input-null",
        "negative-input-dtype",
        "negative-dim-after-the-last",
        "negative-dim-before-the-first",
        "negative-out-shape",
        "negative-out-dtype",
    ]


@pytest.mark.parametrize(
    ("function", "has", "lacks"),
    [
        ("diopiAdd", {"other-shape", "other-null", "out-shape", "out-dtype"}, {"input-shape", "alpha-null"}),
        ("diopiAddInp", {"input-null", "other-shape", "input-dtype"}, {"input-shape"}),
        ("diopiEqual", {"other-null", "other-dtype"}, {"other-shape", "out-null", "out-shape"}),
        ("diopiMSELoss", {"target-null"}, {"target-shape"}),
        ("diopiSum", {"dim-after-the-last", "out-shape"}, set()),
        ("diopiTranspose", {"dim0-after-the-last", "dim1-after-the-last"}, set()),
        ("diopiConvolution2d", {"stride-negative", "padding-negative", "weight-null"}, {"bias-null"}),
        ("diopiAdaptiveAvgPool2d", {"output_size-negative"}, set()),
        ("diopiCat", {"num_inputs-negative", "tensors-none", "tensors-null", "dim-after-the-last"}, set()),
        ("diopiForeachmulTensor", {"inputSize-negative", "inputs-null", "outs-null"}, {"inputs-none"}),
        ("diopiSplitWithSizes", {"outs-too-few", "splitSizes-negative", "outs-shape", "outs-dtype"}, set()),
        ("diopiMeshGrid", {"outs-shape"}, {"outs-too-few"}),
        ("diopiExpand", {"out-dtype"}, {"out-shape"}),
        ("diopiCastDtype", {"input-null", "input-dtype"}, {"out-shape", "out-dtype"}),
        ("diopiIndex", {"nums-negative", "input-null"}, {"indices-null", "out-null", "out-shape"}),
        ("diopiUnique", {"dim-after-the-last"}, {"indices-null", "counts-null"}),
        ("diopiLayerNormBackward", {"input-null", "weight-dtype"}, {"bias-dtype"}),
        ("diopiTriangularSolveBackward", {"x-null", "mat-dtype"}, {"b-null", "b-dtype"}),
        ("diopiNLLLossV2Backward", {"totalWeight-null", "totalWeight-dtype"}, set()),
        ("diopiPool2dBackward", {"indices-dtype"}, {"indices-null"}),
        ("diopiNormal", {"out-null"}, {"out-shape", "out-dtype"}),
        ("diopiFusedAdamW", {"params-null", "state_steps-dtype"}, {"max_exp_avg_sqs-null"}),
        ("diopiConvolution3d", {"bias-one-element", "bias-longer", "stride-zero"}, {"weight-one-element"}),
        ("diopiLinear", set(), {"bias-one-element", "bias-longer"}),
        ("diopiMaxPool2dBackward", set(), {"stride-zero", "kernel_size-zero"}),
        ("diopiBatchNorm", {"running_mean-one-element", "weight-longer"}, {"input-longer"}),
        ("diopiBatchNormBackward", {"save_mean-one-element", "running_var-one-element"}, set()),
        ("diopiBatchNormBackwardElemt", {"sum_dy-one-element"}, {"count-longer"}),
        ("diopiLayerNormBackward", {"mean-longer", "grad_output-null"}, {"bias-one-element"}),
        ("diopiSmoothL1Loss", {"target-longer", "beta-negative"}, {"target-one-element"}),
        ("diopiBCELoss", {"target-one-element", "weight-longer"}, {"weight-one-element"}),
        ("diopiCrossEntropyLoss", {"weight-one-element", "label_smoothing-above-one", "target-longer"}, set()),
        ("diopiCTCLossBackward", {"blank-no-class", "blank-negative", "log_alpha-longer"}, {"targets-longer"}),
        ("diopiCTCLoss", {"input_lengths-beyond", "target_lengths-beyond", "input_lengths-below-zero"}, set()),
        ("diopiPad", {"pad-reflects-too-far", "pad-circles-too-far", "value-too-large", "mode-unknown"}, set()),
        ("diopiFill", {"value-too-large"}, set()),
        ("diopiUnfold", {"size-negative", "size-beyond-the-axis", "step-zero"}, set()),
        ("diopiBboxOverlapsMmcv", {"mode-unknown", "bboxes2-longer"}, {"offset-unknown"}),
        ("diopiScatterInpScalar", {"value-too-large", "reduce-unknown"}, set()),
        ("diopiArange", {"step-zero", "step-away"}, set()),
        ("diopiPow", {"exponent-negative"}, set()),
        ("diopiPowTensor", set(), {"exponent-negative"}),
        ("diopiNorm", {"input-without-elements"}, set()),
    ],
)
def test_a_mutation_applies_only_where_it_causes_an_error(function: str, has: set[str], lacks: set[str]) -> None:
    assert has <= names(function)
    assert not lacks & names(function)


def test_tensors_of_invalid_sizes_are_one_element_longer_or_have_one_element() -> None:
    for label, shape_of in (
        ("negative-running_mean-longer", lambda length: length + 1),
        ("negative-running_mean-one-element", lambda _: 1),
    ):
        base = base_of("diopiBatchNorm", label)
        (length,) = base.arguments["running_mean"].values.shape
        changed = make_negative_case(base, label)
        assert changed.case.arguments["running_mean"].values.shape == (shape_of(length),)
        assert f"shape ({shape_of(length)},) instead of ({length},)" in str(changed.flaw)


def test_unread_arguments_have_no_negative_cases() -> None:
    base = base_of("diopiNLLLossV2Backward", "negative-totalWeight-null")
    assert Reduction(base.arguments["reduction"]) is Reduction.mean
    summed = replace(base, arguments={**base.arguments, "reduction": Reduction.sum})
    with pytest.raises(KeyError, match="negative"):
        make_negative_case(summed, "negative-totalWeight-null")


def test_a_size_named_dim_is_not_an_axis() -> None:
    axis = next(mutation for mutation in MUTATIONS if mutation.name == "after-the-last")
    functions = {name for name, p in prototypes().items() for first in p.parameters if axis.concerns(p, first)}
    assert {"diopiSoftmax", "diopiAmax", "diopiFlip", "diopiInstanceNorm"} <= functions
    assert not {"diopiPagedAttention", "diopiRotaryEmbeddingV2", "diopiTransposeAxis01"} & functions


def test_cases_without_elements_are_skipped() -> None:
    empty = next(case for case in select_cases("diopiSqrt", "full") if 0 in case.arguments["input"].shape)
    assert not negative_labels(lookup("diopiSqrt"), [compute_baseline_case(lookup("diopiSqrt"), empty)])


def differences(case: BaselineCase, second: BaselineCase) -> list[str]:
    """Return the names of arguments and results that are different objects in the two cases."""
    arguments = {n for n in {*case.arguments, *second.arguments} if differ(case.arguments, second.arguments, n)}
    return sorted(arguments | {n for n in case.expected if differ(case.expected, second.expected, n)})


def differ(first: Any, second: Any, name: str) -> bool:
    """Return whether two calls have different values of an argument."""
    return name not in first or name not in second or first[name] is not second[name]


@pytest.mark.parametrize("function", SAMPLE)
def test_a_negative_case_has_one_flaw(function: str) -> None:
    assert labels(function)
    for label in labels(function):
        base = base_of(function, label)
        case = make_negative_case(base, label).case
        assert case.id == f"{function}[{label}]"
        assert len(differences(base, case)) == 1, label
        assert label.startswith(f"negative-{differences(base, case)[0].removesuffix('_')}-")


def changed(function: str, label: str) -> Any:
    """Return the values that replace those of the valid case."""
    base = base_of(function, label)
    case = make_negative_case(base, label).case
    (name,) = differences(base, case)
    return {**case.expected, **case.arguments}[name] if name in case.arguments else case.expected[name]


def test_the_flaw_has_the_expected_value() -> None:
    assert changed("diopiSoftmax", "negative-input-null") is None
    assert changed("diopiSoftmax", "negative-dim-after-the-last") == 2
    assert changed("diopiSoftmax", "negative-dim-before-the-first") == -3
    assert changed("diopiSum", "negative-dim-after-the-last")[0] == 2
    assert changed("diopiStack", "negative-dim-after-the-last") == 3
    assert changed("diopiConvolution2d", "negative-padding-negative")[0] == -1
    assert changed("diopiStack", "negative-numTensors-negative") == -1
    assert changed("diopiStack", "negative-tensors-none") == []
    assert changed("diopiBboxOverlapsMmcv", "negative-mode-unknown") == 2
    assert changed("diopiSplitWithSizes", "negative-outs-null")[0] is None
    changed_tensor = changed("diopiAdd", "negative-input-dtype")
    assert isinstance(changed_tensor, BaselineTensor)
    assert changed_tensor.dtype not in lookup("diopiAdd").dtypes
    first, second = (
        base_of("diopiAdd", "negative-other-shape").arguments["input"],
        changed("diopiAdd", "negative-other-shape"),
    )
    with pytest.raises(ValueError, match="broadcast"):
        np.broadcast_shapes(first.values.shape, second.values.shape)
    valid, invalid = (
        base_of("diopiSum", "negative-out-shape").expected["out"],
        changed("diopiSum", "negative-out-shape"),
    )
    assert isinstance(valid, Expected)
    assert invalid.values.size > valid.values.size
    assert changed("diopiMean", "negative-out-dtype").dtype is Dtype.int32
    assert "negative-out-dtype" not in labels("diopiSum"), "the caller may order a sum in any type"
    assert changed("diopiPolar", "negative-out-dtype").dtype is Dtype.float32


def test_too_much_padding_does_not_change_the_shape_of_the_result() -> None:
    for name in ("reflects", "circles"):
        label = f"negative-pad-{name}-too-far"
        valid, invalid = base_of("diopiPad", label).arguments["pad"], changed("diopiPad", label)
        assert invalid[0] >= base_of("diopiPad", label).arguments["input"].values.shape[-1]
        assert sum(invalid[:2]) == sum(valid[:2])
        assert invalid[2:] == valid[2:]


def test_the_result_of_an_empty_input_has_its_shape() -> None:
    norms = [compute_baseline_case(lookup("diopiNormalize"), case) for case in select_cases("diopiNormalize", "full")]
    (label,) = [label for label, _ in negative_labels(lookup("diopiNormalize"), norms) if "elements" in label]
    base = next(case for case in norms if case.label == dict(negative_labels(lookup("diopiNormalize"), norms))[label])
    case = make_negative_case(base, label).case
    output = case.expected["output"]
    assert isinstance(output, Expected)
    assert output.values.shape == case.arguments["input"].values.shape != base.arguments["input"].values.shape
    assert output.values.size == 0


def test_a_case_that_can_not_be_derived_is_rejected() -> None:
    scalar = next(case for case in select_cases("diopiAdd", "full") if case.arguments["input"].shape == ())
    with pytest.raises(KeyError, match="negative-other-shape"):
        make_negative_case(compute_baseline_case(lookup("diopiAdd"), scalar), "negative-other-shape")


# How vendors take it.


@pytest.fixture
def run_vendor_case() -> Iterator[Callable[..., Outcome]]:
    """Run one negative case on a vendor; assert that nothing stays allocated on its device."""
    devices = []

    def run(vendor: BaseVendor, function: str, label: str) -> Outcome:
        device = vendor.open_device()
        devices.append(device)
        outcome = run_negative_case(vendor, device, make_negative_case(base_of(function, label), label))
        assert device.live_blocks == 0
        return outcome

    yield run
    for device in devices:
        device.close()


def vendor_that(behavior: Any, name: str = "rejecting") -> BaseVendor:
    """Return a vendor with this behavior in every call."""
    return negative_test_vendors.RejectingVendor(name, behavior)


@pytest.mark.parametrize("function", draw_sample(SAMPLE, 4))
def test_jax_cpu_rejects_negative_cases(run_vendor_case: Callable[..., Outcome], function: str) -> None:
    """Only a few functions are tested, because a strict run on `jax_cpu` tests all of them."""
    for label in labels(function):
        outcome = run_vendor_case(find_vendor("diopi_impl.jax_cpu:vendor"), function, label)
        assert outcome.verdict is Verdict.passed, f"{function}[{label}]: {outcome.message}"
        assert [finding.check for finding in outcome.check_results] == ["refused", "untouched", "inputs", "guards"]


@pytest.mark.parametrize(
    ("behavior", "label", "verdict", "message"),
    [
        (negative_test_vendors.refuses, "negative-dim-after-the-last", Verdict.passed, ""),
        (negative_test_vendors.does_not_know_dtypes, "negative-input-dtype", Verdict.passed, ""),
        (negative_test_vendors.declines, "negative-input-dtype", Verdict.not_implemented, "NoImplement: not yet"),
        (
            negative_test_vendors.trusts,
            "negative-dim-after-the-last",
            Verdict.failed,
            "refused: Success was returned although dim is 2",
        ),
        (
            negative_test_vendors.trusts,
            "negative-input-null",
            Verdict.failed,
            "Success was returned although input is NULL",
        ),
        (
            negative_test_vendors.is_silent,
            "negative-input-dtype",
            Verdict.failed,
            "refused: ErrorOccurred was returned as input is of type complex64, but the last error is empty",
        ),
        (negative_test_vendors.writes_first, "negative-out-shape", Verdict.failed, "untouched: 4 bytes of out changed"),
        (
            negative_test_vendors.changes_inputs,
            "negative-out-shape",
            Verdict.failed,
            "bytes of input changed, the first at",
        ),
    ],
)
def test_negative_cases_have_the_expected_verdicts(
    run_vendor_case: Callable[..., Outcome], behavior: Any, label: str, verdict: Verdict, message: str
) -> None:
    outcome = run_vendor_case(vendor_that(behavior), "diopiSoftmax", label)
    assert outcome.verdict is verdict
    assert message in outcome.message


def test_a_rejected_call_must_not_change_updated_tensors(run_vendor_case: Callable[..., Outcome]) -> None:
    outcome = run_vendor_case(vendor_that(negative_test_vendors.writes_first), "diopiAddInp", "negative-other-shape")
    assert outcome.verdict is Verdict.failed
    assert "untouched: 4 bytes of input changed" in outcome.message


def test_a_rejected_call_must_not_change_any_entry_of_an_array(run_vendor_case: Callable[..., Outcome]) -> None:
    outcome = run_vendor_case(
        vendor_that(negative_test_vendors.writes_first), "diopiSplitWithSizes", "negative-dim-after-the-last"
    )
    assert "untouched: 4 bytes of outs.1 changed" in outcome.message


def test_a_rejected_call_must_not_return_tensors(run_vendor_case: Callable[..., Outcome]) -> None:
    outcome = run_vendor_case(
        vendor_that(negative_test_vendors.refuses, "generous"), "diopiNonzero", "negative-input-dtype"
    )
    assert outcome.verdict is Verdict.failed
    assert outcome.message == "untouched: out was handed back"


def test_a_write_beside_a_result_is_detected(run_vendor_case: Callable[..., Outcome]) -> None:
    def spills(arguments: Any, results: list[Tensor]) -> tuple[Error, str]:
        import ctypes

        ctypes.c_ubyte.from_address(results[0].storage_ptr + results[0].storage_nbytes).value ^= 1
        return Error.ErrorOccurred, "no"

    outcome = run_vendor_case(vendor_that(spills), "diopiSoftmax", "negative-dim-after-the-last")
    assert outcome.verdict is Verdict.failed
    assert outcome.message.startswith("guards: ")


def test_a_missing_function_is_not_implemented(run_vendor_case: Callable[..., Outcome]) -> None:
    vendor = vendor_that(negative_test_vendors.trusts)
    vendor.has = lambda name: False  # type: ignore[method-assign]  # a vendor of nothing
    outcome = run_vendor_case(vendor, "diopiSoftmax", "negative-input-null")
    assert (outcome.verdict, outcome.message) == (
        Verdict.not_implemented,
        "rejecting does not implement diopiSoftmax",
    )
