"""Cases of the Cholesky decomposition, its gradient, and the QR decomposition.

The Cholesky decomposition writes a positive definite matrix as L · Lᴴ with a lower triangular factor L, or as Uᴴ · U
with an upper triangular factor U. The QR decomposition writes a matrix as Q · R: the columns of Q
are orthonormal, and R is upper triangular.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from diopi_proto.dtypes import is_complex
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases.case import Case, ResultOf, ResultOverride, Values, cases_for
from diopi_test.cases.domains import Domain, choice, integer_values, normal, tiny_multiples
from diopi_test.cases.elementwise import Operands
from diopi_test.cases.facts import CaseFacts
from diopi_test.cases.layouts import strided, transposed
from diopi_test.cases.linalg.operands import (
    EXACT_FIELDS,
    REAL_AND_COMPLEX,
    SMOKE_FIELDS,
    TRANSPOSED_RESULT,
    expand_in_order,
    large_operand_template,
    operand_template,
)
from diopi_test.cases.products import fixed_values
from diopi_test.cases.template import CaseTemplate, DtypeSelection, expand, tensor

Array = NDArray[Any]
"""An array of matrices, which are the last two axes."""

Factor = Callable[[Values], Array]
"""Returns the lower Cholesky factor of a gradient case for the values of its earlier arguments."""

SQUARE_MATRICES = (
    operand_template("matrix", (5, 5), **SMOKE_FIELDS),
    operand_template("batches", (2, 1, 3, 3), dtypes=DtypeSelection.all),
    operand_template("transposed", (2, 4, 4), **TRANSPOSED_RESULT),
    operand_template("strided", (3, 4, 4), layouts=(strided,), result_layout=strided, dtypes=DtypeSelection.all),
    operand_template("one", (1, 1), dtypes=REAL_AND_COMPLEX),
    operand_template("empty", (0, 0), dtypes=REAL_AND_COMPLEX),
    operand_template("no-batch", (0, 3, 3), dtypes=REAL_AND_COMPLEX),
    operand_template("large", (23, 23), dtypes=REAL_AND_COMPLEX),
    operand_template("to-transposed", (3, 3), result_layout=transposed, dtypes=REAL_AND_COMPLEX),
)
"""Templates of the shapes and layouts of square matrices."""

BATCHES = SQUARE_MATRICES[1]
"""A template of a batch of 2 × 1 matrices of size 3 × 3."""

LARGE_SQUARES = (large_operand_template("matrix", (263, 263)), large_operand_template("batch", (67, 33, 33)))
"""Large templates of square matrices."""

TRIANGLES = (False, True)
"""The values of `upper`: False for the lower triangle, True for the upper one."""


def triangle_template(
    template: CaseTemplate[Operands], arguments: Mapping[str, Any], upper: bool, **more_arguments: Any
) -> CaseTemplate[Operands]:
    """Return a copy of a template for the upper or the lower triangle.

    Args:
        template: The template, whose label gets the suffix "upper" or "lower".
        arguments: Arguments by name.
        upper: Whether the call decomposes into an upper triangular factor instead of a lower triangular one.
        **more_arguments: Further arguments by name.

    Returns:
        The copy.
    """
    label = f"{template.label}-{'upper' if upper else 'lower'}"
    return template.replace(label, {**arguments, "upper": upper, **more_arguments})


def _adjoint(a: Array) -> Array:
    """Return the conjugate transpose of each matrix in `a`."""
    return np.swapaxes(a, -1, -2).conj()


def _positive_definite(root: Array) -> Array:
    """Return the positive definite matrix R · Rᴴ / n + I for each n × n matrix R in `root`."""
    return np.asarray(root @ _adjoint(root) / max(root.shape[-1], 1) + np.eye(root.shape[-1]))


def _lower_triangular(values: Array, diagonal: Any = 1) -> Array:
    """Return lower triangular matrices.

    Args:
        values: Square matrices, whose elements below the diagonal are used.
        diagonal: The elements of the diagonal: one number, or an array of the length of the diagonal.

    Returns:
        The matrices.
    """
    return np.asarray(np.tril(values, -1) + diagonal * np.eye(values.shape[-1]))


# Decompositions


def one_triangle_template(template: CaseTemplate[Operands], upper: bool) -> CaseTemplate[Operands]:
    """Return a template of the decomposition of positive definite matrices.

    Only one triangle of the argument `mat` contains the matrix. The other triangle, which the function must not read,
    contains unrelated numbers.

    Args:
        template: A template of square matrices.
        upper: Whether the upper triangle contains the matrix.

    Returns:
        The template.
    """

    def matrix(values: Values) -> Array:
        matrix, unread_values = _positive_definite(values["_root"]), values["_other"]
        return np.asarray(
            np.triu(matrix) + np.tril(unread_values, -1) if upper else np.tril(matrix) + np.triu(unread_values, 1)
        )

    (square,) = template.sizes
    random_tensor = tensor(*square.shape)
    tensors = {"_root": random_tensor, "_other": random_tensor, "mat": replace(square, compute=matrix)}
    return triangle_template(template, tensors, upper, checkerror=False)


def _exact_product(values: Values) -> Array:
    """Return L · Lᴴ for the lower triangular matrices L of integers that `values["_factor"]` describes.

    The diagonal of L consists of 1 and 2 in alternation, so that no step of the decomposition makes a rounding error.
    """
    factor = _lower_triangular(values["_factor"], 1 + np.arange(19) % 2)
    return np.asarray(factor @ _adjoint(factor))


EXACT_PRODUCT = {
    "_factor": tensor(2, 19, 19, domain=integer_values(-2, 2)),
    "mat": tensor(2, 19, 19, compute=_exact_product),
}
"""The tensors of an exact decomposition: `mat` is computed from the integers in `_factor`, which is not passed."""


def _draw_indefinite(rng: Generator, count: int, dtype: Dtype) -> Array:
    """Return the elements of five 3 × 3 matrices, only the first of which is positive definite.

    In the other matrices, the first leading minor that is not positive has the order 1, 2, 3 and 1.
    """
    lower_entry, upper_entry = (2j, -2j) if is_complex(dtype) else (2, 2)
    matrices = [
        [[4, upper_entry, 0], [lower_entry, 5, 2], [0, 2, 5]],
        [[-1, 0, 0], [0, 1, 0], [0, 0, 1]],
        [[1, 1, 0], [1, 1, 0], [0, 0, 1]],
        [[4, 2, 2], [2, 5, 3], [2, 3, 1]],
        [[0, 0, 0], [0, -1, 0], [0, 0, 1]],
    ]
    return np.array(matrices, np.complex128 if is_complex(dtype) else np.float64).ravel()


INDEFINITE = {"mat": tensor(5, 3, 3, domain=_draw_indefinite)}
"""The argument `mat` for a batch of one matrix that has a Cholesky factor and four matrices that have none."""

CHOLESKY_TEMPLATES = (
    *(one_triangle_template(square, upper) for square in SQUARE_MATRICES for upper in TRIANGLES),
    one_triangle_template(BATCHES, upper=False).replace("batches-lower-checked", {"checkerror": True}),
    one_triangle_template(operand_template("larger", (67, 67), dtypes=DtypeSelection.all), upper=True),
    *(
        triangle_template(CaseTemplate("exact", **EXACT_FIELDS), EXACT_PRODUCT, upper, checkerror=False)
        for upper in TRIANGLES
    ),
    triangle_template(CaseTemplate("indefinite", **SMOKE_FIELDS), INDEFINITE, upper=False, checkerror=False),
    triangle_template(CaseTemplate("indefinite", dtypes=DtypeSelection.all), INDEFINITE, upper=True, checkerror=False),
    *(one_triangle_template(square, upper=False).replace(square.label) for square in LARGE_SQUARES),
)
"""The templates of the Cholesky decomposition."""


@cases_for("diopiCholesky")
def cholesky_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of the Cholesky decomposition."""
    return expand(prototype, CHOLESKY_TEMPLATES)


# Gradients


def gradient_template(
    template: CaseTemplate[Operands], name: str, domain: Domain, lower: Factor, upper: bool
) -> CaseTemplate[Operands]:
    """Return a template of the gradient of the Cholesky decomposition.

    Args:
        template: A template of square matrices, for the gradient of the factor.
        name: The name of a tensor that is not passed, from which the factor is computed.
        domain: The domain of this tensor.
        lower: Computes the lower factor from the values of the arguments.
        upper: Whether the factor that is passed is the upper one.

    Returns:
        The template.
    """
    (grad_output,) = template.sizes
    factor = replace(grad_output, compute=(lambda values: _adjoint(lower(values))) if upper else lower)
    random_tensor = tensor(*grad_output.shape, domain=domain)
    return triangle_template(template, {name: random_tensor, "grad_output": grad_output, "L": factor}, upper)


def _cholesky_factor(values: Values) -> Array:
    """Return the lower Cholesky factors of the positive definite matrices that `values["_root"]` describes."""
    return np.linalg.cholesky(_positive_definite(values["_root"]))


def _unit_diagonal_factor(values: Values) -> Array:
    """Return lower triangular matrices of integers with a diagonal of 1, whose inverses consist of integers as well."""
    return _lower_triangular(values["_factor"])


INTEGER_GRADIENT = operand_template("exact", (2, 7, 7), domain=integer_values(-9, 9), **EXACT_FIELDS)
"""A template of a batch of gradients that are integers, for results without rounding errors."""

GRADIENTS = (
    *(
        gradient_template(square, "_root", normal(), _cholesky_factor, upper)
        for square in SQUARE_MATRICES
        for upper in TRIANGLES
    ),
    *(
        gradient_template(INTEGER_GRADIENT, "_factor", choice([-1, 0, 1, 0]), _unit_diagonal_factor, upper)
        for upper in TRIANGLES
    ),
    *(
        gradient_template(square, "_root", normal(), _cholesky_factor, upper=False).replace(square.label)
        for square in LARGE_SQUARES
    ),
)
"""The templates of the gradient of the Cholesky decomposition."""


@cases_for("diopiCholeskyBackward")
def cholesky_backward_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of the gradient, whose arguments are the gradient of the factor and the factor `L` itself."""
    return expand(prototype, GRADIENTS)


# QR

MODES = ("reduced", "complete", "r")
"""The values of `mode` of the QR decomposition."""

QR_MATRICES = (
    operand_template("tall", (5, 3), **SMOKE_FIELDS),
    operand_template("wide", (2, 3, 5), **TRANSPOSED_RESULT),
    operand_template("square", (4, 4), layouts=(strided,), result_layout=strided),
    operand_template("batches", (2, 3, 4, 2)),
    operand_template("one", (1, 1)),
    operand_template("column", (4, 1), layouts=(strided,)),
    operand_template("row", (1, 4)),
    operand_template("no-rows", (0, 3)),
    operand_template("no-columns", (3, 0)),
    operand_template("no-batch", (0, 4, 3)),
    operand_template("large", (67, 9)),
)
"""Templates of the shapes and layouts of matrices for the QR decomposition, which are combined with every mode."""

LARGE_MATRICES = (large_operand_template("matrix", (517, 131)), large_operand_template("batch", (67, 41, 29)))
"""Large templates of matrices for the QR decomposition."""

UPPER_TRIANGULAR = operand_template(
    "nothing-to-eliminate",
    (3, 4),
    domain=fixed_values([[-2, 1, 3, 0.5], [0, 3, -1, 2], [0, 0, -4, 1]]),
    arguments={"mode": "r"},
    **EXACT_FIELDS,
)
"""A template of a matrix that is already upper triangular, so that R has no rounding error.

The signs of the rows of R show the convention of the decomposition.
"""

TINY_MATRIX = operand_template(
    "near-least",
    (5, 3),
    domain=tiny_multiples(2.0, -3.5, 5.0, -7.25, 2.75, 4.5, -1.25),
    arguments={"mode": "reduced"},
)
"""A template of a matrix whose elements are so small that intermediate values of the decomposition are subnormal."""


def mode_template(template: CaseTemplate[Operands], mode: str) -> CaseTemplate[Operands]:
    """Return a copy of a template for a mode of the QR decomposition.

    In mode "r", which does not compute Q, a template that is not for all element types is for complex64 instead.

    Args:
        template: The template.
        mode: An entry of `MODES`.

    Returns:
        The copy.
    """
    template_in_mode = template.replace(f"{template.label}-{mode}", {"mode": mode})
    if mode != "r":
        return template_in_mode
    dtypes = template.dtypes if template.dtypes is DtypeSelection.all else (Dtype.complex64,)
    return template_in_mode.replace(dtypes=dtypes, results={"Q": ResultOverride()})


@cases_for("diopiLinalgQR")
def qr_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of the QR decomposition."""
    templates = [mode_template(template, mode) for template in QR_MATRICES for mode in MODES]
    large = [mode_template(template, "reduced").replace(template.label) for template in LARGE_MATRICES]
    return expand_in_order(prototype, [*templates, UPPER_TRIANGULAR, TINY_MATRIX, *large])


CaseFacts(saved={"L": ResultOf("diopiCholesky")}).declare("diopiCholeskyBackward")
