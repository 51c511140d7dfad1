"""Cases of `diopiLinear`, input · weightᵀ + bias, and of its gradients."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from diopi_proto.dtypes import floating
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases import half_sums
from diopi_test.cases.case import Case, CaseClass, ResultOverride, cases_for
from diopi_test.cases.elementwise import Operands
from diopi_test.cases.layouts import contiguous, strided, transposed
from diopi_test.cases.linalg.operands import (
    ACCUMULATED,
    BASIC,
    EXACT,
    HALF,
    TO_TRANSPOSED,
    expand_in_order,
    large_operand_template,
    longest_axis,
    operand_template,
)
from diopi_test.cases.products import exact_numbers, partly_infinite
from diopi_test.cases.template import CaseTemplate, expand

F32 = Dtype.float32
"""The leading element type."""

MATRIX = operand_template("matrix", (4, 7), (3, 7), (3,), **BASIC)
"""4 rows of 7 features, mapped to 3 outputs, in all element types and in the smoke level."""

LAYOUTS = operand_template("layouts", (2, 3, 5), (4, 5), (4,), **TO_TRANSPOSED)
"""A batch of 2 × 3 rows whose tensors and result are not contiguous."""

SQUARE = operand_template("square", (3, 3), (3, 3), (3,))
"""Three square tensors; a transposed weight has the same shape as the right one, so that only values reveal it."""

AFFINE_MAPS = (
    MATRIX,
    LAYOUTS,
    SQUARE,
    operand_template("vector", (5,), (3, 5), (3,)),
    operand_template("strided", (2, 1, 3, 4), (2, 4), (2,), layouts=(strided, transposed), result_layout=strided),
    operand_template("one-output", (3, 5), (1, 5), (1,)),
    operand_template("no-rows", (0, 5), (3, 5), (3,)),
    operand_template("no-features", (4, 0), (3, 0), (3,)),
    operand_template("long", (2, 1031), (3, 1031), (3,)),
    operand_template("tails-exact", (3, 19, 17), (35, 17), (35,), domain=exact_numbers, **EXACT),
)
"""Templates for both the map and its gradients; the operands are input, weight and bias."""

BROADCAST_BIASES = tuple(
    operand_template(label, (3, 5), (4, 5), bias, case_class=CaseClass.callers)
    for label, bias in (
        ("bias-of-one", (1,)),
        ("bias-scalar", ()),
        ("bias-a-row", (3, 1)),
        ("bias-an-element", (3, 4)),
    )
)
"""Templates of a bias that is broadcast to a result of shape (3, 4); the class is `callers`."""

WITHOUT_BIAS: Mapping[str, Any] = {"bias": None}
"""The argument of calls that omit the bias."""

TOKENS = large_operand_template("tokens", (3, 5, 131, 67), (41, 67), (41,))
"""A large input of rank 4, like the tokens of a batch."""

HALF_SHAPES = (257, 517), (263, 517), (263,)
"""The shapes of input, weight and bias of large templates in float16."""

LINEAR = (
    *AFFINE_MAPS,
    MATRIX.replace("matrix-no-bias", WITHOUT_BIAS, smoke=False),
    MATRIX.replace("matrix-special", domains={"input": partly_infinite}, dtypes=floating, smoke=False),
    SQUARE.replace("square-no-bias", WITHOUT_BIAS),
    *BROADCAST_BIASES,
    operand_template("long-row", (1, 1031), (3, 1031), (3,), dtypes=(F32,)),
    operand_template("long-column", (3, 1031), (1, 1031), (1,), dtypes=(F32,)),
    operand_template("long-no-bias-accumulated", (2, 1031), (3, 1031), (3,), **ACCUMULATED, arguments=WITHOUT_BIAS),
    large_operand_template("square", (257, 2053), (509, 2053), (509,)),
    TOKENS,
    large_operand_template("half-transposed", *HALF_SHAPES, layouts=(transposed, contiguous), **HALF),
)
"""The templates of the map."""


@cases_for("diopiLinear")
def linear_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of the linear layer; the operands of a template are input, weight and bias."""
    return half_sums.reveal_half_sums(
        expand_in_order(prototype, LINEAR), longest_axis, addends=("bias",), unchanged=("float16-one-output",)
    )


def _with_shape_of_bias(templates: Iterable[CaseTemplate[Operands]]) -> Iterator[CaseTemplate[Operands]]:
    """Yield the templates with a bias gradient that has the shape of the bias."""
    for template in templates:
        yield template.replace(results={"grad_bias": ResultOverride(shape=template.sizes[2].shape)})


GRADIENTS = (
    *AFFINE_MAPS,
    MATRIX.replace("matrix-special", domains={"grad_output": partly_infinite}, dtypes=floating, smoke=False),
    *(
        LAYOUTS.replace(f"layouts-no-{name}", results={name: None})
        for name in ("grad_input", "grad_weight", "grad_bias")
    ),
    operand_template("many-rows-accumulated", (1031, 2), (3, 2), (3,), **ACCUMULATED),
    operand_template("many-outputs-accumulated", (2, 3), (1031, 3), (1031,), **ACCUMULATED),
    *_with_shape_of_bias(BROADCAST_BIASES),
    MATRIX.replace(
        "matrix-grad_weight-only", results={"grad_input": None, "grad_bias": None}, dtypes=(F32,), smoke=False
    ),
    *_with_shape_of_bias(
        (
            large_operand_template("square", (257, 1031), (509, 1031), (509,)),
            TOKENS,
            large_operand_template(
                "half-transposed", *HALF_SHAPES, layouts=(contiguous, transposed, contiguous), **HALF
            ),
        )
    ),
)
"""The templates of the gradients of input, weight and bias."""


@cases_for("diopiLinearBackward")
def linear_backward_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of the gradients of the linear layer.

    grad_output, input and weight take the first, second and third operand of a template (layout, domain), with the
    shapes of the linear layer.
    """

    def gradient(template: CaseTemplate[Operands], dtype: Dtype) -> Mapping[str, Any]:
        rows, weight, _ = (operand.shape for operand in template.sizes)
        shapes = {"grad_output": (*rows[:-1], weight[0]), "input": rows, "weight": weight}
        return {
            n: replace(operand, shape=shape) for operand, (n, shape) in zip(template.sizes, shapes.items(), strict=True)
        }

    cases = expand(prototype, map(_with_bias_gradient_layout, GRADIENTS), gradient)
    return half_sums.reveal_half_sums(cases, longest_axis)


def _with_bias_gradient_layout(template: CaseTemplate[Operands]) -> CaseTemplate[Operands]:
    """Return the template with a bias gradient that is strided if the other results are, else contiguous."""
    layout = strided if template.result_layout is strided else contiguous
    return template.replace(results={"grad_bias": ResultOverride(layout=layout), **template.results})
