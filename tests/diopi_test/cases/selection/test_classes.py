"""The class of a case follows from its dtypes, shapes, layouts and values."""

from dataclasses import replace
from typing import Any

import pytest
from sampling import OPERATORS, sampled

from diopi_proto import parameters as kinds
from diopi_proto.interface import lookup, prototypes
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, CaseClass, ResultOverride, TensorSpec
from diopi_test.cases.domains import any_value, half_nan, special, special_except, uniform
from diopi_test.cases.facts import CallsUndefinedInPyTorch, CaseFacts
from diopi_test.cases.layouts import channels_last, expanded, strided, transposed
from diopi_test.cases.selection import select_cases
from diopi_test.cases.selection.classes import classify_cases
from diopi_test.cases.selection.open_calls import GENERAL_OPEN_CALLS, reason_open

F16, F32 = Dtype.float16, Dtype.float32


def sqrt_case(label: str, dtype: Dtype = F32, shape: tuple[int, ...] = (3, 4), **attributes: Any) -> Case:
    """Return a case of `diopiSqrt`."""
    return Case(label, dtype, {"input": TensorSpec(shape, dtype, **attributes)})


def class_of(case: Case, first: Case | None = None) -> CaseClass:
    """Return the class of a case of `diopiSqrt` that follows the first case."""
    return classify_cases(lookup("diopiSqrt"), [first or sqrt_case("first"), case])[1].case_class


def classes_by_label(function: str) -> dict[str, CaseClass]:
    """Return the class of each case of a function at level full, by label."""
    return {case.label: case.case_class for case in select_cases(function, "full")}


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (sqrt_case("other", shape=(7,)), CaseClass.basic),
        (sqrt_case("half", F16), CaseClass.types),
        (replace(sqrt_case("into"), results={"out": ResultOverride(Dtype.float64)}), CaseClass.types),
        *((sqrt_case("laid", layout=layout), CaseClass.layout) for layout in (transposed, strided, expanded)),
        (replace(sqrt_case("laid"), results={"out": ResultOverride(layout=strided)}), CaseClass.layout),
        (sqrt_case("flat", layout=channels_last), CaseClass.basic),
        (sqrt_case("line", shape=(4,), layout=transposed), CaseClass.basic),
        (sqrt_case("none", shape=(0, 3)), CaseClass.empty),
        *(
            (sqrt_case("ends", domain=domain), CaseClass.special)
            for domain in (special, special_except(0.0), any_value, half_nan)
        ),
        (sqrt_case("few", shape=(3,), domain=any_value), CaseClass.special),
        (sqrt_case("tiny", domain=uniform(0, 1e-40)), CaseClass.special),
        (sqrt_case("by-chance", F16, shape=(5000,), domain=uniform(0, 1)), CaseClass.types),
        (sqrt_case("whole", Dtype.int32, domain=special), CaseClass.types),
        (replace(sqrt_case("habit", shape=(0,)), case_class=CaseClass.callers), CaseClass.callers),
    ],
    ids=lambda value: value.label if isinstance(value, Case) else None,
)
def test_class_follows_from_dtype_layout_values_and_shape(case: Case, expected: CaseClass) -> None:
    assert class_of(case) is expected


def test_class_with_precedence_counts() -> None:
    assert class_of(sqrt_case("a", F16, layout=strided)) is CaseClass.layout
    assert class_of(sqrt_case("a", F16, (0, 4), layout=strided, domain=special)) is CaseClass.empty
    assert class_of(sqrt_case("a", F16, layout=strided, domain=special)) is CaseClass.special


def test_requirements_of_the_first_case_do_not_count() -> None:
    first = sqrt_case("first", domain=any_value)
    assert class_of(sqrt_case("more", domain=special), first) is CaseClass.basic
    assert class_of(sqrt_case("half", F16, domain=special), first) is CaseClass.types
    assert class_of(sqrt_case("plain"), sqrt_case("half", F16)) is CaseClass.basic, "the leading type comes first"


def test_omitted_arguments_make_a_case_optional_if_they_have_an_effect() -> None:
    gradient = classes_by_label("diopiConvolution2dBackward")
    assert gradient["float32-all-attributes-no-grad_bias"] is CaseClass.optional
    assert gradient["float32-plain"] is CaseClass.basic
    assert classes_by_label("diopiBCELoss")["float32-none"] is CaseClass.basic, "most callers give no weights"
    assert classes_by_label("diopiPad")["int64-reflect"] is CaseClass.types, "the value is for another mode"


def test_special_scalars_count_but_infinite_norm_orders_do_not() -> None:
    assert classes_by_label("diopiMulScalar")["float32-by-nan-row"] is CaseClass.special
    assert classes_by_label("diopiNorm")["float32-infinity"] is CaseClass.basic


@pytest.mark.parametrize("function", sampled(OPERATORS, 15, slow=25))
def test_every_function_has_basic_cases(function: str) -> None:
    """The smoke level has a basic case as well."""
    full, smoke = ({case.case_class for case in select_cases(function, level)} for level in ("full", "smoke"))
    assert CaseClass.basic in full & smoke
    assert CaseClass.negative not in full


@pytest.mark.parametrize("function", ["diopiAdd", "diopiScatter", "diopiSoftmax"])
def test_case_has_the_same_class_at_every_level(function: str) -> None:
    full = classes_by_label(function)
    assert all(full[case.label] is case.case_class for case in select_cases(function, "smoke"))


BOOL_TARGETS_AT_BETA_0 = {f"float32-target-truths-beta0-{reduction}" for reduction in ("none", "mean")}

OPEN = {
    "diopiSub": {"bool-with-int32", "float16-with-one-float32"},
    "diopiSubInp": {"int64-with-bool", "bool-with-int32"},
    "diopiSmoothL1Loss": BOOL_TARGETS_AT_BETA_0,
    "diopiSmoothL1LossBackward": {
        *BOOL_TARGETS_AT_BETA_0,
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
"""By function, the cases that PyTorch rejects or leaves open; comparisons and in-place fills convert."""


@pytest.mark.parametrize("function", OPEN)
def test_cases_that_pytorch_rejects_or_leaves_open_have_class_open(function: str) -> None:
    cases = select_cases(function, "full")
    assert {case.label for case in cases if case.case_class is CaseClass.open} == OPEN[function]
    assert all(bool(reason_open(lookup(function), case)) is not case.case_class.is_demanded for case in cases)


def test_negative_zeros_are_special_unless_the_first_case_has_them() -> None:
    clamped = classes_by_label("diopiClampMaxScalar")
    assert clamped["float32-at-zero-row"] is CaseClass.special
    assert clamped["float32-at-minus-zero-row"] is CaseClass.special
    assert classes_by_label("diopiHardtanh")["float32-zeros-at-bound-matrix"] is CaseClass.special
    assert classes_by_label("diopiFill")["float32-negative-zero"] is CaseClass.special
    assert classes_by_label("diopiLogicalNot")["float32-special"] is CaseClass.special, "NaN is another demand than −0"
    assert classes_by_label("diopiLogicalAnd")["float32-long"] is CaseClass.basic


def test_a_list_without_tensors_is_empty() -> None:
    assert classes_by_label("diopiClipGradNorm")["float32-no-gradients"] is CaseClass.empty
    assert classes_by_label("diopiAmpForeachNonFiniteCheckAndUnscaleInp")["float32-no-gradients"] is CaseClass.empty


def test_an_axis_counted_from_the_end_is_open_where_pytorch_has_no_axis() -> None:
    labels = {case.label: case for case in select_cases("diopiLayerNormGB", "full")}
    for case in labels.values():
        assert (case.case_class is CaseClass.open) == (case.arguments["begin_norm_axis"] < 0)


RARE = ("no-gradients", "minus-zero", "zeros-at-bound")
"""Parts of labels that name a requirement beyond the basic class."""


@pytest.mark.parametrize("function", sampled(OPERATORS, 15, slow=25))
def test_labels_of_basic_cases_name_no_special_requirement(function: str) -> None:
    basic = [case.label for case in select_cases(function, "full") if case.case_class is CaseClass.basic]
    assert [label for label in basic if any(word in f"{label}-" for word in RARE)] == []


OPEN_CALLS = {
    name: calls
    for name, p in prototypes().items()
    if p.base == name and (calls := CaseFacts.declared_for(p).open_calls)
}


@pytest.mark.parametrize("function", sampled(OPEN_CALLS, 4, slow=6))
def test_every_declared_open_call_applies_to_a_case(function: str) -> None:
    forms = [prototype for prototype in prototypes().values() if prototype.base == function]
    for calls in OPEN_CALLS[function]:
        assert any(
            calls.matches(prototype, case) for prototype in forms for case in select_cases(prototype.name, "full")
        ), calls.reason


@pytest.mark.parametrize("calls", GENERAL_OPEN_CALLS, ids=lambda calls: calls.reason)
def test_every_general_open_call_applies_to_a_case(calls: CallsUndefinedInPyTorch) -> None:
    examples = [lookup(name) for name in ("diopiAddInpScalar", "diopiOneHot", "diopiMul")]
    assert any(
        reason_open(prototype, case) == calls.reason
        for prototype in examples
        for case in select_cases(prototype.name, "full")
    )


def test_no_text_parameter_is_optional() -> None:
    texts = [p for prototype in prototypes().values() for p in prototype.parameters if p.annotation is kinds.Text]
    assert len(texts) > 20
    assert not [p.name for p in texts if p.optional]
