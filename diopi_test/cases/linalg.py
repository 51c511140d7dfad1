"""Matrix products, decompositions, triangular systems and distances, with their gradients."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from diopi_proto.dtypes import half, is_complex, is_floating
from diopi_proto.prototype import Prototype
from diopi_proto.types import Dtype
from diopi_test.case import Case, ResultOverride, TensorSpec, Values, cases_for
from diopi_test.cases.computed import result_of
from diopi_test.cases.elementwise import Pattern, results, tensors
from diopi_test.cases.products import exact_numbers, given, label, with_special
from diopi_test.domains import Domain, away_from, choice, normal, whole
from diopi_test.layouts import contiguous, expanded, strided, transposed

Array = NDArray[Any]

FEW = (Dtype.float32, Dtype.float16, Dtype.int32)
"""Types for what does not depend on the type."""

REAL_AND_COMPLEX = (Dtype.float32, Dtype.complex64)
"""The same for functions that take no others."""


def few(prototype: Prototype) -> list[Dtype]:
    """The types among `FEW` that the function takes."""
    return [dtype for dtype in FEW if dtype in prototype.dtypes]


# --- Products -----------------------------------------------------------------------------------------------------

MM = (
    Pattern("odd", [(5, 7), (7, 3)], smoke=True),
    Pattern("layouts", [(4, 6), (6, 5)], [strided, transposed], transposed),
)
MM_FEW = (
    Pattern("square", [(4, 4), (4, 4)]),
    Pattern("transposed", [(3, 5), (5, 4)], [transposed, strided], strided),
    Pattern("row-by-column", [(1, 6), (6, 1)]),
    Pattern("column-by-row", [(6, 1), (1, 5)]),
    Pattern("expanded", [(4, 3), (3, 5)], [contiguous, expanded]),
    Pattern("no-products", [(3, 0), (0, 4)]),
    Pattern("empty", [(0, 3), (3, 4)]),
)
BMM = (
    Pattern("odd", [(2, 3, 5), (2, 5, 4)], smoke=True),
    Pattern("layouts", [(3, 4, 2), (3, 2, 5)], [strided, transposed], transposed),
)
BMM_FEW = (
    Pattern("square", [(2, 3, 3), (2, 3, 3)]),
    Pattern("transposed", [(2, 3, 4), (2, 4, 2)], [transposed, strided], strided),
    Pattern("one", [(1, 4, 3), (1, 3, 2)]),
    Pattern("expanded", [(3, 2, 4), (3, 4, 5)], [contiguous, expanded]),
    Pattern("no-products", [(2, 3, 0), (2, 0, 4)]),
    Pattern("no-batch", [(0, 3, 2), (0, 2, 4)]),
    Pattern("no-rows", [(2, 0, 2), (2, 2, 4)]),
)

LONG = {
    "diopiMm": Pattern("long", [(2, 1031), (1031, 3)]),
    "diopiBmm": Pattern("long", [(2, 2, 523), (2, 523, 2)]),
    "diopiMatmul": Pattern("long", [(2, 1031), (1031, 3)]),
}

TAILS = {
    "diopiMm": Pattern("tails", [(37, 19), (19, 67)]),
    "diopiBmm": Pattern("tails", [(3, 17, 9), (3, 9, 35)]),
    "diopiMatmul": Pattern("tails", [(2, 1, 17, 9), (3, 9, 35)]),
    "diopiMatmulBackward": Pattern("tails", [(2, 1, 17, 9), (3, 9, 35)]),
    "diopiAddmm": Pattern("tails", [(37, 67), (37, 19), (19, 67)]),
    "diopiBaddbmm": Pattern("tails", [(3, 17, 35), (3, 17, 9), (3, 9, 35)]),
    "diopiLinear": Pattern("tails", [(3, 19, 17), (35, 17), (35,)]),
    "diopiLinearBackward": Pattern("tails", [(3, 19, 17), (35, 17), (35,)]),
    "diopiCdist": Pattern("tails", [(17, 37), (9, 37)]),
}
"""Sizes that are no multiples of 16 and, but for the batches, all different."""

SPECIAL_ROWS = [[1, 2, -1], [np.nan, 1, 2], [np.inf, 1, -1], [np.inf, -np.inf, 1], [-np.inf, 1, 1], [0.5, 0, 0]]
SPECIAL_COLUMNS = [[1, -2, np.inf], [3, 1, 1], [0.5, 4, 2]]


def _product_cases(
    prototype: Prototype, every: Sequence[Pattern], some: Sequence[Pattern], domains: Mapping[str, Domain]
) -> Iterator[Case]:
    """Patterns of `every` in all types, those of `some` in few; exact numbers in sizes that leave tails."""
    exact = {name: exact_numbers for name in domains}
    for dtype in prototype.dtypes:
        for pattern in (*every, *(some if dtype in FEW else ())):
            arguments = tensors(prototype, dtype, pattern, domains)
            yield Case(label(dtype, pattern.label), dtype, arguments, results(prototype, pattern), pattern.smoke)
        arguments = tensors(prototype, dtype, TAILS[prototype.base], exact)
        yield Case(label(dtype, "exact"), dtype, arguments, exact=True)


def _long_cases(prototype: Prototype, domains: Mapping[str, Domain]) -> Iterator[Case]:
    """Long sums: of any numbers, and of whole ones that are exact in float32 but not in half precision."""
    pattern = LONG[prototype.base]
    for dtype in few(prototype):
        yield Case(label(dtype, "long"), dtype, tensors(prototype, dtype, pattern, domains))
    for dtype in half:
        growing = {name: whole(1, 7) for name in domains}
        arguments = tensors(prototype, dtype, pattern, growing)
        yield Case(label(dtype, "accumulated"), dtype, arguments, exact=True, smoke=True)


def _special_cases(prototype: Prototype, batch: tuple[int, ...]) -> Iterator[Case]:
    first, second = (p.name for p in prototype.arguments)
    for dtype in prototype.dtypes:
        if is_floating(dtype):
            arguments = {
                first: TensorSpec((*batch, 6, 3), dtype, given(SPECIAL_ROWS)),
                second: TensorSpec((*batch, 3, 3), dtype, given(SPECIAL_COLUMNS)),
            }
            yield Case(label(dtype, "special"), dtype, arguments)


@cases_for("diopiMm")
def mm(prototype: Prototype) -> Iterator[Case]:
    domains = {"input": normal(), "mat2": normal()}
    yield from _product_cases(prototype, MM, MM_FEW, domains)
    yield from _long_cases(prototype, domains)
    yield from _special_cases(prototype, ())


@cases_for("diopiBmm")
def bmm(prototype: Prototype) -> Iterator[Case]:
    domains = {"input": normal(), "mat2": normal()}
    yield from _product_cases(prototype, BMM, BMM_FEW, domains)
    yield from _long_cases(prototype, domains)
    yield from _special_cases(prototype, (2,))


MATMUL = (
    Pattern("matrices", [(5, 7), (7, 3)], smoke=True),
    Pattern("batches", [(2, 1, 3, 4), (3, 4, 5)], [strided, transposed], transposed),
)
MATMUL_FEW = (
    Pattern("square", [(4, 4), (4, 4)]),
    Pattern("vectors", [(9,), (9,)]),
    Pattern("vector-by-matrix", [(4,), (4, 6)]),
    Pattern("matrix-by-vector", [(6, 4), (4,)], [transposed, strided], strided),
    Pattern("vector-by-batch", [(3,), (2, 3, 4)]),
    Pattern("batch-by-vector", [(2, 5, 3), (3,)]),
    Pattern("batch-by-matrix", [(2, 3, 4, 5), (5, 2)], [transposed, transposed]),
    Pattern("matrix-by-batch", [(3, 4), (2, 4, 5)]),
    Pattern("stretched", [(2, 1, 3, 2), (1, 4, 2, 3)], [expanded, contiguous]),
    Pattern("no-products", [(2, 3, 0), (0, 4)]),
    Pattern("empty-vectors", [(0,), (0,)]),
    Pattern("no-batch", [(0, 3, 2), (2, 4)]),
)


@cases_for("diopiMatmul")
def matmul(prototype: Prototype) -> Iterator[Case]:
    domains = {"input": normal(), "other": normal()}
    yield from _product_cases(prototype, MATMUL, MATMUL_FEW, domains)
    yield from _long_cases(prototype, domains)
    yield from _special_cases(prototype, ())


def _matmul_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    shape: tuple[int, ...] = np.matmul(np.zeros(a), np.zeros(b)).shape
    return shape


@cases_for("diopiMatmulBackward")
def matmul_backward(prototype: Prototype) -> Iterator[Case]:
    def case(dtype: Dtype, pattern: Pattern, domain: Domain, *words: str, **options: Any) -> Case:
        result = _matmul_shape(pattern.shape(0), pattern.shape(1))
        arguments = {
            "grad_out": TensorSpec(result, dtype, domain, pattern.layout(1)),
            "input": TensorSpec(pattern.shape(0), dtype, domain, pattern.layout(0)),
            "other": TensorSpec(pattern.shape(1), dtype, domain, pattern.layout(1)),
        }
        options = {"results": results(prototype, pattern)} | options
        return Case(label(dtype, pattern.label, *words), dtype, arguments, **options)

    for dtype in prototype.dtypes:
        for pattern in (*MATMUL, *(MATMUL_FEW if dtype in FEW else ())):
            if pattern.layout(0) is not expanded:
                yield case(dtype, pattern, normal(), smoke=pattern.smoke)
        yield case(dtype, TAILS[prototype.base], exact_numbers, "exact", exact=True)
        if is_floating(dtype):
            yield with_special(case(dtype, MATMUL[0], normal(), "special"), "grad_out")
        for left_out in ("grad_input", "grad_other"):
            yield case(dtype, MATMUL[1], normal(), f"no-{left_out}", results={left_out: None})
    many = Pattern("many-rows", [(1031, 2), (2, 3)]), Pattern("many-columns", [(2, 3), (3, 1031)])
    for dtype, pattern in product(half, many):
        yield case(dtype, pattern, whole(1, 7), "accumulated", exact=True)


# --- Products with something added --------------------------------------------------------------------------------

FACTORS = {
    "plain": (1.0, 1.0),
    "scaled": (0.5, -2.25),
    "inexact-factors": (0.1, 1.7),
    "whole-factors": (3, 2),
    "product-only": (0.0, 1.5),
    "input-only": (1.5, 0.0),
}
"""(beta, alpha) for floating types."""

WHOLE_FACTORS = {"plain": (1, 1), "scaled": (3, 2), "product-only": (0, 3), "truncated": (2.75, 3.5)}
"""(beta, alpha) for integer types, which take whole numbers only."""

ADDMM = (
    Pattern("odd", [(5, 3), (5, 7), (7, 3)], smoke=True),
    Pattern("layouts", [(4, 5), (4, 6), (6, 5)], [strided, transposed, strided], transposed),
)
ADDMM_FEW = (
    Pattern("square", [(4, 4), (4, 4), (4, 4)], [transposed, strided, transposed], strided),
    Pattern("row", [(4,), (3, 5), (5, 4)]),
    Pattern("column", [(3, 1), (3, 2), (2, 4)]),
    Pattern("scalar", [(), (3, 2), (2, 4)]),
    Pattern("expanded", [(3, 4), (3, 2), (2, 4)], [expanded, contiguous]),
    Pattern("no-products", [(3, 4), (3, 0), (0, 4)]),
    Pattern("empty", [(1, 4), (0, 2), (2, 4)]),
    Pattern("long", [(2, 3), (2, 1031), (1031, 3)]),
)
BADDBMM = (
    Pattern("odd", [(2, 3, 4), (2, 3, 5), (2, 5, 4)], smoke=True),
    Pattern("layouts", [(3, 4, 5), (3, 4, 2), (3, 2, 5)], [strided, transposed, strided], transposed),
)
BADDBMM_FEW = (
    Pattern("square", [(2, 3, 3), (2, 3, 3), (2, 3, 3)], [transposed, strided, transposed], strided),
    Pattern("matrix", [(3, 4), (2, 3, 5), (2, 5, 4)]),
    Pattern("row", [(4,), (2, 3, 2), (2, 2, 4)]),
    Pattern("column", [(2, 3, 1), (2, 3, 2), (2, 2, 4)]),
    Pattern("scalar", [(), (2, 3, 2), (2, 2, 4)]),
    Pattern("no-products", [(2, 3, 4), (2, 3, 0), (2, 0, 4)]),
    Pattern("empty", [(0, 3, 4), (0, 3, 2), (0, 2, 4)]),
    Pattern("long", [(2, 2, 3), (2, 2, 523), (2, 523, 3)]),
)


def _adding_cases(prototype: Prototype, every: Sequence[Pattern], some: Sequence[Pattern]) -> Iterator[Case]:
    names = [p.name for p in prototype.arguments if p.is_tensor]
    normals, exact = dict.fromkeys(names, normal()), dict.fromkeys(names, exact_numbers)

    def case(
        dtype: Dtype, pattern: Pattern, factors: str, domains: Mapping[str, Domain], *words: str, **options: Any
    ) -> Case:
        beta, alpha = (FACTORS if is_floating(dtype) or is_complex(dtype) else WHOLE_FACTORS)[factors]
        attributes = {"beta": beta, "alpha": alpha}
        if prototype.base == "diopiBaddbmm":
            attributes = {name: float(value) for name, value in attributes.items()}
        arguments = {**tensors(prototype, dtype, pattern, domains), **attributes}
        named = label(dtype, pattern.label, factors, *words)
        weak = "a factor is 0" if 0 in (beta, alpha) else ""
        return Case(named, dtype, arguments, results(prototype, pattern), weak=weak, **options)

    for dtype in prototype.dtypes:
        for pattern in (*every, *(some if dtype in FEW else ())):
            if not prototype.is_inplace or _holds_the_result(pattern):
                # lest the budget of a long sum hide the input
                domains = {**normals, "input": normal(64)} if pattern is some[-1] else normals
                yield case(dtype, pattern, "scaled", domains, smoke=pattern.smoke)
        factors = "whole-factors" if dtype in half else "plain"
        yield case(dtype, TAILS[prototype.base], factors, exact, "exact", exact=True)
        if is_floating(dtype):
            yield with_special(case(dtype, every[0], "plain", normals, "special"), "input")
    for dtype in few(prototype):
        for factors in WHOLE_FACTORS if dtype is Dtype.int32 else FACTORS:
            yield case(dtype, every[0], factors, normals, "factors")
    for dtype in half:
        # a product rounded to half precision and added to one of these is rounded once, in effect
        growing = {**dict.fromkeys(names, whole(2, 7)), "input": choice([128, 256, 384, 512, 640, 768])}
        yield case(dtype, some[-1], "plain", growing, "accumulated", exact=True)
    unread = {**normals, "input": given([np.nan, np.inf, 1.0])}
    for dtype in (Dtype.float32, Dtype.bfloat16, Dtype.complex64):
        yield case(dtype, every[0], "product-only", unread, "unread")


def _holds_the_result(pattern: Pattern) -> bool:
    shape = _matmul_shape(pattern.shape(1), pattern.shape(2))
    return pattern.shape(0) == shape and pattern.layout(0) is not expanded


@cases_for("diopiAddmm")
def addmm(prototype: Prototype) -> Iterator[Case]:
    return _adding_cases(prototype, ADDMM, ADDMM_FEW)


@cases_for("diopiBaddbmm")
def baddbmm(prototype: Prototype) -> Iterator[Case]:
    return _adding_cases(prototype, BADDBMM, BADDBMM_FEW)


# --- Affine maps --------------------------------------------------------------------------------------------------

LINEAR = (
    Pattern("matrix", [(4, 7), (3, 7), (3,)], smoke=True),
    Pattern("layouts", [(2, 3, 5), (4, 5), (4,)], [transposed, strided, strided], transposed),
)
LINEAR_FEW = (
    Pattern("square", [(3, 3), (3, 3), (3,)]),
    Pattern("vector", [(5,), (3, 5), (3,)]),
    Pattern("strided", [(2, 1, 3, 4), (2, 4), (2,)], [strided, transposed], strided),
    Pattern("one-output", [(3, 5), (1, 5), (1,)]),
    Pattern("no-rows", [(0, 5), (3, 5), (3,)]),
    Pattern("no-features", [(4, 0), (3, 0), (3,)]),
    Pattern("long", [(2, 1031), (3, 1031), (3,)]),
)


@cases_for("diopiLinear")
def linear(prototype: Prototype) -> Iterator[Case]:
    def case(dtype: Dtype, pattern: Pattern, domain: Domain, *words: str, bias: bool = True, **options: Any) -> Case:
        arguments: dict[str, Any] = dict(
            tensors(prototype, dtype, pattern, dict.fromkeys(("input", "weight", "bias"), domain))
        )
        if not bias:
            arguments["bias"] = None
        named = label(dtype, pattern.label, "" if bias else "no-bias", *words)
        return Case(named, dtype, arguments, results(prototype, pattern), **options)

    for dtype in prototype.dtypes:
        for pattern in (*LINEAR, *(LINEAR_FEW if dtype in FEW else ())):
            yield case(dtype, pattern, normal(), smoke=pattern.smoke)
        yield case(dtype, TAILS[prototype.base], exact_numbers, "exact", exact=True)
        yield case(dtype, LINEAR[0], normal(), bias=False)
        if is_floating(dtype):
            yield with_special(case(dtype, LINEAR[0], normal(), "special"), "input")
    for dtype in few(prototype):
        yield case(dtype, LINEAR_FEW[0], normal(), bias=False)
    for dtype in half:
        yield case(dtype, LINEAR_FEW[-1], whole(1, 7), "accumulated", bias=False, exact=True)


LONG_GRADIENTS = (
    Pattern("many-rows", [(1031, 2), (3, 2)]),
    Pattern("many-outputs", [(2, 3), (1031, 3)]),
)


@cases_for("diopiLinearBackward")
def linear_backward(prototype: Prototype) -> Iterator[Case]:
    def case(dtype: Dtype, pattern: Pattern, domain: Domain, *words: str, **options: Any) -> Case:
        shapes = (*pattern.shape(0)[:-1], pattern.shape(1)[0]), pattern.shape(0), pattern.shape(1)
        arguments = {
            name: TensorSpec(shape, dtype, domain, pattern.layout(i))
            for i, (name, shape) in enumerate(zip(("grad_output", "input", "weight"), shapes, strict=True))
        }
        laid_out = {
            "grad_input": ResultOverride(layout=pattern.result),
            "grad_weight": ResultOverride(layout=pattern.result),
            "grad_bias": ResultOverride(layout=strided if pattern.result is strided else contiguous),
        }
        absent = options.pop("absent", ())
        options["results"] = {name: None if name in absent else layout for name, layout in laid_out.items()}
        return Case(label(dtype, pattern.label, *words), dtype, arguments, **options)

    for dtype in prototype.dtypes:
        for pattern in (*LINEAR, *(LINEAR_FEW if dtype in FEW else ())):
            yield case(dtype, pattern, normal(), smoke=pattern.smoke)
        yield case(dtype, TAILS[prototype.base], exact_numbers, "exact", exact=True)
        if is_floating(dtype):
            yield with_special(case(dtype, LINEAR[0], normal(), "special"), "grad_output")
        for absent in ("grad_input", "grad_weight", "grad_bias"):
            yield case(dtype, LINEAR[1], normal(), f"no-{absent}", absent=[absent])
    for dtype, pattern in product(half, LONG_GRADIENTS):
        yield case(dtype, pattern, whole(1, 7), "accumulated", exact=True)
    yield case(Dtype.float32, LINEAR[0], normal(), "grad_weight-only", absent=["grad_input", "grad_bias"])


# --- Cholesky -----------------------------------------------------------------------------------------------------

SQUARE = (
    Pattern("matrix", [(5, 5)], smoke=True),
    Pattern("batches", [(2, 1, 3, 3)]),
    Pattern("transposed", [(2, 4, 4)], [transposed], transposed),
    Pattern("strided", [(3, 4, 4)], [strided], strided),
)
SQUARE_FEW = (
    Pattern("one", [(1, 1)]),
    Pattern("empty", [(0, 0)]),
    Pattern("no-batch", [(0, 3, 3)]),
    Pattern("large", [(23, 23)]),
    Pattern("to-transposed", [(3, 3)], [contiguous], transposed),
)


def _adjoint(a: Array) -> Array:
    return np.swapaxes(a, -1, -2).conj()


def _positive_definite(root: Array) -> Array:
    matrix: Array = root @ _adjoint(root) / max(root.shape[-1], 1) + np.eye(root.shape[-1])
    return matrix


def _one_triangle(root: Array, other: Array, upper: bool) -> Array:
    """A positive definite matrix in one triangle, and something else in the other."""
    matrix = _positive_definite(root)
    return np.triu(matrix) + np.tril(other, -1) if upper else np.tril(matrix) + np.triu(other, 1)


@cases_for("diopiCholesky")
def cholesky(prototype: Prototype) -> Iterator[Case]:
    def case(dtype: Dtype, pattern: Pattern, upper: bool, checkerror: bool) -> Case:
        shape = pattern.shape(0)
        arguments = {
            "_root": TensorSpec(shape, dtype),
            "_other": TensorSpec(shape, dtype),
            "mat": TensorSpec(
                shape,
                dtype,
                layout=pattern.layout(0),
                compute=lambda values: _one_triangle(values["_root"], values["_other"], upper),
            ),
            "upper": upper,
            "checkerror": checkerror,
        }
        words = pattern.label, "upper" if upper else "lower", "checked" if checkerror else ""
        return Case(label(dtype, *words), dtype, arguments, results(prototype, pattern), smoke=pattern.smoke)

    for dtype in prototype.dtypes:
        for pattern, upper in product((*SQUARE, *(SQUARE_FEW if dtype in REAL_AND_COMPLEX else ())), (False, True)):
            yield case(dtype, pattern, upper, checkerror=False)
        yield case(dtype, SQUARE[1], False, checkerror=True)
        yield case(dtype, Pattern("larger", [(67, 67)]), True, checkerror=False)
        yield from (_whole_factor(dtype, upper) for upper in (False, True))
        yield from (_indefinite(dtype, upper) for upper in (False, True))


def _unit_triangular(values: Array, diagonal: Any = 1) -> Array:
    """A lower factor of whole numbers, with a diagonal that divides them evenly."""
    factor: Array = np.tril(values, -1) + diagonal * np.eye(values.shape[-1])
    return factor


def _whole_factor(dtype: Dtype, upper: bool) -> Case:
    """Products of lower factors with their adjoints, whose decomposition has but whole numbers."""

    def matrix(values: Values) -> Array:
        factor = _unit_triangular(values["_factor"], 1 + np.arange(19) % 2)
        return factor @ _adjoint(factor)

    arguments = {
        "_factor": TensorSpec((2, 19, 19), dtype, whole(-2, 2)),
        "mat": TensorSpec((2, 19, 19), dtype, compute=matrix),
        "upper": upper,
        "checkerror": False,
    }
    return Case(label(dtype, "exact", "upper" if upper else "lower"), dtype, arguments, exact=True)


def _indefinite(dtype: Dtype, upper: bool) -> Case:
    """A positive definite matrix among some whose first minors fail, of order 1, 2 and 3, one of them singular."""
    matrices = np.array(
        [
            [[4, 2, 0], [2, 5, 2], [0, 2, 5]],
            [[-1, 0, 0], [0, 1, 0], [0, 0, 1]],
            [[1, 1, 0], [1, 1, 0], [0, 0, 1]],
            [[4, 2, 2], [2, 5, 3], [2, 3, 1]],
            [[0, 0, 0], [0, -1, 0], [0, 0, 1]],
        ],
        np.complex128 if is_complex(dtype) else np.float64,
    )
    if is_complex(dtype):
        matrices[0, 1, 0], matrices[0, 0, 1] = 2j, -2j
    mat = TensorSpec(matrices.shape, dtype, given(matrices))
    arguments = {"mat": mat, "upper": upper, "checkerror": False}
    return Case(label(dtype, "indefinite", "upper" if upper else "lower"), dtype, arguments, smoke=not upper)


@cases_for("diopiCholeskyBackward")
def cholesky_backward(prototype: Prototype) -> Iterator[Case]:
    def factor(values: Values, upper: bool) -> Array:
        lower = np.linalg.cholesky(_positive_definite(values["_root"]))
        return _adjoint(lower) if upper else lower

    def case(dtype: Dtype, pattern: Pattern, upper: bool) -> Case:
        shape, layout = pattern.shape(0), pattern.layout(0)
        arguments = {
            "_root": TensorSpec(shape, dtype),
            "grad_output": TensorSpec(shape, dtype, layout=layout),
            "L": TensorSpec(shape, dtype, layout=layout, compute=lambda values: factor(values, upper)),
            "upper": upper,
        }
        words = pattern.label, "upper" if upper else "lower"
        return Case(label(dtype, *words), dtype, arguments, results(prototype, pattern), smoke=pattern.smoke)

    def exact(dtype: Dtype, upper: bool) -> Case:
        """Whole numbers with a diagonal of 1, whose inverse has whole numbers too."""

        def unit(values: Values) -> Array:
            lower = _unit_triangular(values["_factor"])
            return _adjoint(lower) if upper else lower

        arguments = {
            "_factor": TensorSpec((2, 7, 7), dtype, choice([-1, 0, 1, 0])),
            "grad_output": TensorSpec((2, 7, 7), dtype, whole(-9, 9)),
            "L": TensorSpec((2, 7, 7), dtype, compute=unit),
            "upper": upper,
        }
        return Case(label(dtype, "exact", "upper" if upper else "lower"), dtype, arguments, exact=True)

    for dtype in prototype.dtypes:
        for pattern, upper in product((*SQUARE, *(SQUARE_FEW if dtype in REAL_AND_COMPLEX else ())), (False, True)):
            yield case(dtype, pattern, upper)
        yield from (exact(dtype, upper) for upper in (False, True))


# --- Triangular systems -------------------------------------------------------------------------------------------

FLAGS = ("upper", "transpose", "unitriangular")
SYSTEM = (
    Pattern("matrix", [(5, 3), (5, 5)], smoke=True),
    Pattern("layouts", [(2, 4, 3), (2, 4, 4)], [transposed, strided], transposed),
)
SYSTEM_FEW = (
    Pattern("square", [(4, 4), (4, 4)]),
    Pattern("column", [(6, 1), (6, 6)]),
    Pattern("one", [(1, 2), (1, 1)]),
    Pattern("batched-mat", [(4, 2), (2, 3, 4, 4)], [strided], strided),
    Pattern("batched-b", [(3, 4, 2), (4, 4)], [transposed]),
    Pattern("stretched", [(2, 1, 3, 2), (4, 3, 3)], [contiguous, transposed]),
    Pattern("no-columns", [(3, 0), (3, 3)]),
    Pattern("no-unknowns", [(0, 2), (0, 0)]),
    Pattern("no-batch", [(0, 3, 2), (0, 3, 3)]),
    Pattern("large", [(67, 3), (67, 67)]),
)


EXACT_SYSTEM = Pattern("exact", [(2, 5, 3), (2, 5, 5)])
"""Whole numbers, which need a diagonal of 1."""


def _regular(values: Values) -> Array:
    """A matrix whose triangles are both well conditioned, with diagonals of 1 too: the diagonal outweighs its row."""
    raw = values["_raw"]
    size = raw.shape[-1]
    matrix: Array = np.where(np.eye(size, dtype=bool), 2 + np.abs(raw), raw / max(size, 2))
    return matrix


def _flag_words(flags: Mapping[str, bool]) -> list[str]:
    return [name for name, value in flags.items() if value] or ["lower"]


def _all_flags() -> list[dict[str, bool]]:
    return [dict(zip(FLAGS, values, strict=True)) for values in product((False, True), repeat=len(FLAGS))]


def _system(dtype: Dtype, pattern: Pattern, domain: Domain | None = None) -> dict[str, Any]:
    """The arguments b and mat; with a domain of its own, mat is drawn from it."""
    shape, layout = pattern.shape(1), pattern.layout(1)
    b = TensorSpec(pattern.shape(0), dtype, domain or normal(), pattern.layout(0))
    if domain:
        return {"b": b, "mat": TensorSpec(shape, dtype, domain, layout)}
    raw = TensorSpec(shape, dtype, normal())
    return {"_raw": raw, "b": b, "mat": TensorSpec(shape, dtype, layout=layout, compute=_regular)}


@cases_for("diopiTriangularSolve")
def triangular_solve(prototype: Prototype) -> Iterator[Case]:
    flags = _all_flags()
    for dtype in prototype.dtypes:
        patterns = (*SYSTEM, *(SYSTEM_FEW if dtype in REAL_AND_COMPLEX else ()))
        for number, pattern in enumerate(patterns):
            chosen = flags if pattern is SYSTEM[0] else [flags[number % 8], flags[(number + 3) % 8]]
            for one in chosen:
                named = label(dtype, pattern.label, *_flag_words(one))
                arguments = {**_system(dtype, pattern), **one}
                smoke = pattern.smoke and one["upper"] and not one["unitriangular"]
                yield Case(named, dtype, arguments, results(prototype, pattern), smoke)
        for one in flags[1::2]:  # whole numbers need a diagonal of 1
            arguments = {**_system(dtype, SYSTEM[0], whole(-2, 2)), **one}
            yield Case(label(dtype, "exact", *_flag_words(one)), dtype, arguments, exact=True)
        yield _unread(dtype)
        yield _singular(dtype)


def _unread(dtype: Dtype) -> Case:
    """NaN wherever `mat` is not to be read."""
    mat = [[np.nan, 0.5, -0.25], [np.nan, np.nan, 2], [np.nan, np.nan, np.nan]]
    arguments = {
        "b": TensorSpec((3, 2), dtype),
        "mat": TensorSpec((3, 3), dtype, given(mat)),
        **dict.fromkeys(FLAGS, True),
    }
    return Case(label(dtype, "unread"), dtype, arguments)


def _singular(dtype: Dtype) -> Case:
    """A 0 on the diagonal, met last, divides by 0."""
    finite = [[2.0, 1.0], [0.5, 4.0]]
    arguments = {
        "b": TensorSpec((2, 1), Dtype(dtype), given([1.0, 1.0])),
        "mat": TensorSpec((2, 2), dtype, given([finite[0], [0.5, 0.0]])),
        **dict.fromkeys(FLAGS, False),
    }
    return Case(label(dtype, "singular"), dtype, arguments)


@cases_for("diopiTriangularSolveBackward")
def triangular_solve_backward(prototype: Prototype) -> Iterator[Case]:
    def case(
        dtype: Dtype, pattern: Pattern, flags: Mapping[str, Any], absent: Sequence[str] = (), **options: Any
    ) -> Case:
        batch = np.broadcast_shapes(pattern.shape(0)[:-2], pattern.shape(1)[:-2])
        numbers = whole(-2, 2) if pattern is EXACT_SYSTEM else None
        system = _system(dtype, pattern, numbers)
        drawn = numbers or normal()
        grads = {
            "grad_x": TensorSpec((*batch, *pattern.shape(0)[-2:]), dtype, drawn, pattern.layout(1)),
            "grad_cloned_mat": TensorSpec((*batch, *pattern.shape(1)[-2:]), dtype, drawn, pattern.layout(0)),
        }
        x = TensorSpec(
            grads["grad_x"].shape,
            dtype,
            layout=pattern.layout(0),
            compute=result_of("diopiTriangularSolve", **flags),
        )
        arguments = {
            **system,
            **{name: None if name in absent else spec for name, spec in grads.items()},
            "x": x,
            **flags,
        }
        overrides = {
            p.name: None if p.name in absent else ResultOverride(layout=pattern.result) for p in prototype.results
        }
        words = [f"no-{name}" for name in absent]
        return Case(label(dtype, pattern.label, *_flag_words(flags), *words), dtype, arguments, overrides, **options)

    flags = _all_flags()
    for dtype in prototype.dtypes:
        patterns = (*SYSTEM, *(SYSTEM_FEW if dtype in REAL_AND_COMPLEX else ()))
        for number, pattern in enumerate(patterns):
            for one in flags if pattern is SYSTEM[0] else [flags[(number + 1) % 8]]:
                smoke = pattern.smoke and one["upper"] and not one["unitriangular"]
                is_one = pattern.label == "one" and one["unitriangular"]
                weak = "a unitriangular matrix of one element is 1" if is_one else ""
                yield case(dtype, pattern, one, smoke=smoke, weak=weak)
        for one in flags[1::2]:
            yield case(dtype, EXACT_SYSTEM, one, exact=True)
        for absent in (["grad_cloned_mat"], ["grad_b"], ["grad_mat"], ["grad_x", "grad_b"]):
            yield case(dtype, SYSTEM[1], flags[4], absent)
        if is_complex(dtype):  # where a gradient of 0 has no sign
            for absent in (["grad_x"], ["grad_x", "grad_cloned_mat"]):
                yield case(dtype, SYSTEM[1], flags[4], absent, weak="what no gradient comes from has none but 0")


# --- QR -----------------------------------------------------------------------------------------------------------

QR_MODES = ("reduced", "complete", "r")
TALL_AND_WIDE = (
    Pattern("tall", [(5, 3)], smoke=True),
    Pattern("wide", [(2, 3, 5)], [transposed], transposed),
)
QR_FEW = (
    Pattern("square", [(4, 4)], [strided], strided),
    Pattern("batches", [(2, 3, 4, 2)]),
    Pattern("one", [(1, 1)]),
    Pattern("column", [(4, 1)], [strided]),
    Pattern("row", [(1, 4)]),
    Pattern("no-rows", [(0, 3)]),
    Pattern("no-columns", [(3, 0)]),
    Pattern("no-batch", [(0, 4, 3)]),
    Pattern("large", [(67, 9)]),
)


@cases_for("diopiLinalgQR")
def qr(prototype: Prototype) -> Iterator[Case]:
    def case(dtype: Dtype, pattern: Pattern, mode: str) -> Case:
        arguments = {"A": TensorSpec(pattern.shape(0), dtype, layout=pattern.layout(0)), "mode": mode}
        layout = ResultOverride(layout=pattern.result)
        overrides = {"R": layout} if mode == "r" else {"Q": layout, "R": layout}
        return Case(label(dtype, pattern.label, mode), dtype, arguments, overrides, smoke=pattern.smoke)

    for dtype in prototype.dtypes:
        for pattern, mode in product(TALL_AND_WIDE, QR_MODES):
            yield case(dtype, pattern, mode)
    for pattern, mode in product(QR_FEW, QR_MODES):
        yield case(Dtype.complex64 if mode == "r" else Dtype.float32, pattern, mode)
    triangular = [[-2, 1, 3, 0.5], [0, 3, -1, 2], [0, 0, -4, 1]]
    for dtype in prototype.dtypes:
        arguments = {"A": TensorSpec((3, 4), dtype, given(triangular)), "mode": "r"}
        yield Case(label(dtype, "nothing-to-eliminate"), dtype, arguments, exact=True)


# --- Distances ----------------------------------------------------------------------------------------------------

CDIST = (
    Pattern("matrices", [(4, 5), (3, 5)], smoke=True),
    Pattern("layouts", [(2, 3, 4), (2, 5, 4)], [transposed, strided], transposed),
)
CDIST_FEW = (
    Pattern("batches", [(2, 1, 3, 4), (3, 2, 4)]),
    Pattern("strided", [(3, 6), (2, 6)], [strided, transposed], strided),
    Pattern("one", [(1, 1), (1, 1)]),
    Pattern("no-rows", [(0, 3), (2, 3)]),
    Pattern("no-others", [(2, 3), (0, 3)]),
    Pattern("no-coordinates", [(3, 0), (2, 0)]),
    Pattern("no-batch", [(0, 2, 3), (0, 4, 3)]),
    Pattern("long", [(2, 517), (2, 517)]),
)
POWERS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, np.inf)
MANY, MANY_OTHERS = Pattern("many", [(26, 3), (4, 3)]), Pattern("many-others", [(4, 3), (26, 3)])


def _row_pair(dtype: Dtype, pattern: Pattern, domain: Domain) -> dict[str, Any]:
    return {f"input{i + 1}": TensorSpec(pattern.shape(i), dtype, domain, pattern.layout(i)) for i in range(2)}


def _close(values: Values) -> Array:
    """Rows near those of input1, which are long: a difference of large squares would not see the distance."""
    near: Array = values["input1"][..., ::-1, :] + values["_step"] / 64
    return near


@cases_for("diopiCdist")
def cdist(prototype: Prototype) -> Iterator[Case]:
    def case(dtype: Dtype, pattern: Pattern, p: float, mode: int | None, *words: str, **options: Any) -> Case:
        domain = options.pop("domain", whole(-2, 2) if p == 0 else normal())
        arguments: dict[str, Any] = {**_row_pair(dtype, pattern, domain), "p": p, "compute_mode": mode}
        named = label(dtype, pattern.label, f"p{p:g}", "" if mode is None else f"mode{mode}", *words)
        return Case(named, dtype, arguments, results(prototype, pattern), **options)

    for dtype in prototype.dtypes:
        for p in POWERS:
            yield case(dtype, CDIST[0], p, None, smoke=True)
            yield case(dtype, CDIST[1], p, 0)
        for p, number in product((2.0, 3.0), (1, 2)):
            yield case(dtype, CDIST[0], p, number)
        for mode in (None, 0, 1, 2):
            yield case(dtype, MANY, 2.0, mode)
        yield case(dtype, MANY_OTHERS, 2.0, None)
        for mode in (None, 2):
            yield _close_case(dtype, Pattern("close", [(4, 3)]), mode)
        yield _close_case(dtype, Pattern("close-many", [(26, 3)]), 2)
        yield _close_case(dtype, Pattern("close-25", [(25, 3)]), None)
        for p in (0.0, 1.0, np.inf):
            far = 50 if p == np.inf else 2
            yield case(dtype, TAILS[prototype.base], p, None, "exact", domain=whole(-far, far), exact=True)
        yield _whole_distances(dtype)
        for p in (0.5, 1.0, 2.0, 3.0):
            yield with_special(case(dtype, CDIST[0], p, None, "special"), "input1")
    for pattern in CDIST_FEW:
        for p in (2.0, np.inf):
            yield case(Dtype.float32, pattern, p, None)


def _whole_distances(dtype: Dtype) -> Case:
    """Rows 3 and 4, 5 and 12, 8 and 15 away from others, where squares and their sums and roots are exact."""
    arguments = {
        "input1": TensorSpec((2, 5), dtype, given([[1, -2, 0, 1, 3]])),
        "input2": TensorSpec((3, 5), dtype, given([[1, 1, 0, 5, 3], [6, -2, 12, 1, 3], [1, -2, 8, 1, 18]])),
        "p": 2.0,
        "compute_mode": 2,
    }
    return Case(label(dtype, "whole-distances"), dtype, arguments, exact=True)


def _close_case(dtype: Dtype, pattern: Pattern, mode: int | None) -> Case:
    shape = pattern.shape(0)
    arguments = {
        "input1": TensorSpec(shape, dtype, normal(mean=100)),
        "_step": TensorSpec(shape, dtype, away_from([0], normal())),
        "input2": TensorSpec(shape, dtype, compute=_close),
        "p": 2.0,
        "compute_mode": mode,
    }
    return Case(label(dtype, pattern.label, "" if mode is None else f"mode{mode}"), dtype, arguments)


@cases_for("diopiCdistBackward")
def cdist_backward(prototype: Prototype) -> Iterator[Case]:
    def case(dtype: Dtype, pattern: Pattern, p: float, domain: Domain, *words: str, **options: Any) -> Case:
        rows = _row_pair(dtype, pattern, domain)
        batch = np.broadcast_shapes(pattern.shape(0)[:-2], pattern.shape(1)[:-2])
        shape = (*batch, pattern.shape(0)[-2], pattern.shape(1)[-2])
        arguments = {
            **rows,
            "grad_output": TensorSpec(shape, dtype, domain, pattern.layout(0)),
            "p": p,
            "cdist": TensorSpec(
                shape, dtype, layout=pattern.layout(1), compute=result_of("diopiCdist", p=p, compute_mode=2)
            ),
        }
        named = label(dtype, pattern.label, f"p{p:g}", *words)
        return Case(named, dtype, arguments, results(prototype, pattern), **options)

    for dtype in prototype.dtypes:
        for p in POWERS:
            exact = p in (0.0, np.inf)  # where |d| = D decides, rounding must not
            weak = "how many coordinates differ has no gradient but 0" if p == 0 else ""
            domain = whole(-9, 9) if exact else normal()
            yield case(dtype, CDIST[0], p, domain, smoke=True, exact=exact, weak=weak)
            yield case(dtype, CDIST[1], p, domain, exact=exact, weak=weak)
        for p in (1.0, 2.0, np.inf):
            yield _on_axes(dtype, p)
    for pattern in CDIST_FEW:
        for p in (1.5, 2.0):
            yield case(Dtype.float32, pattern, p, normal())


def _on_axes(dtype: Dtype, p: float) -> Case:
    """Rows that are equal or differ in one coordinate, so that every term is exact: ± the gradient, or 0."""
    arguments = {
        "input1": TensorSpec((3, 3), dtype, given([[1, 2, 3], [1, 4, 3], [1, -5, 3]])),
        "input2": TensorSpec((2, 2, 3), dtype, given([[1, 2, 3], [1, 9, 3], [1, 4, 3], [1, 0, 3]])),
        "grad_output": TensorSpec((2, 3, 2), dtype, choice([-3, -2, -1, 1, 2, 3])),
        "p": p,
        "cdist": TensorSpec((2, 3, 2), dtype, compute=result_of("diopiCdist", p=p, compute_mode=2)),
    }
    return Case(label(dtype, "on-axes", f"p{p:g}"), dtype, arguments, exact=True)
