"""The class of a case follows from what it is."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from diopi_proto import parameters as kinds
from diopi_proto.interface import lookup, prototypes
from diopi_proto.types import Dtype
from diopi_test.cases.classes import classify_cases
from diopi_test.cases.domains import any_value, half_nan, special, special_except, uniform
from diopi_test.cases.layouts import channels_last, expanded, strided, transposed
from diopi_test.cases.model import Case, CaseClass, ResultOverride, TensorSpec
from diopi_test.cases.open_calls import OPEN_CALLS, reason_open
from diopi_test.cases.selection import select_cases

F16, F32 = Dtype.float16, Dtype.float32


def one(label: str, dtype: Dtype = F32, shape: tuple[int, ...] = (3, 4), **about: Any) -> Case:
    """A case of `diopiSqrt`."""
    return Case(label, dtype, {"input": TensorSpec(shape, dtype, **about)})


def class_of(case: Case, first: Case | None = None) -> CaseClass:
    """The class of a case of `diopiSqrt` that comes after the first one."""
    return classify_cases(lookup("diopiSqrt"), [first or one("first"), case])[1].case_class


def by_label(function: str) -> dict[str, CaseClass]:
    return {case.label: case.case_class for case in select_cases(function, "full")}


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (one("other", shape=(7,)), CaseClass.basic),
        (one("half", F16), CaseClass.types),
        (replace(one("into"), results={"out": ResultOverride(Dtype.float64)}), CaseClass.types),
        *((one("laid", layout=layout), CaseClass.layout) for layout in (transposed, strided, expanded)),
        (replace(one("laid"), results={"out": ResultOverride(layout=strided)}), CaseClass.layout),
        (one("flat", layout=channels_last), CaseClass.basic),
        (one("line", shape=(4,), layout=transposed), CaseClass.basic),
        (one("none", shape=(0, 3)), CaseClass.empty),
        *(
            (one("ends", domain=domain), CaseClass.special)
            for domain in (special, special_except(0.0), any_value, half_nan)
        ),
        (one("few", shape=(3,), domain=any_value), CaseClass.special),
        (one("tiny", domain=uniform(0, 1e-40)), CaseClass.special),
        (one("by-chance", F16, shape=(5000,), domain=uniform(0, 1)), CaseClass.types),
        (one("whole", Dtype.int32, domain=special), CaseClass.types),
        (replace(one("habit", shape=(0,)), case_class=CaseClass.callers), CaseClass.callers),
    ],
    ids=lambda value: value.label if isinstance(value, Case) else None,
)
def test_what_a_case_demands_is_its_class(case: Case, expected: CaseClass) -> None:
    assert class_of(case) is expected


def test_of_several_demands_one_counts() -> None:
    assert class_of(one("a", F16, layout=strided)) is CaseClass.layout
    assert class_of(one("a", F16, (0, 4), layout=strided, domain=special)) is CaseClass.empty
    assert class_of(one("a", F16, layout=strided, domain=special)) is CaseClass.special


def test_what_the_first_case_demands_is_nothing_special() -> None:
    moved = one("first", domain=any_value)
    assert class_of(one("more", domain=special), moved) is CaseClass.basic
    assert class_of(one("half", F16, domain=special), moved) is CaseClass.types
    assert class_of(one("plain"), one("half", F16)) is CaseClass.basic, "the leading type comes first"


def test_what_is_left_out() -> None:
    gradient = by_label("diopiConvolution2dBackward")
    assert gradient["float32-all-attributes-no-grad_bias"] is CaseClass.optional
    assert gradient["float32-plain"] is CaseClass.basic
    assert by_label("diopiBCELoss")["float32-none"] is CaseClass.basic, "most callers give no weights"
    assert by_label("diopiPad")["int64-reflect"] is CaseClass.types, "the value is for another mode"


def test_numbers_are_data_but_orders_are_not() -> None:
    assert by_label("diopiMulScalar")["float32-by-nan-row"] is CaseClass.special
    assert by_label("diopiNorm")["float32-infinity"] is CaseClass.basic


@pytest.mark.parametrize("function", [name for name in prototypes() if select_cases(name, "full")][::3])
def test_every_function_has_basic_cases(function: str) -> None:
    """And a demanded one in each of the element types that PyTorch serves."""
    cases = select_cases(function, "full")
    assert Counter(case.case_class for case in cases)[CaseClass.basic]
    assert CaseClass.negative not in {case.case_class for case in cases}
    assert any(case.case_class is CaseClass.basic for case in select_cases(function, "smoke"))


@pytest.mark.parametrize("function", ["diopiAdd", "diopiScatter", "diopiSoftmax"])
def test_a_case_is_of_one_class_at_every_level(function: str) -> None:
    full = by_label(function)
    assert all(full[case.label] is case.case_class for case in select_cases(function, "smoke"))


TRUTHS_WITHOUT_BETA = {f"float32-target-truths-beta0-{reduction}" for reduction in ("none", "mean")}

OPEN = {
    "diopiSub": {"bool-with-int32", "float16-with-one-float32"},
    "diopiSubInp": {"int64-with-bool", "bool-with-int32"},
    "diopiSmoothL1Loss": TRUTHS_WITHOUT_BETA,
    "diopiSmoothL1LossBackward": {
        *TRUTHS_WITHOUT_BETA,
        *(f"{dtype}-ties-beta0" for dtype in ("float16", "bfloat16", "float32", "float64")),
    },
    "diopiSigmoidFocalLoss": {f"float32-soft-targets-{name}" for name in ("none", "mean", "sum")},
    "diopiPad": {f"{dtype}-constant-no-value" for dtype in ("int8", "float16", "float32", "int64", "complex128")}
    | {"bool-reflect", "bool-replicate"},
    "diopiGroupNormBackward": {f"float32-{label}" for label in ("empty", "expanded", "strided", "transposed")},
    "diopiAddInpScalar": {"bool-matrix", "bool-long", "bool-alpha-0-row"},
    "diopiAddScalar": {
        "int32-float-number-row",
        "int32-float-number-alpha-int-row",
        "int32-float-number-cancels-row",
        "int32-number-as-float",
    },
    "diopiEmbeddingBackward": {"float32-sparse"},
    "diopiEqInpScalar": set[str](),
    "diopiMaskedFillInpScalar": set[str](),
}
"""What PyTorch does not serve; comparisons and fills in place convert, and bool holds sums of bools."""


@pytest.mark.parametrize("function", OPEN)
def test_what_pytorch_refuses_or_leaves_open_is_not_demanded(function: str) -> None:
    cases = select_cases(function, "full")
    assert {case.label for case in cases if case.case_class is CaseClass.open} == OPEN[function]
    assert all(bool(reason_open(lookup(function), case)) is not case.case_class.is_demanded for case in cases)


def test_negative_zeros_are_special_where_the_first_case_has_none() -> None:
    clamped = by_label("diopiClampMaxScalar")
    assert clamped["float32-at-zero-row"] is CaseClass.special
    assert clamped["float32-at-minus-zero-row"] is CaseClass.special
    assert by_label("diopiHardtanh")["float32-zeros-at-bound-matrix"] is CaseClass.special
    assert by_label("diopiFill")["float32-negative-zero"] is CaseClass.special
    assert by_label("diopiLogicalNot")["float32-special"] is CaseClass.special, "NaN is another demand than −0"
    assert by_label("diopiLogicalAnd")["float32-long"] is CaseClass.basic


def test_a_list_without_tensors_is_empty() -> None:
    assert by_label("diopiClipGradNorm")["float32-no-gradients"] is CaseClass.empty
    assert by_label("diopiAmpForeachNonFiniteCheckAndUnscaleInp")["float32-no-gradients"] is CaseClass.empty


def test_an_axis_counted_from_the_end_is_open_where_pytorch_has_no_axis() -> None:
    labels = {case.label: case for case in select_cases("diopiLayerNormGB", "full")}
    for case in labels.values():
        assert (case.case_class is CaseClass.open) == (case.arguments["begin_norm_axis"] < 0)


RARE = ("no-gradients", "minus-zero", "zeros-at-bound")
"""What labels of cases say that demand something of every vendor."""


def test_no_basic_case_is_named_after_a_demand() -> None:
    cases = [(name, case) for name in prototypes() for case in select_cases(name, "full")]
    basic = [f"{name}[{case.label}]" for name, case in cases if case.case_class is CaseClass.basic]
    assert [name for name in basic if any(word in name.replace("]", "-") for word in RARE)] == []


def test_every_reason_has_its_cases() -> None:
    named = {name for calls in OPEN_CALLS for name in calls.functions} | {
        "diopiAddInpScalar",
        "diopiOneHot",
        "diopiMul",
    }
    cases = [(lookup(name), case) for name in named | {"diopiSubScalar"} for case in select_cases(name, "full")]
    for calls in OPEN_CALLS:
        assert any(reason_open(prototype, case) == calls.reason for prototype, case in cases), calls.reason


def test_text_is_never_missing() -> None:
    texts = [p for prototype in prototypes().values() for p in prototype.parameters if p.annotation is kinds.Text]
    assert len(texts) > 20
    assert not [p.name for p in texts if p.optional]
