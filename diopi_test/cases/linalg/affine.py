"""Cases of `diopiLinear`, which computes input · weightᵀ + bias, and of its gradients.

The operands of the templates are input, weight and bias, also in the templates of the gradients.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from diopi_proto.dtypes import floating
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases import half_sums
from diopi_test.cases.case import Case, CaseClass, ResultOverride, cases_for
from diopi_test.cases.domains import normal
from diopi_test.cases.elementwise import Operands
from diopi_test.cases.layouts import contiguous, strided, transposed
from diopi_test.cases.linalg.operands import (
    ACCUMULATED_FIELDS,
    EXACT_FIELDS,
    FLOAT16_FIELDS,
    SMOKE_FIELDS,
    TRANSPOSED_RESULT,
    expand_in_order,
    large_operand_template,
    longest_axis,
    operand_template,
)
from diopi_test.cases.products import exact_numbers, partly_infinite
from diopi_test.cases.template import CaseTemplate, expand

F32 = Dtype.float32
"""The leading element type."""

MATRIX = operand_template("matrix", (4, 7), (3, 7), (3,), **SMOKE_FIELDS)
"""A template that maps 4 rows of 7 features to 3 outputs, with smoke cases in all element types."""

LAYOUTS = operand_template("layouts", (2, 3, 5), (4, 5), (4,), **TRANSPOSED_RESULT)
"""A template with 2 × 3 rows, whose tensors and result are not contiguous."""

SQUARE = operand_template("square", (3, 3), (3, 3), (3,))
"""A template with a square input and a square weight.

A function that forgets to transpose the weight returns a result of the correct shape with wrong values.
"""

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
    operand_template("tails-exact", (3, 19, 17), (35, 17), (35,), domain=exact_numbers, **EXACT_FIELDS),
)
"""Templates that the function and its gradients share."""

BROADCAST_BIASES = tuple(
    operand_template(label, (3, 5), (4, 5), bias, case_class=CaseClass.callers)
    for label, bias in (
        ("bias-of-one", (1,)),
        ("bias-scalar", ()),
        ("bias-a-row", (3, 1)),
        ("bias-an-element", (3, 4)),
    )
)
"""Templates of a bias that is not a vector, and is broadcast to the result of shape (3, 4).

Some callers pass such a bias, so that the cases have the class `callers`.
"""

WITHOUT_BIAS: Mapping[str, Any] = {"bias": None}
"""The argument of calls that omit the bias."""

TOKENS = large_operand_template("tokens", (3, 5, 131, 67), (41, 67), (41,))
"""A template of a large input of rank 4, like the tokens of a batch of sequences."""

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
    operand_template("very-long", (2, 4_099), (3, 4_099), (3,), dtypes=(F32,)),
    operand_template("many-columns", (3, 5), (577, 5), (577,), dtypes=(F32,)),
    operand_template("many-rows", (129, 5), (3, 5), (3,), dtypes=(F32,)),
    operand_template("large-numbers", (5, 7), (3, 7), (3,), domain=normal(1_000), dtypes=(F32,)),
    large_operand_template("square-of-256", (256, 256), (256, 256), (256,)),
    operand_template(
        "long-no-bias-accumulated", (2, 1031), (3, 1031), (3,), **ACCUMULATED_FIELDS, arguments=WITHOUT_BIAS
    ),
    large_operand_template("square", (257, 2053), (509, 2053), (509,)),
    TOKENS,
    large_operand_template("half-transposed", *HALF_SHAPES, layouts=(transposed, contiguous), **FLOAT16_FIELDS),
)
"""The templates of `diopiLinear`."""


@cases_for("diopiLinear")
def linear_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of `diopiLinear`.

    Half-precision cases get data that show in which type an implementation accumulates (`half_sums`).
    """
    return half_sums.reveal_half_sums(
        expand_in_order(prototype, LINEAR), longest_axis, addends=("bias",), unchanged=("float16-one-output",)
    )


def _with_shape_of_bias(templates: Iterable[CaseTemplate[Operands]]) -> Iterator[CaseTemplate[Operands]]:
    """Yield copies of the templates whose result `grad_bias` has the shape of the bias."""
    for template in templates:
        yield template.replace(results={"grad_bias": ResultOverride(shape=template.sizes[2].shape)})


GRADIENTS = (
    *AFFINE_MAPS,
    MATRIX.replace("matrix-special", domains={"grad_output": partly_infinite}, dtypes=floating, smoke=False),
    *(
        LAYOUTS.replace(f"layouts-no-{name}", results={name: None})
        for name in ("grad_input", "grad_weight", "grad_bias")
    ),
    operand_template("many-rows-accumulated", (1031, 2), (3, 2), (3,), **ACCUMULATED_FIELDS),
    operand_template("many-outputs-accumulated", (2, 3), (1031, 3), (1031,), **ACCUMULATED_FIELDS),
    *_with_shape_of_bias(BROADCAST_BIASES),
    MATRIX.replace(
        "matrix-grad_weight-only", results={"grad_input": None, "grad_bias": None}, dtypes=(F32,), smoke=False
    ),
    *_with_shape_of_bias(
        (
            large_operand_template("square", (257, 1031), (509, 1031), (509,)),
            TOKENS,
            large_operand_template(
                "half-transposed", *HALF_SHAPES, layouts=(contiguous, transposed, contiguous), **FLOAT16_FIELDS
            ),
        )
    ),
)
"""The templates of the gradients of input, weight and bias."""


@cases_for("diopiLinearBackward")
def linear_backward_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of the gradients of `diopiLinear`.

    The shapes of grad_output, input and weight follow from the operands of a template. Their layouts and domains are
    those of the first, the second and the third operand.
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
    """Return a copy of the template whose result `grad_bias` is strided if the other results are, else contiguous."""
    layout = strided if template.result_layout is strided else contiguous
    return template.replace(results={"grad_bias": ResultOverride(layout=layout), **template.results})
