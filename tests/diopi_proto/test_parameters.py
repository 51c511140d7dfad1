"""Annotations of prototypes become parameters with the right C type and role; other annotations are rejected."""

from typing import Annotated, Any, Literal, Optional

import pytest

from diopi_proto import facts, parameters
from diopi_proto.parameters import KINDS, Context, Count, In, Ins, Out, Parameter, Role, parse
from diopi_proto.types import Device, MemoryFormat, Reduction, RoundMode

TENSOR, CONST_TENSOR = "diopiTensorHandle_t", "diopiConstTensorHandle_t"


@pytest.mark.parametrize(
    ("annotation", "c_type", "optional_c_type"),
    [
        ("In", CONST_TENSOR, CONST_TENSOR),
        ("const_In", f"const {CONST_TENSOR}", f"const {CONST_TENSOR}"),
        ("MutableIn", TENSOR, TENSOR),
        ("Workspace", TENSOR, TENSOR),
        ("Out", TENSOR, TENSOR),
        ("InOut", TENSOR, TENSOR),
        ("NewOut", f"{TENSOR}*", f"{TENSOR}*"),
        ("Ins", f"{CONST_TENSOR}*", f"{CONST_TENSOR}*"),
        ("Outs", f"{TENSOR}*", f"{TENSOR}*"),
        ("InOuts", f"{TENSOR}*", f"{TENSOR}*"),
        ("i64", "int64_t", "const int64_t*"),
        ("f64", "double", "const double*"),
        ("boolean", "bool", "const bool*"),
        ("Size", "diopiSize_t", "diopiSize_t*"),
        ("const_Size", "const diopiSize_t", "const diopiSize_t"),
        ("Scalar", "const diopiScalar_t*", "const diopiScalar_t*"),
        ("Generator", "diopiGeneratorHandle_t", "diopiGeneratorHandle_t"),
        ("Text", "const char*", "const char*"),
    ],
)
def test_every_annotation_has_its_c_type(annotation: str, c_type: str, optional_c_type: str) -> None:
    kind = getattr(parameters, annotation)
    assert parse("x", kind).c_type == c_type
    assert parse("x", kind | None).c_type == optional_c_type
    assert not parse("x", kind).optional
    assert parse("x", kind | None).optional


@pytest.mark.parametrize(
    ("annotation", "c_type"),
    [
        ("Context", "diopiContextHandle_t"),
        ("Count", "int64_t"),
        ("const_i64", "const int64_t"),
        ("i32", "int32_t"),
        ("c_int", "int"),
        ("const_f64", "const double"),
        ("f32", "float"),
        ("const_f32", "const float"),
        ("const_boolean", "const bool"),
        ("MutableScalar", "diopiScalar_t*"),
        ("Generators", "diopiGeneratorHandle_t*"),
        ("OutF64", "double*"),
        ("OutI64", "int64_t*"),
        ("OutBool", "bool*"),
        ("Pointer", "void*"),
    ],
)
def test_kinds_that_are_never_optional_have_their_c_types(annotation: str, c_type: str) -> None:
    assert parse("x", getattr(parameters, annotation)).c_type == c_type


@pytest.mark.parametrize(
    ("enum", "c_type"),
    [(MemoryFormat, "diopiMemoryFormat_t"), (Reduction, "diopiReduction_t"), (RoundMode, "diopiRoundMode_t")],
)
def test_enums_are_attributes(enum: Any, c_type: str) -> None:
    parameter = parse("mode", enum)
    assert (parameter.c_type, parameter.role) == (c_type, Role.attribute)


def test_a_c_type_can_be_declared_verbatim() -> None:
    parameter = parse("pointer", Annotated[object, "const void**"])
    assert (parameter.c_type, parameter.c_name) == ("const void**", "pointer")


def test_both_spellings_of_optional_are_accepted() -> None:
    assert parse("x", Optional[In]) == parse("x", In | None)  # noqa: UP045  # the spelling is the point


@pytest.mark.parametrize("annotation", [int, "In", In | Out, In | Out | None, list[In], None, type(None), object()])
def test_unknown_annotations_are_rejected(annotation: Any) -> None:
    with pytest.raises(TypeError, match=r"parameter weight: .*\bIn\b"):
        parse("weight", annotation)


@pytest.mark.parametrize(
    ("name", "c_name"),
    [("from_", "from"), ("in_", "in"), ("input", "input"), ("size_", "size_"), ("from_tensor", "from_tensor")],
)
def test_a_keyword_loses_its_underscore_in_c(name: str, c_name: str) -> None:
    assert Parameter(name=name, annotation=In).c_name == c_name


@pytest.mark.parametrize(
    ("annotation", "tensor", "array", "result", "argument"),
    [
        ("Context", False, False, False, False),
        ("Count", False, False, False, False),
        ("In", True, False, False, True),
        ("const_In", True, False, False, True),
        ("MutableIn", True, False, False, True),
        ("Workspace", True, False, False, True),
        ("Out", True, False, True, False),
        ("NewOut", True, False, True, False),
        ("InOut", True, False, True, True),
        ("Ins", False, True, False, True),
        ("OptionalIns", False, True, False, True),
        ("Outs", False, True, True, False),
        ("NewOuts", False, True, True, False),
        ("InOuts", False, True, True, True),
        ("i64", False, False, False, True),
        ("Scalar", False, False, False, True),
        ("Generator", False, False, False, True),
        ("OutI64", False, False, True, False),
    ],
)
def test_predicates_classify_parameters(
    annotation: str, tensor: bool, array: bool, result: bool, argument: bool
) -> None:
    parameter = Parameter(name="x", annotation=getattr(parameters, annotation))
    flags = (parameter.is_tensor, parameter.is_tensor_array, parameter.is_result, parameter.is_argument)
    assert flags == (tensor, array, result, argument)


@pytest.mark.parametrize(
    ("annotation", "is_callee_allocated", "device"),
    [
        ("In", False, Device.device),
        ("HostIn", False, Device.host),
        ("HostOut", False, Device.host),
        ("Outs", False, Device.device),
        ("NewOut", True, Device.device),
        ("NewOuts", True, Device.device),
    ],
)
def test_parameters_know_who_allocates_the_tensor_and_its_device(
    annotation: str, is_callee_allocated: bool, device: Device
) -> None:
    parameter = parse("x", getattr(parameters, annotation))
    assert (parameter.is_callee_allocated, parameter.device) == (is_callee_allocated, device)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_kind_has_a_docstring(kind: Any) -> None:
    assert kind.__doc__
    assert parse("x", kind).annotation is kind


@pytest.mark.parametrize(
    ("annotation", "kind", "optional", "found"),
    [
        (parameters.Axis, parameters.i64, False, (facts.NamesAxis(),)),
        (parameters.Axis | None, parameters.i64, True, (facts.NamesAxis(),)),
        (parameters.ConstAxis, parameters.const_i64, False, (facts.NamesAxis(),)),
        (parameters.PositiveExtents, parameters.Size, False, (facts.AtLeast(1),)),
        (parameters.Sized | None, parameters.In, True, (facts.SizesFollow(),)),
        (Literal["a", "b"], parameters.Text, False, (facts.OneOf(("a", "b")),)),
        (Literal["a", "b"] | None, parameters.Text, True, (facts.OneOf(("a", "b")),)),
        (Annotated[parameters.i64, facts.AtLeast(0), facts.AtMostOne()], parameters.i64, False, None),
    ],
)
def test_a_kind_with_facts_has_the_c_type_of_the_kind(annotation: Any, kind: Any, optional: bool, found: Any) -> None:
    parameter = parse("x", annotation)
    assert (parameter.annotation, parameter.optional) == (kind, optional)
    assert parameter.c_type == Parameter(name="x", annotation=kind, optional=optional).c_type
    assert parameter.facts == (found or (facts.AtLeast(0), facts.AtMostOne()))
    for fact in parameter.facts:
        assert parameter.fact(type(fact)) == fact
    assert parameter.fact(facts.LessThanSize) is None


def test_context_workspace_and_count_have_their_roles() -> None:
    roles = [Parameter(name="x", annotation=kind).role for kind in (Context, Count, In, Ins, Out)]
    assert roles == [Role.context, Role.count, Role.input, Role.input, Role.output]
