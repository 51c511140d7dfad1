"""Cases of matrix products, of the gradients of `diopiMatmul`, and of sums of a tensor and a matrix product.

The operands of a template are the shapes and layouts of the tensor arguments, in order. A domain is a distribution or a
set of values, from which the elements of a tensor are drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from diopi_proto.dtypes import floating, half, integer
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.cases import half_sums
from diopi_test.cases.case import Case, TensorSpec, cases_for
from diopi_test.cases.domains import choice, integer_values, normal
from diopi_test.cases.elementwise import Operands
from diopi_test.cases.exact_integers import integers_without_overflow
from diopi_test.cases.facts import CaseFacts
from diopi_test.cases.layouts import contiguous, expanded, strides, transposed
from diopi_test.cases.linalg.operands import (
    ACCUMULATED_FIELDS,
    EXACT_FIELDS,
    FLOAT16_FIELDS,
    MIXED_LAYOUTS,
    SMOKE_FIELDS,
    STRIDED_RESULT,
    expand_in_order,
    large_operand_template,
    longest_axis,
    operand_template,
)
from diopi_test.cases.products import exact_numbers, fixed_values, partly_infinite
from diopi_test.cases.template import ByDtype, CaseTemplate, expand, tensor

F32 = Dtype.float32
"""The leading element type."""

ADDENDS = ("input",)
"""The names of the parameters that are added to a product."""

Shapes = tuple[tuple[int, ...], ...]
"""The shapes of the operands of a template."""

SPECIAL_LEFT_FACTOR = [[1, 2, -1], [np.nan, 1, 2], [np.inf, 1, -1], [np.inf, -np.inf, 1], [-np.inf, 1, 1], [0.5, 0, 0]]
"""The elements of a left factor, whose rows contain different combinations of NaN and infinities."""

SPECIAL_RIGHT_FACTOR = [[1, -2, np.inf], [3, 1, 1], [0.5, 4, 2]]
"""The elements of a right factor, one of which is infinite."""


def special_value_template(*batch: int) -> CaseTemplate[Operands]:
    """Return a template of a product of `SPECIAL_LEFT_FACTOR` and `SPECIAL_RIGHT_FACTOR`.

    Args:
        *batch: The batch axes of both factors.

    Returns:
        The template.
    """
    rows = tensor(*batch, 6, 3, domain=fixed_values(SPECIAL_LEFT_FACTOR))
    columns = tensor(*batch, 3, 3, domain=fixed_values(SPECIAL_RIGHT_FACTOR))
    return CaseTemplate("special", (rows, columns), dtypes=floating)


def rounded_products_template(*shapes: tuple[int, ...], terms: int) -> CaseTemplate[Operands]:
    """Return a template of integers whose products a floating-point type cannot represent, but the integer type can.

    Args:
        *shapes: The shapes of the operands.
        terms: The number of products that can be added up without overflow.

    Returns:
        The template.
    """
    domain = integers_without_overflow(factors=2, terms=terms)
    return operand_template("without-overflow", *shapes, domain=domain, dtypes=(Dtype.int32, Dtype.int64))


def product_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of the product of tensors of the shapes `a` and `b`, by the rules of NumPy's `matmul`."""
    shape: tuple[int, ...] = np.matmul(np.zeros(a), np.zeros(b)).shape
    return shape


def one_row_or_column(*batch: int, added: bool = False) -> list[CaseTemplate[Operands]]:
    """Return templates of long products with one row, and with one column, for which libraries have other kernels.

    Args:
        *batch: The number of products, if the function multiplies batches.
        added: Whether the first operand is added to the product.
    """
    factors = {
        "long-row": ((*batch, 1, 1031), (*batch, 1031, 5)),
        "long-column": ((*batch, 5, 1031), (*batch, 1031, 1)),
    }
    return [
        operand_template(label, *([product_shape(*shapes)] if added else []), *shapes, dtypes=(F32,))
        for label, shapes in factors.items()
    ]


def tiles(*batch: int, added: bool = False) -> list[CaseTemplate[Operands]]:
    """Return templates of sizes just beyond multiples of tiles: very long sums, many columns, and many rows.

    Kernels divide a product into tiles of 32 to 256 elements, and very long sums into parts. They may forget the last
    tile or part. The last template has products beyond the range of float16.

    Args:
        *batch: The number of products, if the function multiplies batches.
        added: Whether the first operand is added to the product.
    """
    factors: Mapping[str, Shapes] = {
        "very-long": ((*batch, 2, 4_099), (*batch, 4_099, 3)),
        "many-columns": ((*batch, 3, 5), (*batch, 5, 577)),
        "many-rows": ((*batch, 129, 5), (*batch, 5, 3)),
    }
    templates = {label: (shapes, normal()) for label, shapes in factors.items()}
    templates["large-numbers"] = (((*batch, 5, 7), (*batch, 7, 3)), normal(1_000))
    return [
        operand_template(label, *([product_shape(*shapes)] if added else []), *shapes, dtypes=(F32,), domain=domain)
        for label, (shapes, domain) in templates.items()
    ]


MM = (
    operand_template("odd", (5, 7), (7, 3), **SMOKE_FIELDS),
    operand_template("layouts", (4, 6), (6, 5), **MIXED_LAYOUTS),
    operand_template("square", (4, 4), (4, 4)),
    operand_template("transposed", (3, 5), (5, 4), **STRIDED_RESULT),
    operand_template("row-by-column", (1, 6), (6, 1)),
    operand_template("column-by-row", (6, 1), (1, 5)),
    operand_template("expanded", (4, 3), (3, 5), layouts=(contiguous, expanded)),
    operand_template("no-products", (3, 0), (0, 4)),
    operand_template("empty", (0, 3), (3, 4)),
)
"""The small templates of `diopiMm`, the product of two matrices."""

BMM = (
    operand_template("odd", (2, 3, 5), (2, 5, 4), **SMOKE_FIELDS),
    operand_template("layouts", (3, 4, 2), (3, 2, 5), **MIXED_LAYOUTS),
    operand_template("square", (2, 3, 3), (2, 3, 3)),
    operand_template("transposed", (2, 3, 4), (2, 4, 2), **STRIDED_RESULT),
    operand_template("one", (1, 4, 3), (1, 3, 2)),
    operand_template("expanded", (3, 2, 4), (3, 4, 5), layouts=(contiguous, expanded)),
    operand_template("no-products", (2, 3, 0), (2, 0, 4)),
    operand_template("no-batch", (0, 3, 2), (0, 2, 4)),
    operand_template("no-rows", (2, 0, 2), (2, 2, 4)),
)
"""The small templates of `diopiBmm`, the product of two batches of matrices."""

MATMUL = (
    operand_template("matrices", (5, 7), (7, 3), **SMOKE_FIELDS),
    operand_template("batches", (2, 1, 3, 4), (3, 4, 5), **MIXED_LAYOUTS),
    operand_template("square", (4, 4), (4, 4)),
    operand_template("vectors", (9,), (9,)),
    operand_template("vector-by-matrix", (4,), (4, 6)),
    operand_template("matrix-by-vector", (6, 4), (4,), **STRIDED_RESULT),
    operand_template("vector-by-batch", (3,), (2, 3, 4)),
    operand_template("batch-by-vector", (2, 5, 3), (3,)),
    operand_template("batch-by-matrix", (2, 3, 4, 5), (5, 2), layouts=(transposed,)),
    operand_template("matrix-by-batch", (3, 4), (2, 4, 5)),
    operand_template("stretched", (2, 1, 3, 2), (1, 4, 2, 3), layouts=(expanded, contiguous)),
    operand_template("no-products", (2, 3, 0), (0, 4)),
    operand_template("empty-vectors", (0,), (0,)),
    operand_template("no-batch", (0, 3, 2), (2, 4)),
)
"""The small templates of `diopiMatmul`, the product of tensors of any rank, whose batch axes are broadcast."""

LONG = (
    operand_template("long", (2, 1031), (1031, 3)),
    operand_template("accumulated", (2, 1031), (1031, 3), **ACCUMULATED_FIELDS, smoke=True),
)
"""Templates with sums of 1,031 terms. A vendor that accumulates in half precision fails the exact cases."""

LONG_BATCHES = (
    operand_template("long", (2, 2, 523), (2, 523, 2)),
    operand_template("accumulated", (2, 2, 523), (2, 523, 2), **ACCUMULATED_FIELDS, smoke=True),
)
"""Templates like `LONG`, for batches of matrices and with sums of 523 terms."""

INCOMPLETE_TILES = operand_template("exact", (2, 1, 17, 9), (3, 9, 35), domain=exact_numbers, **EXACT_FIELDS)
"""A template of exact products whose sizes are not multiples of 16.

A vendor that divides the matrices into tiles may forget the incomplete tiles at the ends.
"""

HALF_MATRICES = large_operand_template(
    "half-transposed", (257, 517), (517, 263), layouts=(transposed, strides(1031, 3)), **FLOAT16_FIELDS
)
"""A large template in float16, with a transposed first factor and gaps in the second factor."""

SQUARE_OF_256 = large_operand_template("square-of-256", (256, 256), (256, 256))
"""A large template of complete tiles of every usual size."""

LARGE_MM = (
    SQUARE_OF_256,
    large_operand_template("square", (1031, 2053), (2053, 509)),
    large_operand_template("rows", (70_001, 3), (3, 5)),
    HALF_MATRICES,
)
"""The large templates of `diopiMm`."""

LARGE_BMM = (
    large_operand_template("square-of-256", (1, 256, 256), (1, 256, 256)),
    large_operand_template("attention", (13, 131, 67), (13, 67, 137)),
    large_operand_template(
        "half-transposed", (7, 131, 257), (7, 257, 129), layouts=(contiguous, transposed), **FLOAT16_FIELDS
    ),
)
"""The large templates of `diopiBmm`."""

LARGE_MATMUL = (
    SQUARE_OF_256,
    large_operand_template("square", (1031, 2053), (2053, 509)),
    large_operand_template("batches", (3, 1, 131, 67), (5, 67, 41)),
    large_operand_template("long", (32_003,), (32_003, 3)),
    HALF_MATRICES,
)
"""The large templates of `diopiMatmul`."""

PRODUCTS = {
    "diopiMm": (
        rounded_products_template((5, 7), (7, 3), terms=7),
        *MM,
        *LONG,
        *one_row_or_column(),
        *tiles(),
        special_value_template(),
        operand_template("exact", (37, 19), (19, 67), domain=exact_numbers, **EXACT_FIELDS),
        *LARGE_MM,
    ),
    "diopiBmm": (
        *(*BMM, *LONG_BATCHES, *one_row_or_column(2), *tiles(2), special_value_template(2), *LARGE_BMM),
        rounded_products_template((2, 3, 5), (2, 5, 4), terms=5),
        operand_template("exact", (3, 17, 9), (3, 9, 35), domain=exact_numbers, **EXACT_FIELDS),
    ),
    "diopiMatmul": (
        *(*MATMUL, *LONG, *one_row_or_column(), *tiles(), special_value_template(), INCOMPLETE_TILES, *LARGE_MATMUL),
        rounded_products_template((2, 1, 3, 4), (3, 4, 5), terms=4),
    ),
}
"""The templates of the functions that multiply matrices and add nothing to the product, by function."""


@cases_for(*PRODUCTS)
def product_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of a matrix product.

    Half-precision cases get data that show in which type an implementation accumulates (`half_sums`).
    """
    return half_sums.reveal_half_sums(expand_in_order(prototype, PRODUCTS[prototype.name]), longest_axis)


GRADIENTS = (
    *(template for template in MATMUL if template.sizes[0].layout is not expanded),
    INCOMPLETE_TILES.replace("tails-exact"),
    MATMUL[0].replace("matrices-special", domains={"grad_out": partly_infinite}, dtypes=floating, smoke=False),
    MATMUL[1].replace("batches-no-grad_input", results={"grad_input": None}, result_layout=contiguous),
    MATMUL[1].replace("batches-no-grad_other", results={"grad_other": None}, result_layout=contiguous),
    operand_template("many-rows-accumulated", (1031, 2), (2, 3), **ACCUMULATED_FIELDS),
    operand_template("many-columns-accumulated", (2, 3), (3, 1031), **ACCUMULATED_FIELDS),
    large_operand_template("square", (257, 1031), (1031, 509)),
    large_operand_template("batches", (3, 1, 131, 67), (5, 67, 41)),
    large_operand_template(
        "half-transposed", (257, 517), (517, 263), layouts=(transposed, contiguous), **FLOAT16_FIELDS
    ),
)
"""The templates of the gradients of `diopiMatmul`; the operands are both factors."""


@cases_for("diopiMatmulBackward")
def matmul_backward_cases(prototype: Prototype) -> Iterator[Case]:
    """Yield the cases of the gradients of both factors of `diopiMatmul`; `grad_out` has the shape of the product."""

    def gradient(template: CaseTemplate[Operands], dtype: Dtype) -> Mapping[str, Any]:
        a, b = template.sizes
        return {"grad_out": replace(b, shape=product_shape(a.shape, b.shape)), "input": a, "other": b}

    # PyTorch rounds the gradients of a broadcast factor before it adds them up, so keep the data of these cases.
    templates = [template for template in GRADIENTS if not template.label.startswith("batches")]
    broadcast_templates = [template for template in GRADIENTS if template.label.startswith("batches")]
    yield from half_sums.reveal_half_sums(expand(prototype, templates, gradient), longest_axis)
    yield from expand(prototype, broadcast_templates, gradient)


# Sums of a tensor and a matrix product: beta · input + alpha · product

FLOATING_FACTORS = {
    "plain": (1.0, 1.0),
    "scaled": (0.5, -2.25),
    "inexact-factors": (0.1, 1.7),
    "whole-factors": (3, 2),
    "product-only": (0.0, 1.5),
    "input-only": (1.5, 0.0),
}
"""The factors (beta, alpha) for floating-point and complex types, by their name in labels."""

INTEGER_FACTORS = {"plain": (1, 1), "scaled": (3, 2), "product-only": (0, 3), "truncated": (2.75, 3.5)}
"""The factors (beta, alpha) for integer types, by their name in labels; the function truncates fractions."""

ADDMM = (
    operand_template("odd", (5, 3), (5, 7), (7, 3), **SMOKE_FIELDS),
    operand_template("layouts", (4, 5), (4, 6), (6, 5), **MIXED_LAYOUTS),
    operand_template("square", (4, 4), (4, 4), (4, 4), **STRIDED_RESULT),
    operand_template("row", (4,), (3, 5), (5, 4)),
    operand_template("column", (3, 1), (3, 2), (2, 4)),
    operand_template("scalar", (), (3, 2), (2, 4)),
    operand_template("expanded", (3, 4), (3, 2), (2, 4), layouts=(expanded, contiguous)),
    operand_template("no-products", (3, 4), (3, 0), (0, 4)),
    operand_template("empty", (1, 4), (0, 2), (2, 4)),
)
"""The small templates of `diopiAddmm`; the operands are the addend and both factors."""

BADDBMM = (
    operand_template("odd", (2, 3, 4), (2, 3, 5), (2, 5, 4), **SMOKE_FIELDS),
    operand_template("layouts", (3, 4, 5), (3, 4, 2), (3, 2, 5), **MIXED_LAYOUTS),
    operand_template("square", (2, 3, 3), (2, 3, 3), (2, 3, 3), **STRIDED_RESULT),
    operand_template("matrix", (3, 4), (2, 3, 5), (2, 5, 4)),
    operand_template("row", (4,), (2, 3, 2), (2, 2, 4)),
    operand_template("column", (2, 3, 1), (2, 3, 2), (2, 2, 4)),
    operand_template("scalar", (), (2, 3, 2), (2, 2, 4)),
    operand_template("no-products", (2, 3, 4), (2, 3, 0), (2, 0, 4)),
    operand_template("empty", (0, 3, 4), (0, 3, 2), (0, 2, 4)),
)
"""The small templates of `diopiBaddbmm`; the operands are the addend and both factors."""

LARGE_ADDMM = (
    large_operand_template("square", (257, 509), (257, 2053), (2053, 509)),
    large_operand_template(
        "half-transposed",
        (257, 263),
        (257, 517),
        (517, 263),
        layouts=(strides(0, 1), transposed, contiguous),
        **FLOAT16_FIELDS,
    ),
)
"""The large templates of `diopiAddmm`."""

LARGE_BADDBMM = (
    large_operand_template("attention", (13, 131, 137), (13, 131, 67), (13, 67, 137)),
    large_operand_template(
        "half-transposed",
        (7, 131, 129),
        (7, 131, 257),
        (7, 257, 129),
        layouts=(contiguous, contiguous, transposed),
        **FLOAT16_FIELDS,
    ),
)
"""The large templates of `diopiBaddbmm`."""

DTYPES_EXCEPT_HALF = tuple(dtype for dtype in Dtype if dtype not in half)
"""All element types except float16 and bfloat16."""


def _factors_for(dtype: Dtype) -> Mapping[str, tuple[float, float]]:
    """Return the factors (beta, alpha) for an element type, by their name in labels."""
    if dtype in half:
        return {**FLOATING_FACTORS, "scaled": (0.5, -2.0)}  # powers of 2 scale a product without rounding
    return INTEGER_FACTORS if dtype in integer else FLOATING_FACTORS


def factor_template(
    template: CaseTemplate[Operands], factors: str, *suffixes: str, **changes: Any
) -> CaseTemplate[Operands]:
    """Return a copy of a template that has the arguments `beta` and `alpha`, and no smoke cases by default.

    Args:
        template: The template; its operands are the addend and both factors.
        factors: The name of the factors: a key of `FLOATING_FACTORS` or `INTEGER_FACTORS`.
        *suffixes: The end of the label, which follows the label of the template and the name of the factors.
        **changes: New values of other fields.

    Returns:
        The copy.
    """

    def factor(position: int) -> ByDtype:
        return ByDtype(lambda dtype: _factors_for(dtype)[factors][position])

    label = "-".join([template.label, factors, *suffixes])
    defaults = {
        "smoke": False,
        "inplace": _input_fits_result(template),
        "non_discriminating": "a factor is 0" if factors in ("product-only", "input-only") else "",
    }
    return template.replace(label, {"beta": factor(0), "alpha": factor(1)}, **{**defaults, **changes})


def _input_fits_result(template: CaseTemplate[Operands]) -> bool:
    """Return whether the input can receive the result of the in-place form.

    It must have the shape of the result, and no two of its elements may share memory.
    """
    addend, a, b = template.sizes
    return addend.shape == product_shape(a.shape, b.shape) and addend.layout is not expanded


def scaled_templates(
    basic: Sequence[CaseTemplate[Operands]], long: Shapes, tails: Shapes, large: Sequence[CaseTemplate[Operands]]
) -> tuple[CaseTemplate[Operands], ...]:
    """Return the templates of a sum of a tensor and a matrix product.

    Args:
        basic: The templates of small calls, without factors. The first of them is combined with all factors.
        long: The shapes of a template with long sums.
        tails: The shapes of a template with exact results, which are not multiples of the size of a tile.
        large: The large templates, without factors.

    Returns:
        The templates.
    """
    odd = basic[0]
    exact = operand_template("tails", *tails, domain=exact_numbers, exact=True)
    accumulated = operand_template("long", *long, domain=integer_values(2, 7), exact=True)
    # If a vendor rounds the product to half precision and adds one of these numbers, the sum is not rounded again.
    coarse_addends = {"input": choice([128, 256, 384, 512, 640, 768])}
    unread_input = {"input": fixed_values([np.nan, np.inf, 1.0])}
    return (
        *(factor_template(template, "scaled", smoke=template.smoke) for template in basic),
        # The input is large, so that the error budget of the long sum does not hide it.
        *(
            factor_template(template, "scaled", domains={"input": normal(64)})
            for template in (
                operand_template("long", *long),
                *one_row_or_column(*odd.sizes[0].shape[:-2], added=True),
                *tiles(*odd.sizes[0].shape[:-2], added=True),
            )
        ),
        factor_template(exact, "whole-factors", "exact", dtypes=half),
        factor_template(exact, "plain", "exact", dtypes=DTYPES_EXCEPT_HALF),
        factor_template(odd, "plain", "special", domains={"input": partly_infinite}, dtypes=floating),
        *(factor_template(odd, name, "factors", dtypes=(F32, Dtype.float16)) for name in FLOATING_FACTORS),
        *(factor_template(odd, name, "factors", dtypes=(Dtype.int32,)) for name in INTEGER_FACTORS),
        # Each result adds up 7 products and the input, multiplied by at most 3.
        factor_template(rounded_products_template(*(operand.shape for operand in odd.sizes), terms=3 * 8), "scaled"),
        factor_template(accumulated, "plain", "accumulated", domains=coarse_addends, dtypes=half),
        factor_template(
            odd, "product-only", "unread", domains=unread_input, dtypes=(F32, Dtype.bfloat16, Dtype.complex64)
        ),
        *(factor_template(template, "scaled").replace(template.label) for template in large),
    )


@cases_for("diopiAddmm")
def addmm_cases(prototype: Prototype) -> Iterator[Case]:
    """Return the cases of beta · input + alpha · mat1 · mat2 for matrices."""
    long, tails = ((2, 3), (2, 1031), (1031, 3)), ((37, 67), (37, 19), (19, 67))
    cases = expand_in_order(prototype, scaled_templates(ADDMM, long, tails, LARGE_ADDMM))
    return half_sums.reveal_half_sums(cases, longest_axis, addends=ADDENDS, unchanged=("bfloat16-layouts-scaled",))


@cases_for("diopiBaddbmm")
def baddbmm_cases(prototype: Prototype) -> Iterator[Case]:
    """Yield the cases of beta · input + alpha · batch1 · batch2 for batches of matrices.

    Unlike in `diopiAddmm`, the factors are floating-point parameters.
    """
    long, tails = ((2, 2, 3), (2, 2, 523), (2, 523, 3)), ((3, 17, 35), (3, 17, 9), (3, 9, 35))
    cases = expand_in_order(prototype, scaled_templates(BADDBMM, long, tails, LARGE_BADDBMM))
    for case in half_sums.reveal_half_sums(cases, longest_axis, addends=ADDENDS):
        factors = {name: float(case.arguments[name]) for name in ("beta", "alpha")}
        yield replace(case, arguments={**case.arguments, **factors})


def tall_and_wide_cases(prototype: Prototype, cases: Sequence[Case]) -> Iterator[Case]:
    """Yield two cases: the products of a tall and a wide matrix in both orders.

    A vendor that caches something by the sizes of the factors may confuse both calls.

    Args:
        prototype: The prototype of `diopiMm`, `diopiBmm` or `diopiMatmul`.
        cases: The other cases of the function, which do not matter.

    Yields:
        The cases.
    """
    first, second = (parameter.name for parameter in prototype.arguments)
    batch = (2,) if prototype.name == "diopiBmm" else ()
    for label, rows, columns in (("tall-by-wide", 7, 3), ("wide-by-tall", 3, 7)):
        arguments = {
            first: TensorSpec((*batch, rows, columns), F32),
            second: TensorSpec((*batch, columns, rows), F32),
        }
        yield Case(f"float32-{label}", F32, arguments)


CaseFacts(further_cases=[tall_and_wide_cases]).declare("diopiMm", "diopiBmm", "diopiMatmul")
