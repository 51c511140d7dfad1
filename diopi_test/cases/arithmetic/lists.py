"""Cases of functions that add one number to all tensors in a list, or multiply all tensors by it.

A template describes cases that differ only in their element type. The `sizes` of the templates in this module are the
shape of the number, if the function takes the number as a tensor.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle
from math import inf, nan
from typing import Any

from diopi_proto.dtypes import category, promote_with_numbers
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.arithmetic.values import argument_by_category, domain_by_kind
from diopi_test.cases.case import Case, TensorSpec, cases_for
from diopi_test.cases.domains import choice, full_range, integer_values, normal
from diopi_test.cases.facts import CallsUndefinedInPyTorch, CaseFacts, NumberChoice
from diopi_test.cases.layouts import Layout, contiguous, strided, strides, transposed
from diopi_test.cases.template import ByDtype, CaseTemplate, DtypeSelection, expand, tensor

Shape = tuple[int, ...]
"""The sizes of a tensor."""

F16, BF16, F32 = Dtype.float16, Dtype.bfloat16, Dtype.float32
"""The element types of some templates."""

Shapes = Sequence[tuple[int, ...]]
"""The shapes of the tensors of a list."""

NUMBERS = domain_by_kind(normal(3), full_range)
"""The domain of the tensors: normally distributed floating-point numbers, or integers from the type's whole range."""

THREE_SHAPES: Shapes = ((3, 4), (5,), ())
"""The shapes of a list of three tensors."""

MANY_SHAPES: Shapes = [(n % 4 + 1, 2) for n in range(21)]
"""The shapes of a list of 21 tensors."""

LONG_SHAPES: Shapes = ((1031,), (2, 3))
"""The shapes of a list with a long tensor."""


def list_template(
    label: str,
    operand: Any,
    shapes: Shapes = THREE_SHAPES,
    tensor_dtypes: Sequence[Dtype | None] = (None,),
    layout: Layout = contiguous,
    **fields: Any,
) -> CaseTemplate[Shape]:
    """Return a template of a list of tensors and a number.

    Args:
        label: The label of the cases without the element type.
        operand: The number, or a `ByDtype` that returns the number for the type under test.
        shapes: The shapes of the tensors.
        tensor_dtypes: The element types of the tensors, in rotation; None stands for the type under test.
        layout: The layout of all tensors and results.
        **fields: Further fields of the template. If `exact` is true, all elements are small integers.

    Returns:
        The template.
    """
    domain = integer_values(-9, 9) if fields.get("exact") else NUMBERS
    inputs = [
        tensor(*shape, dtype=dtype, domain=domain, layout=layout)
        for shape, dtype in zip(shapes, cycle(tensor_dtypes), strict=False)
    ]
    return CaseTemplate(label, arguments={"inputs": inputs, "other": operand}, result_layout=layout, **fields)


LIST_TEMPLATES = (
    list_template("one", -0.3, [(2, 3)]),
    list_template("none", -0.3, []),
    list_template("with-empty", -0.3, [(2,), (0, 3), (4,)]),
    list_template("many", -0.3, MANY_SHAPES),
    list_template("very-many", 3.5, [(n % 3 + 1,) for n in range(150)]),
    list_template("long", -0.3, LONG_SHAPES, dtypes=[F32, F16]),
    list_template("transposed", 2.5, layout=transposed),
    list_template("strided", 2.5, layout=strided),
    *(
        list_template(f"by-{label}", value, dtypes=[F32, BF16])
        for label, value in {"int": 3, "0": 0, "inf": inf, "nan": nan, "third": 1 / 3}.items()
    ),
    list_template("wide", 2**53 + 1, dtypes=[Dtype.int64]),
    list_template("one-element", 1.5, sizes=(1,), dtypes=[F16]),
    list_template("several-dtypes", 3, MANY_SHAPES, [F32, Dtype.int32, F16, Dtype.complex64], exact=True),
    list_template("float-number", 2.0, tensor_dtypes=[Dtype.int32, Dtype.uint8], dtypes=[Dtype.int32], exact=True),
)
"""The templates that all functions on lists of tensors share."""

LARGE_TENSORS = [
    tensor(509, domain=NUMBERS),
    tensor(131, 511, domain=NUMBERS, layout=strides(1031, 2)),
    tensor(65_537, domain=NUMBERS),
]
"""A list of large tensors, the second of which has gaps between its elements."""

ABSORBING_NUMBER_REASONS = {"by-(0|inf|nan)": "0, infinity and NaN determine the result for every element"}
"""The reason why an implementation with a coarse error passes cases with these numbers, by a pattern of labels."""


@cases_for(
    "diopiForeachaddScalar",
    "diopiForeachmulScalar",
    "diopiForeachmulTensor",
    non_discriminating=ABSORBING_NUMBER_REASONS,
)
def foreach_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of functions that combine all tensors of a list with one number."""
    number = argument_by_category("mul" in prototype.name, 3, 1.7)
    templates: Sequence[CaseTemplate[Shape]] = [
        list_template("three", number, dtypes=DtypeSelection.all, smoke=True),
        *LIST_TEMPLATES,
        list_template("models", number, [(263, 257), (4097,), (1, 3, 1, 5)], large=True),
        list_template("far-apart", number, dtypes=[F16], large=True).replace(arguments={"inputs": LARGE_TENSORS}),
    ]
    takes_tensor = prototype.parameter("other").is_tensor
    return expand(prototype, map(_with_number_as_tensor, templates) if takes_tensor else templates)


def _with_number_as_tensor(template: CaseTemplate[Shape]) -> CaseTemplate[Shape]:
    """Return the template with its number as a tensor, which has the shape `template.sizes`.

    The tensor has the type under test, or float32 if this type is bool or an integer type and the number is a float.
    """
    value = template.argument("other")

    def number_as_tensor(dtype: Dtype) -> TensorSpec:
        number = value.resolve(dtype) if isinstance(value, ByDtype) else value
        is_promoted = isinstance(number, float) and category(dtype) < 2
        return TensorSpec(template.sizes, F32 if is_promoted else dtype, choice([number]))

    return template.replace(arguments={"other": ByDtype(number_as_tensor)})


def _has_factor_with_axes(prototype: Prototype, case: Case) -> bool:
    """Return whether the factor `other` is a tensor with at least one axis."""
    return bool(case.arguments["other"].shape)


def _promotes_list(prototype: Prototype, case: Case) -> bool:
    """Return whether type promotion with the number changes the category of a tensor in the list.

    The categories in ascending order are bool, integer, floating-point and complex.
    """
    operand = case.arguments["other"]
    number_category = (
        category(operand.dtype)
        if isinstance(operand, TensorSpec)
        else category(promote_with_numbers(Dtype.bool, [operand]))
    )
    return any(category(tensor.dtype) < number_category for tensor in case.arguments["inputs"])


def _is_empty_list(prototype: Prototype, case: Case) -> bool:
    """Return whether the list of tensors is empty."""
    return not case.arguments["inputs"]


CaseFacts(
    open_calls=[
        CallsUndefinedInPyTorch(
            _has_factor_with_axes,
            "torch._foreach_mul takes a tensor without axes for the factor",
        )
    ]
).declare("diopiForeachmulTensor")
CaseFacts(
    open_calls=[
        CallsUndefinedInPyTorch(
            _promotes_list,
            "torch._foreach_add and _foreach_mul return the common type, and reject a higher type in place",
        ),
        CallsUndefinedInPyTorch(_is_empty_list, "torch._foreach_add and _foreach_mul reject lists without tensors"),
    ]
).declare("diopiForeachaddScalar", "diopiForeachmulScalar", "diopiForeachmulTensor")
CaseFacts(number_choices=[NumberChoice("other", "int", 0), NumberChoice("other", "float", 0.0)]).declare(
    "diopiForeachaddScalar"
)
