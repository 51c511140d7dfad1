"""Cases of the solution of triangular systems of equations and of its gradients.

A system consists of a triangular matrix and a right-hand side, which are the operands of a template: the shapes and
layouts of the tensors `b` and `mat`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_proto.dtypes import is_complex
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, ResultOf, Values, cases_for
from diopi_test.cases.domains import integer_values
from diopi_test.cases.elementwise import Operands
from diopi_test.cases.facts import CaseFacts
from diopi_test.cases.layouts import contiguous, strided, transposed
from diopi_test.cases.linalg.operands import (
    EXACT_FIELDS,
    REAL_AND_COMPLEX,
    SMOKE_FIELDS,
    TRANSPOSED_RESULT,
    operand_template,
)
from diopi_test.cases.products import fixed_values
from diopi_test.cases.template import CaseTemplate, DtypeSelection, TensorTemplate, expand, tensor

FLAGS = ("upper", "transpose", "unitriangular")
"""The Boolean arguments: whether the matrix is upper triangular, is transposed first, and has a diagonal of ones."""

FLAG_VALUES = [dict(zip(FLAGS, values, strict=True)) for values in product((False, True), repeat=len(FLAGS))]
"""All eight combinations of the Boolean arguments, by name."""

UPPER_FLAGS = dict.fromkeys(FLAGS, False) | {"upper": True}
"""The Boolean arguments of a system with an upper triangular matrix."""


def _compute_regular_matrix(values: Values) -> NDArray[Any]:
    """Return a matrix whose two triangles are well conditioned, even if the diagonal is replaced by ones.

    Args:
        values: The values of the arguments. `_raw` has normally distributed elements.

    Returns:
        The matrix. Elements off the diagonal are small compared with those on the diagonal.
    """
    random_tensor = values["_raw"]
    size = random_tensor.shape[-1]
    return np.asarray(np.where(np.eye(size, dtype=bool), 2 + np.abs(random_tensor), random_tensor / max(size, 2)))


def system_template(label: str, b: tuple[int, ...], mat: tuple[int, ...], **fields: Any) -> CaseTemplate[Operands]:
    """Return a template of a system with a well-conditioned matrix.

    Args:
        label: The label of the cases without the element type.
        b: The shape of the right-hand side.
        mat: The shape of the matrix.
        fields: Further fields of the template.

    Returns:
        The template.
    """
    template = operand_template(label, b, mat, **{"dtypes": REAL_AND_COMPLEX, **fields})
    right_hand_side, matrix = template.sizes
    return replace(template, sizes=(right_hand_side, replace(matrix, compute=_compute_regular_matrix)))


MATRIX = system_template("matrix", (5, 3), (5, 5), **SMOKE_FIELDS)
"""A template of a system with one matrix and three right-hand sides, with smoke cases in every element type."""

LAYOUTS = system_template("layouts", (2, 4, 3), (2, 4, 4), **TRANSPOSED_RESULT)
"""A template of a batch of systems whose tensors have different layouts."""

SYSTEMS = (
    MATRIX,
    LAYOUTS,
    system_template("square", (4, 4), (4, 4)),
    system_template("column", (6, 1), (6, 6)),
    system_template("one", (1, 2), (1, 1)),
    system_template("batched-mat", (4, 2), (2, 3, 4, 4), layouts=(strided,), result_layout=strided),
    system_template("batched-b", (3, 4, 2), (4, 4), layouts=(transposed,)),
    system_template("stretched", (2, 1, 3, 2), (4, 3, 3), layouts=(contiguous, transposed)),
    system_template("no-columns", (3, 0), (3, 3)),
    system_template("no-unknowns", (0, 2), (0, 0)),
    system_template("no-batch", (0, 3, 2), (0, 3, 3)),
    system_template("large", (67, 3), (67, 67)),
)
"""Templates of systems of various shapes, without Boolean arguments."""

LARGE_SYSTEMS = (
    system_template("matrix", (129, 517), (129, 129), dtypes=(Dtype.float32,), large=True),
    system_template("batch", (41, 17, 101), (41, 17, 17), dtypes=(Dtype.float32,), large=True),
)
"""Large templates of systems, without Boolean arguments."""

UNREAD_NAN = CaseTemplate(
    "unread",
    (tensor(3, 2), tensor(3, 3, domain=fixed_values([[np.nan, 0.5, -0.25], [np.nan, np.nan, 2], [np.nan] * 3]))),
    dict.fromkeys(FLAGS, True),
    dtypes=DtypeSelection.all,
)
"""A template of a matrix with NaN in all elements that the function must not read."""

SINGULAR = CaseTemplate(
    "singular",
    (tensor(2, 1, domain=fixed_values([1.0, 1.0])), tensor(2, 2, domain=fixed_values([[2.0, 1.0], [0.5, 0.0]]))),
    dict.fromkeys(FLAGS, False),
    dtypes=DtypeSelection.all,
)
"""A template of a singular matrix: the last element of the diagonal, by which the last step divides, is 0."""


def flag_template(
    template: CaseTemplate[Operands], flags: Mapping[str, bool], **changes: Any
) -> CaseTemplate[Operands]:
    """Return a copy of a template that has the Boolean arguments `flags`.

    Args:
        template: The template.
        flags: The Boolean arguments by name. The names of true ones extend the label.
        **changes: New values of other fields.

    Returns:
        The copy. Of the smoke cases, only those with an upper triangle and without a diagonal of ones remain.
    """
    suffixes = [name for name, value in flags.items() if value] or ["lower"]
    smoke = bool(template.smoke) and flags["upper"] and not flags["unitriangular"]
    return template.replace("-".join([template.label, *suffixes]), flags, smoke=smoke, **changes)


def exact_templates(*shapes: tuple[int, ...]) -> Iterator[CaseTemplate[Operands]]:
    """Return templates with small integers and `unitriangular` set, so that no operation makes a rounding error.

    Args:
        *shapes: The shapes of the right-hand side and of the matrix.

    Returns:
        One template per combination of the other Boolean arguments.
    """
    numbers = operand_template("exact", *shapes, domain=integer_values(-2, 2), **EXACT_FIELDS)
    return (flag_template(numbers, flags) for flags in FLAG_VALUES[1::2])


def _tensor_arguments(template: CaseTemplate[Operands]) -> Mapping[str, TensorTemplate]:
    """Return the arguments `b` and `mat`, and the random tensor `_raw` if `mat` is computed from it."""
    b, mat = template.sizes
    random_tensor = {"_raw": tensor(*mat.shape)} if mat.compute else {}
    return {**random_tensor, "b": b, "mat": mat}


LARGE_UPPER = [flag_template(template, UPPER_FLAGS).replace(template.label) for template in LARGE_SYSTEMS]
"""Large templates of systems with upper triangular matrices."""

FORWARD_TEMPLATES = (
    *(flag_template(MATRIX, flags) for flags in FLAG_VALUES),
    *(
        flag_template(template, FLAG_VALUES[(i + offset) % 8])
        for i, template in enumerate(SYSTEMS[1:], 1)
        for offset in (0, 3)
    ),
    *exact_templates((5, 3), (5, 5)),
    UNREAD_NAN,
    SINGULAR,
    *LARGE_UPPER,
)
"""The templates of `diopiTriangularSolve`."""


@cases_for("diopiTriangularSolve")
def triangular_solve_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of the solution x of `mat` · x = `b`."""
    return expand(prototype, FORWARD_TEMPLATES, lambda template, dtype: _tensor_arguments(template))


def without_gradients(*omitted_names: str, **changes: Any) -> CaseTemplate[Operands]:
    """Return the template `LAYOUTS` with some gradients omitted.

    Args:
        *omitted_names: The names of the gradients, which are arguments or results.
        **changes: New values of other fields.

    Returns:
        The template.
    """
    template = flag_template(LAYOUTS, UPPER_FLAGS, **changes)
    label = "-".join([template.label, *(f"no-{name}" for name in omitted_names)])
    return template.replace(label, dict.fromkeys(omitted_names), results=dict.fromkeys(omitted_names))


COMPLEX_DTYPES = tuple(dtype for dtype in Dtype if is_complex(dtype))
"""The complex element types."""

ONLY_ZERO_REASON = "the gradient of an unused result is 0"
"""The reason why an implementation with a coarse error passes cases without `grad_x`."""

UNIT_MATRIX_REASON = "a unit triangular matrix with one element is 1"
"""The reason why an implementation with a coarse error passes cases of a 1 × 1 matrix with a diagonal of ones."""

BACKWARD_TEMPLATES = (
    *(flag_template(MATRIX, flags) for flags in FLAG_VALUES),
    *(
        flag_template(template, FLAG_VALUES[i % 8], non_discriminating=UNIT_MATRIX_REASON * (template.label == "one"))
        for i, template in enumerate(SYSTEMS[1:], 2)
    ),
    *exact_templates((2, 5, 3), (2, 5, 5)),
    *LARGE_UPPER,
    without_gradients("grad_cloned_mat"),
    without_gradients("grad_b"),
    without_gradients("grad_mat"),
    without_gradients("grad_x", "grad_b"),
    # Without `grad_x`, `grad_b` is 0. The suite ignores the sign of a zero only in complex types.
    without_gradients("grad_x", dtypes=COMPLEX_DTYPES, non_discriminating=ONLY_ZERO_REASON),
    without_gradients("grad_x", "grad_cloned_mat", dtypes=COMPLEX_DTYPES, non_discriminating=ONLY_ZERO_REASON),
)
"""The templates of `diopiTriangularSolveBackward`."""


@cases_for("diopiTriangularSolveBackward")
def triangular_solve_backward_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of the gradients of `b` and `mat`; the argument `x` is the solution of the forward function."""

    def gradients(template: CaseTemplate[Operands], dtype: Dtype) -> Mapping[str, Any]:
        b, mat = template.sizes
        flags = {name: template.arguments[name] for name in FLAGS}
        batch = np.broadcast_shapes(b.shape[:-2], mat.shape[:-2])
        solution, matrix = (*batch, *b.shape[-2:]), (*batch, *mat.shape[-2:])
        return {
            **_tensor_arguments(template),
            "grad_x": TensorTemplate(solution, b.domain, mat.layout),
            "grad_cloned_mat": TensorTemplate(matrix, b.domain, b.layout),
            "x": tensor(*solution, layout=b.layout, compute=ResultOf("diopiTriangularSolve", extra_arguments=flags)),
            **flags,
        }

    return expand(prototype, BACKWARD_TEMPLATES, gradients)


CaseFacts(saved={"x": ResultOf("diopiTriangularSolve")}).declare("diopiTriangularSolveBackward")
