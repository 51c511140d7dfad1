"""Cases of triangular systems and their gradients."""

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
from diopi_test.cases.linalg.operands import BASIC, EXACT, REAL_AND_COMPLEX, TO_TRANSPOSED, operand_template
from diopi_test.cases.products import fixed_values
from diopi_test.cases.template import CaseTemplate, DtypeSelection, TensorTemplate, expand, tensor

FLAGS = ("upper", "transpose", "unitriangular")
"""The Boolean attributes of a triangular system."""

FLAG_VALUES = [dict(zip(FLAGS, values, strict=True)) for values in product((False, True), repeat=len(FLAGS))]
"""All eight combinations of the attributes."""

UPPER = dict.fromkeys(FLAGS, False) | {"upper": True}
"""Only `upper` is true."""


def _compute_regular_matrix(values: Values) -> NDArray[Any]:
    """Compute a matrix whose two triangles are well conditioned, even with a diagonal of 1."""
    raw = values["_raw"]
    size = raw.shape[-1]
    return np.asarray(np.where(np.eye(size, dtype=bool), 2 + np.abs(raw), raw / max(size, 2)))


def system_template(label: str, b: tuple[int, ...], mat: tuple[int, ...], **fields: Any) -> CaseTemplate[Operands]:
    """Return a template of a system with a regular matrix.

    Args:
        label: The label of the template.
        b: The shape of the right-hand side.
        mat: The shape of the matrix.
        fields: Further fields of the template.

    Returns:
        The template.
    """
    template = operand_template(label, b, mat, **{"dtypes": REAL_AND_COMPLEX, **fields})
    right_hand_side, matrix = template.sizes
    return replace(template, sizes=(right_hand_side, replace(matrix, compute=_compute_regular_matrix)))


MATRIX = system_template("matrix", (5, 3), (5, 5), **BASIC)
"""A system with one matrix and three right-hand sides."""

LAYOUTS = system_template("layouts", (2, 4, 3), (2, 4, 4), **TO_TRANSPOSED)
"""A batch of systems whose tensors have different layouts."""

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
"""Systems of all kinds of shapes."""

LARGE_SYSTEMS = (
    system_template("matrix", (129, 517), (129, 129), dtypes=(Dtype.float32,), large=True),
    system_template("batch", (41, 17, 101), (41, 17, 17), dtypes=(Dtype.float32,), large=True),
)
"""Systems of the level `large`."""

UNREAD_NAN = CaseTemplate(
    "unread",
    (tensor(3, 2), tensor(3, 3, domain=fixed_values([[np.nan, 0.5, -0.25], [np.nan, np.nan, 2], [np.nan] * 3]))),
    dict.fromkeys(FLAGS, True),
    dtypes=DtypeSelection.all,
)
"""A matrix with NaN in the elements that the function must not read."""

SINGULAR = CaseTemplate(
    "singular",
    (tensor(2, 1, domain=fixed_values([1.0, 1.0])), tensor(2, 2, domain=fixed_values([[2.0, 1.0], [0.5, 0.0]]))),
    dict.fromkeys(FLAGS, False),
    dtypes=DtypeSelection.all,
)
"""A matrix with a 0 at the end of the diagonal; the last step of the forward substitution divides by it."""


def flag_template(
    template: CaseTemplate[Operands], flags: Mapping[str, bool], **changes: Any
) -> CaseTemplate[Operands]:
    """Return the template with these attributes. Smoke cases are upper triangles, not unitriangular."""
    words = [name for name, value in flags.items() if value] or ["lower"]
    smoke = bool(template.smoke) and flags["upper"] and not flags["unitriangular"]
    return template.replace("-".join([template.label, *words]), flags, smoke=smoke, **changes)


def exact_templates(*shapes: tuple[int, ...]) -> Iterator[CaseTemplate[Operands]]:
    """Yield templates with small integers and a diagonal of 1, so that no operation rounds."""
    numbers = operand_template("exact", *shapes, domain=integer_values(-2, 2), **EXACT)
    return (flag_template(numbers, flags) for flags in FLAG_VALUES[1::2])


def _tensor_arguments(template: CaseTemplate[Operands]) -> Mapping[str, TensorTemplate]:
    """Return the right-hand side, the matrix, and the random tensor from which the matrix is computed, by name."""
    b, mat = template.sizes
    raw = {"_raw": tensor(*mat.shape)} if mat.compute else {}
    return {**raw, "b": b, "mat": mat}


LARGE_UPPER = [flag_template(template, UPPER).replace(template.label) for template in LARGE_SYSTEMS]
"""The large systems with upper triangles."""

FORWARD_TEMPLATES = (
    *(flag_template(MATRIX, flags) for flags in FLAG_VALUES),
    *(
        flag_template(template, FLAG_VALUES[(i + more) % 8])
        for i, template in enumerate(SYSTEMS[1:], 1)
        for more in (0, 3)
    ),
    *exact_templates((5, 3), (5, 5)),
    UNREAD_NAN,
    SINGULAR,
    *LARGE_UPPER,
)
"""The templates of the forward function."""


@cases_for("diopiTriangularSolve")
def triangular_solve_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of the solution of `mat` · x = `b`; NaN in the unused triangle shows a vendor that reads it."""
    return expand(prototype, FORWARD_TEMPLATES, lambda template, dtype: _tensor_arguments(template))


def without_gradients(*absent: str, **changes: Any) -> CaseTemplate[Operands]:
    """Return the template `LAYOUTS` without the gradients in `absent`, as arguments and as results."""
    template = flag_template(LAYOUTS, UPPER, **changes)
    label = "-".join([template.label, *(f"no-{name}" for name in absent)])
    return template.replace(label, dict.fromkeys(absent), results=dict.fromkeys(absent))


COMPLEX = tuple(dtype for dtype in Dtype if is_complex(dtype))
"""The complex element types."""

ONLY_ZERO_REASON = "the gradient of an unused result is 0"
"""The reason why wrong results can pass a case (`non_discriminating`) that omits the gradient `grad_x`."""

UNIT_MATRIX_REASON = "a unit triangular matrix with one element is 1"
"""The reason why wrong results can pass a case (`non_discriminating`) of a unitriangular 1 × 1 matrix."""

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
    # Without `grad_x`, `grad_b` is 0. Only in complex types does the suite ignore the sign of a zero.
    without_gradients("grad_x", dtypes=COMPLEX, non_discriminating=ONLY_ZERO_REASON),
    without_gradients("grad_x", "grad_cloned_mat", dtypes=COMPLEX, non_discriminating=ONLY_ZERO_REASON),
)
"""The templates of the gradient function."""


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
